//! Small days written by hand: participants and messages of which every figure is known.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::write;

pub(crate) const DATE: &str = "2026-11-30";

/// A participant with one or several accounts: currency and opening balance.
pub(crate) struct Bank {
    pub(crate) bic: &'static str,
    pub(crate) shard: u16,
    /// Further lines of its table, `refuse_whole = true`.
    pub(crate) more: &'static str,
    pub(crate) accounts: &'static [(&'static str, &'static str)],
}

pub(crate) const fn bank(
    bic: &'static str,
    shard: u16,
    accounts: &'static [(&'static str, &'static str)],
) -> Bank {
    Bank {
        bic,
        shard,
        more: "",
        accounts,
    }
}

/// Writes `participants.toml` and an empty inbox.
pub(crate) fn participants(dir: &Path, shards: u16, banks: &[Bank]) {
    let mut toml = format!("business_date = \"{DATE}\"\nshards = {shards}\n");
    for bank in banks {
        let _ = write!(
            toml,
            "\n[[participant]]\nbic = \"{}\"\nname = \"{}\"\nshard = {}\n{}\n",
            bank.bic, bank.bic, bank.shard, bank.more
        );
        for (currency, opening) in bank.accounts {
            let _ = write!(
                toml,
                "[[participant.account]]\ncurrency = \"{currency}\"\nopening_balance = \"{opening}\"\n"
            );
        }
    }
    write(&dir.join("participants.toml"), toml.as_bytes());
    std::fs::create_dir_all(dir.join("inbox")).expect("an inbox can be made");
}

/// Puts a file into the inbox; `name` may begin with a section.
pub(crate) fn put(dir: &Path, name: &str, xml: &str) {
    write(&dir.join("inbox").join(name), xml.as_bytes());
}

/// One payment of a message.
#[derive(Clone, Debug)]
pub(crate) struct Pay {
    pub(crate) id: String,
    pub(crate) uetr: Option<String>,
    pub(crate) to: &'static str,
    /// `Ccy="EUR"`, or nothing.
    pub(crate) currency: &'static str,
    pub(crate) amount: String,
    pub(crate) name: String,
    /// `PmtTpInf`.
    pub(crate) kind: &'static str,
    /// `SttlmPrty`.
    pub(crate) priority: &'static str,
}

/// A payment that is netted.
pub(crate) fn pay(id: &str, to: &'static str, currency: &'static str, amount: &str) -> Pay {
    Pay {
        id: id.to_owned(),
        uetr: None,
        to,
        currency,
        amount: amount.to_owned(),
        name: "Customer of the sender".to_owned(),
        kind: "",
        priority: "",
    }
}

/// A payment that settles gross.
pub(crate) fn urgent(id: &str, to: &'static str, currency: &'static str, amount: &str) -> Pay {
    Pay {
        priority: "URGT",
        ..pay(id, to, currency, amount)
    }
}

impl Pay {
    /// With a UETR made from a number.
    pub(crate) fn uetr(mut self, number: u64) -> Self {
        self.uetr = Some(uetr(number));
        self
    }

    /// Settle or refuse.
    pub(crate) fn or_refuse(mut self) -> Self {
        self.kind = "<PmtTpInf><LclInstrm><Prtry>SOR</Prtry></LclInstrm></PmtTpInf>";
        self
    }

    fn xml(&self, out: &mut String, from: &str) {
        let Self {
            id,
            to,
            currency,
            amount,
            name,
            kind,
            priority,
            ..
        } = self;
        let uetr = self
            .uetr
            .as_ref()
            .map_or_else(String::new, |uetr| format!("<UETR>{uetr}</UETR>"));
        let currency = if currency.is_empty() {
            String::new()
        } else {
            format!(" Ccy=\"{currency}\"")
        };
        let priority = if priority.is_empty() {
            String::new()
        } else {
            format!("<SttlmPrty>{priority}</SttlmPrty>")
        };
        let _ = write!(
            out,
            "<CdtTrfTxInf><PmtId><EndToEndId>E-{id}</EndToEndId><TxId>{id}</TxId>{uetr}</PmtId>{kind}\
             <IntrBkSttlmAmt{currency}>{amount}</IntrBkSttlmAmt><IntrBkSttlmDt>{DATE}</IntrBkSttlmDt>{priority}\
             <ChrgBr>DEBT</ChrgBr><InstdAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>{name}</Nm>\
             </Dbtr><DbtrAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></DbtrAgt><CdtrAgt><FinInstnId><BICFI>{to}\
             </BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Customer of the receiver</Nm></Cdtr></CdtTrfTxInf>"
        );
    }
}

/// A UUID of version 4 made from a number.
pub(crate) fn uetr(number: u64) -> String {
    format!(
        "{:08x}-0000-4000-8000-{:012x}",
        number % 0xffff_ffff,
        number
    )
}

/// A pacs.008.001.08 without header.
pub(crate) fn pacs008(message_id: &str, from: &str, payments: &[Pay]) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr><MsgId>{message_id}\
         </MsgId><CreDtTm>{DATE}T08:00:00Z</CreDtTm><NbOfTxs>{}</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         <InstgAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></InstgAgt></GrpHdr>",
        payments.len()
    );
    for payment in payments {
        payment.xml(&mut out, from);
    }
    out.push_str("</FIToFICstmrCdtTrf></Document>");
    out
}

