//! What banks send. Every message is kept with its bytes, so that it can be sent again, and a hash of them.

use std::fmt::Write as _;

use serde::Serialize;

use crate::world::{Bank, DATE, decimal};

/// A payment inside a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Payment {
    /// `TxId`, unique in a run.
    pub(crate) id: String,
    pub(crate) to: Bank,
    pub(crate) currency: &'static str,
    pub(crate) minor: u64,
    /// Remittance information, to make it long.
    #[serde(skip)]
    pub(crate) note: String,
}

/// What a message asks for.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum Content {
    /// One payment, settled at once.
    Urgent(Payment),
    /// Payments for the next cycle.
    Package(Vec<Payment>),
    /// Takes a payment of an earlier package back, if it is not too late.
    Cancel { package: String, payment: Payment },
}

/// A message as it was sent.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) sender: Bank,
    pub(crate) content: Content,
    /// Of the bytes.
    pub(crate) hash: u64,
    #[serde(skip)]
    pub(crate) xml: String,
}

impl Message {
    pub(crate) fn new(id: String, sender: Bank, content: Content) -> Self {
        let xml = match &content {
            Content::Urgent(payment) => {
                transfer(&id, sender, std::slice::from_ref(payment), "URGT")
            }
            Content::Package(payments) => transfer(&id, sender, payments, ""),
            Content::Cancel { package, payment } => cancellation(&id, sender, package, payment),
        };
        Self {
            hash: hash(&xml),
            id,
            sender,
            content,
            xml,
        }
    }

    /// Payments that the message brings in.
    pub(crate) fn payments(&self) -> &[Payment] {
        match &self.content {
            Content::Urgent(payment) => std::slice::from_ref(payment),
            Content::Package(payments) => payments,
            Content::Cancel { .. } => &[],
        }
    }

    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self.content, Content::Urgent(_))
    }
}

/// The longest line of remittance information.
const NOTE_LINE: usize = 140;

/// FNV-1a.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn transfer(id: &str, sender: Bank, payments: &[Payment], priority: &str) -> String {
    let from = sender.bic();
    let count = payments.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">\
         <FIToFICstmrCdtTrf><GrpHdr><MsgId>{id}</MsgId><CreDtTm>{DATE}T08:00:00Z</CreDtTm><NbOfTxs>{count}</NbOfTxs>\
         <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf><InstgAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></InstgAgt>\
         </GrpHdr>"
    );
    let priority = if priority.is_empty() {
        String::new()
    } else {
        format!("<SttlmPrty>{priority}</SttlmPrty>")
    };
    for payment in payments {
        let Payment {
            id, currency, to, ..
        } = payment;
        let (to, amount) = (to.bic(), decimal(currency, payment.minor));
        let _ = write!(
            out,
            "<CdtTrfTxInf><PmtId><EndToEndId>E-{id}</EndToEndId><TxId>{id}</TxId></PmtId><IntrBkSttlmAmt Ccy=\"{currency}\">\
             {amount}</IntrBkSttlmAmt><IntrBkSttlmDt>{DATE}</IntrBkSttlmDt>{priority}<ChrgBr>DEBT</ChrgBr><InstdAgt>\
             <FinInstnId><BICFI>{to}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>Ute Vogt</Nm></Dbtr><DbtrAgt><FinInstnId>\
             <BICFI>{from}</BICFI></FinInstnId></DbtrAgt><CdtrAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></CdtrAgt>\
             <Cdtr><Nm>Rui Vaz</Nm></Cdtr>"
        );
        let mut note = payment.note.as_str();
        if !note.is_empty() {
            out.push_str("<RmtInf>");
            while !note.is_empty() {
                let (line, rest) = note.split_at(note.len().min(NOTE_LINE));
                let _ = write!(out, "<Ustrd>{line}</Ustrd>");
                note = rest;
            }
            out.push_str("</RmtInf>");
        }
        out.push_str("</CdtTrfTxInf>");
    }
    out.push_str("</FIToFICstmrCdtTrf></Document>");
    out
}

fn cancellation(id: &str, sender: Bank, package: &str, payment: &Payment) -> String {
    let from = sender.bic();
    let (tx, currency) = (&payment.id, payment.currency);
    let amount = decimal(currency, payment.minor);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.056.001.08\">\
         <FIToFIPmtCxlReq><Assgnmt><Id>{id}</Id><Assgnr><Agt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></Agt></Assgnr>\
         <Assgne><Agt><FinInstnId><BICFI>CLSPZZ2AXXX</BICFI></FinInstnId></Agt></Assgne><CreDtTm>{DATE}T08:00:00Z</CreDtTm>\
         </Assgnmt><CtrlData><NbOfTxs>1</NbOfTxs></CtrlData><Undrlyg><TxInf><CxlId>{id}.1</CxlId><OrgnlGrpInf><OrgnlMsgId>\
         {package}</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf><OrgnlEndToEndId>E-{tx}\
         </OrgnlEndToEndId><OrgnlTxId>{tx}</OrgnlTxId><OrgnlIntrBkSttlmAmt Ccy=\"{currency}\">{amount}\
         </OrgnlIntrBkSttlmAmt><OrgnlIntrBkSttlmDt>{DATE}</OrgnlIntrBkSttlmDt><CxlRsnInf><Rsn><Cd>CUST</Cd></Rsn></CxlRsnInf>\
         </TxInf></Undrlyg></FIToFIPmtCxlReq></Document>"
    )
}

/// The texts of all elements of a name, where the name has no attributes.
pub(crate) fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let open = format!("<{name}>");
    xml.split(open.as_str())
        .skip(1)
        .filter_map(|rest| rest.split('<').next())
        .collect()
}
