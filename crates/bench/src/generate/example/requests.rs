//! Messages about payments: cancellation and recall (camt.056), return (pacs.004), status enquiry (pacs.028), report
//! request (camt.060).

use super::super::Version;
use super::super::message::{Kind, Payment, agent, element, money};
use super::super::participants::assigned;
use super::super::writer::OPERATOR;
use super::BUSINESS_DATE;
use super::build::Example;

/// The payment that a request is about.
pub(super) struct Original<'a> {
    pub(super) message_id: &'a str,
    pub(super) payment: &'a Payment,
}

impl Original<'_> {
    fn group(&self, out: &mut String) {
        out.push_str("<OrgnlGrpInf>");
        element(out, "OrgnlMsgId", self.message_id);
        element(
            out,
            "OrgnlMsgNmId",
            &Kind::Customer.name(Version::default()),
        );
        out.push_str("</OrgnlGrpInf>");
    }

    fn identifiers(&self, out: &mut String) {
        let payment = self.payment;
        let named = [
            ("OrgnlEndToEndId", &payment.end_to_end_id),
            ("OrgnlTxId", &payment.payment_id),
            ("OrgnlUETR", &payment.uetr),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                element(out, name, value);
            }
        }
    }

    fn amount_and_date(&self, out: &mut String) {
        money(
            out,
            "OrgnlIntrBkSttlmAmt",
            self.payment.currency.as_deref(),
            &self.payment.amount,
        );
        element(out, "OrgnlIntrBkSttlmDt", BUSINESS_DATE);
    }
}

impl Example {
    /// camt.056.001.08: please cancel, or give back. `reason` is the sender's.
    pub(super) fn cancellation(
        &self,
        from: usize,
        id: &str,
        original: &Original<'_>,
        reason: &str,
    ) -> String {
        let mut out = open("camt.056.001.08", "FIToFIPmtCxlReq");
        out.push_str("<Assgnmt>");
        element(&mut out, "Id", id);
        assigned(&mut out, "Assgnr", self.bic(from));
        assigned(&mut out, "Assgne", OPERATOR);
        element(&mut out, "CreDtTm", &self.created());
        out.push_str("</Assgnmt><CtrlData><NbOfTxs>1</NbOfTxs></CtrlData><Undrlyg><TxInf>");
        element(&mut out, "CxlId", &format!("{id}.1"));
        original.group(&mut out);
        original.identifiers(&mut out);
        original.amount_and_date(&mut out);
        out.push_str("<CxlRsnInf><Rsn>");
        element(&mut out, "Cd", reason);
        out.push_str("</Rsn></CxlRsnInf></TxInf></Undrlyg>");
        close(out, "FIToFIPmtCxlReq")
    }

    /// pacs.004.001.09: a settled payment, or a part of it, goes back, urgent.
    pub(super) fn return_of(
        &self,
        from: usize,
        to: usize,
        id: &str,
        original: &Original<'_>,
        amount: &str,
    ) -> String {
        let currency = original.payment.currency.as_deref();
        let mut out = open("pacs.004.001.09", "PmtRtr");
        out.push_str("<GrpHdr>");
        element(&mut out, "MsgId", id);
        element(&mut out, "CreDtTm", &self.created());
        element(&mut out, "NbOfTxs", "1");
        element(&mut out, "CtrlSum", amount);
        out.push_str("<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>");
        agent(&mut out, "InstgAgt", self.bic(from));
        agent(&mut out, "InstdAgt", self.bic(to));
        out.push_str("</GrpHdr><TxInf>");
        element(&mut out, "RtrId", &format!("{id}.1"));
        original.group(&mut out);
        original.identifiers(&mut out);
        original.amount_and_date(&mut out);
        money(&mut out, "RtrdIntrBkSttlmAmt", currency, amount);
        element(&mut out, "IntrBkSttlmDt", BUSINESS_DATE);
        element(&mut out, "SttlmPrty", "URGT");
        out.push_str("<RtrRsnInf><Rsn><Cd>FOCR</Cd></Rsn></RtrRsnInf></TxInf>");
        close(out, "PmtRtr")
    }

    /// pacs.028.001.03: what became of this payment?
    pub(super) fn enquiry(&self, from: usize, id: &str, original: &Original<'_>) -> String {
        let mut out = open("pacs.028.001.03", "FIToFIPmtStsReq");
        out.push_str("<GrpHdr>");
        element(&mut out, "MsgId", id);
        element(&mut out, "CreDtTm", &self.created());
        agent(&mut out, "InstgAgt", self.bic(from));
        agent(&mut out, "InstdAgt", OPERATOR);
        out.push_str("</GrpHdr><TxInf>");
        element(&mut out, "StsReqId", &format!("{id}.1"));
        original.group(&mut out);
        original.identifiers(&mut out);
        out.push_str("</TxInf>");
        close(out, "FIToFIPmtStsReq")
    }

    /// camt.060.001.05: an intraday report (camt.052) of the account in `currency`, please.
    pub(super) fn report_request(&self, from: usize, id: &str, currency: &str) -> String {
        let mut out = open("camt.060.001.05", "AcctRptgReq");
        out.push_str("<GrpHdr>");
        element(&mut out, "MsgId", id);
        element(&mut out, "CreDtTm", &self.created());
        out.push_str("</GrpHdr><RptgReq>");
        element(&mut out, "Id", &format!("{id}.1"));
        element(&mut out, "ReqdMsgNmId", "camt.052.001.08");
        out.push_str("<Acct><Id><Othr>");
        element(&mut out, "Id", self.bic(from));
        out.push_str("</Othr></Id>");
        element(&mut out, "Ccy", currency);
        out.push_str("</Acct>");
        assigned(&mut out, "AcctOwnr", self.bic(from));
        out.push_str("<RptgPrd><FrToDt>");
        element(&mut out, "FrDt", BUSINESS_DATE);
        element(&mut out, "ToDt", BUSINESS_DATE);
        out.push_str("</FrToDt><FrToTm><FrTm>00:00:00Z</FrTm><ToTm>23:59:59Z</ToTm></FrToTm><Tp>ALLL</Tp></RptgPrd></RptgReq>");
        close(out, "AcctRptgReq")
    }
}

fn open(name: &str, root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{name}\"><{root}>"
    )
}

fn close(mut out: String, root: &str) -> String {
    out.push_str(&format!("</{root}></Document>"));
    out
}