/// The same message below a business header, with more of a header than it needs (`PssblDplct`).
pub(crate) fn with_header(document: &str, message_id: &str, from: &str, more: &str) -> String {
    let document = document
        .split_once('\n')
        .map_or(document, |(_, document)| document);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Message><AppHdr xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.02\"><Fr><FIId><FinInstnId><BICFI>{from}\
         </BICFI></FinInstnId></FIId></Fr><To><FIId><FinInstnId><BICFI>CLRSBE22XXX</BICFI></FinInstnId></FIId></To>\
         <BizMsgIdr>{message_id}</BizMsgIdr><MsgDefIdr>pacs.008.001.08</MsgDefIdr><CreDt>{DATE}T08:00:00Z</CreDt>{more}\
         </AppHdr>{document}</Message>"
    )
}

/// The same message with a prefix on every element and white space between them.
pub(crate) fn dressed_otherwise(document: &str) -> String {
    let mut out = String::new();
    let mut rest = document
        .split_once('\n')
        .map_or(document, |(_, document)| document);
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let close = rest[at + 1..].starts_with('/');
        out.push_str(if close { "</q:" } else { "<q:" });
        rest = &rest[at + 1 + usize::from(close)..];
        let end = rest.find('>').expect("a tag ends") + 1;
        out.push_str(&rest[..end]);
        rest = &rest[end..];
        // Only between two tags, or it would be text.
        if rest.starts_with('<')
            && (close || rest[1..].starts_with(|sign: char| sign.is_ascii_uppercase()))
        {
            out.push_str("\r\n\t");
        }
    }
    out.replace("xmlns=", "xmlns:q=")
}

/// A camt.056 for one payment.
pub(crate) fn cancellation(
    message_id: &str,
    from: &str,
    original_message: &str,
    original: &Pay,
) -> String {
    let Pay {
        id,
        currency,
        amount,
        ..
    } = original;
    let uetr = original
        .uetr
        .as_ref()
        .map_or_else(String::new, |uetr| format!("<OrgnlUETR>{uetr}</OrgnlUETR>"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.056.001.08\"><FIToFIPmtCxlReq><Assgnmt><Id>{message_id}</Id>\
         <Assgnr><Agt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></Agt></Assgnr><Assgne><Agt><FinInstnId><BICFI>\
         CLRSBE22XXX</BICFI></FinInstnId></Agt></Assgne><CreDtTm>{DATE}T08:00:00Z</CreDtTm></Assgnmt><CtrlData><NbOfTxs>1\
         </NbOfTxs></CtrlData><Undrlyg><TxInf><CxlId>{message_id}.1</CxlId><OrgnlGrpInf><OrgnlMsgId>{original_message}\
         </OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf><OrgnlEndToEndId>E-{id}</OrgnlEndToEndId>\
         <OrgnlTxId>{id}</OrgnlTxId>{uetr}<OrgnlIntrBkSttlmAmt Ccy=\"{currency}\">{amount}</OrgnlIntrBkSttlmAmt>\
         <OrgnlIntrBkSttlmDt>{DATE}</OrgnlIntrBkSttlmDt><CxlRsnInf><Rsn><Cd>CUST</Cd></Rsn></CxlRsnInf></TxInf></Undrlyg>\
         </FIToFIPmtCxlReq></Document>"
    )
}

/// A pacs.004 that gives back (a part of) a payment received from `to`.
pub(crate) fn payment_return(
    message_id: &str,
    (from, to): (&str, &str),
    original_message: &str,
    original: &Pay,
    returned: &str,
) -> String {
    let Pay {
        id,
        currency,
        amount,
        ..
    } = original;
    let uetr = original
        .uetr
        .as_ref()
        .map_or_else(String::new, |uetr| format!("<OrgnlUETR>{uetr}</OrgnlUETR>"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09\"><PmtRtr><GrpHdr><MsgId>{message_id}</MsgId>\
         <CreDtTm>{DATE}T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf><InstgAgt>\
         <FinInstnId><BICFI>{from}</BICFI></FinInstnId></InstgAgt><InstdAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId>\
         </InstdAgt></GrpHdr><TxInf><RtrId>{message_id}.1</RtrId><OrgnlGrpInf><OrgnlMsgId>{original_message}</OrgnlMsgId>\
         <OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf><OrgnlEndToEndId>E-{id}</OrgnlEndToEndId><OrgnlTxId>{id}\
         </OrgnlTxId>{uetr}<OrgnlIntrBkSttlmAmt Ccy=\"{currency}\">{amount}</OrgnlIntrBkSttlmAmt><OrgnlIntrBkSttlmDt>{DATE}\
         </OrgnlIntrBkSttlmDt><RtrdIntrBkSttlmAmt Ccy=\"{currency}\">{returned}</RtrdIntrBkSttlmAmt><IntrBkSttlmDt>{DATE}\
         </IntrBkSttlmDt><SttlmPrty>URGT</SttlmPrty><RtrRsnInf><Rsn><Cd>FOCR</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr>\
         </Document>"
    )
}
