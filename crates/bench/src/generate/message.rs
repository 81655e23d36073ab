//! The XML of pacs.008 and pacs.009 messages: element order of the published schemas, no insignificant white space.
//!
//! A message here may be wrong on purpose: nothing is checked, what the fields say is written.

use std::fmt::Write as _;

use super::rng::Rng;
use super::{Version, Wrapping};

/// Which of the two credit transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// pacs.008, between customers.
    Customer,
    /// pacs.009, between banks.
    Bank,
}

impl Kind {
    /// The message name of the namespace. A bank transfer is always of the version most seen.
    pub(crate) fn name(self, version: Version) -> String {
        match self {
            Self::Customer => format!("pacs.008.001.{:02}", version.number()),
            Self::Bank => "pacs.009.001.08".to_owned(),
        }
    }
}

/// One payment of a message. Absent fields are not written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payment {
    pub(crate) instruction_id: Option<String>,
    pub(crate) end_to_end_id: Option<String>,
    pub(crate) payment_id: Option<String>,
    pub(crate) uetr: Option<String>,
    /// `PmtTpInf`, whole.
    pub(crate) type_information: String,
    pub(crate) currency: Option<String>,
    pub(crate) amount: String,
    pub(crate) value_date: Option<String>,
    pub(crate) priority: Option<&'static str>,
    /// The inside of `SttlmTmReq`.
    pub(crate) times: String,
    /// `InstdAmt` and `ChrgBr`, whole; empty for a bank transfer.
    pub(crate) charges: String,
    pub(crate) instructed_agent: Option<String>,
    /// Everything from `UltmtDbtr` to `SplmtryData`.
    pub(crate) tail: String,
}

/// A message: the group header's fields and its payments.
pub(crate) struct Message<'a> {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) wrapping: Wrapping,
    pub(crate) message_id: String,
    pub(crate) created: String,
    pub(crate) count: String,
    pub(crate) control_sum: Option<String>,
    /// Currency and amount of `TtlIntrBkSttlmAmt`.
    pub(crate) total: Option<(String, String)>,
    pub(crate) value_date: Option<String>,
    /// `PmtTpInf`, whole.
    pub(crate) type_information: String,
    pub(crate) instructing_agent: String,
    pub(crate) operator: &'a str,
    pub(crate) payments: &'a [Payment],
}

impl Message<'_> {
    /// Appends the message to `out`.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let name = self.kind.name(self.version);
        if self.wrapping == Wrapping::Message {
            out.push_str("<Message>");
            let header = Header {
                from: &self.instructing_agent,
                to: self.operator,
                message_id: &self.message_id,
                name: &name,
                created: &self.created,
            };
            header.write(out);
        }
        self.write_document(out, &name);
        if self.wrapping == Wrapping::Message {
            out.push_str("</Message>");
        }
    }

    /// Appends the `Document` element alone.
    pub(crate) fn write_document(&self, out: &mut String, name: &str) {
        let root = match self.kind {
            Kind::Customer => "FIToFICstmrCdtTrf",
            Kind::Bank => "FICdtTrf",
        };
        out.push_str("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:");
        out.push_str(name);
        out.push_str("\"><");
        out.push_str(root);
        out.push('>');
        self.write_group(out);
        for payment in self.payments {
            payment.write(out);
        }
        out.push_str("</");
        out.push_str(root);
        out.push_str("></Document>");
    }

    fn write_group(&self, out: &mut String) {
        out.push_str("<GrpHdr>");
        element(out, "MsgId", &self.message_id);
        element(out, "CreDtTm", &self.created);
        element(out, "NbOfTxs", &self.count);
        optional(out, "CtrlSum", self.control_sum.as_deref());
        if let Some((currency, amount)) = &self.total {
            money(out, "TtlIntrBkSttlmAmt", Some(currency), amount);
        }
        optional(out, "IntrBkSttlmDt", self.value_date.as_deref());
        out.push_str("<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>");
        out.push_str(&self.type_information);
        agent(out, "InstgAgt", &self.instructing_agent);
        out.push_str("</GrpHdr>");
    }
}

impl Payment {
    fn write(&self, out: &mut String) {
        out.push_str("<CdtTrfTxInf><PmtId>");
        optional(out, "InstrId", self.instruction_id.as_deref());
        optional(out, "EndToEndId", self.end_to_end_id.as_deref());
        optional(out, "TxId", self.payment_id.as_deref());
        optional(out, "UETR", self.uetr.as_deref());
        out.push_str("</PmtId>");
        out.push_str(&self.type_information);
        money(
            out,
            "IntrBkSttlmAmt",
            self.currency.as_deref(),
            &self.amount,
        );
        optional(out, "IntrBkSttlmDt", self.value_date.as_deref());
        optional(out, "SttlmPrty", self.priority);
        if !self.times.is_empty() {
            out.push_str("<SttlmTmReq>");
            out.push_str(&self.times);
            out.push_str("</SttlmTmReq>");
        }
        out.push_str(&self.charges);
        if let Some(instructed) = &self.instructed_agent {
            agent(out, "InstdAgt", instructed);
        }
        out.push_str(&self.tail);
        out.push_str("</CdtTrfTxInf>");
    }
}

/// The business application header (head.001.001.02).
pub(crate) struct Header<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) created: &'a str,
}

impl Header<'_> {
    /// Appends `AppHdr` to `out`.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("<AppHdr xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.02\">");
        for (name, bic) in [("Fr", self.from), ("To", self.to)] {
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<{name}><FIId><FinInstnId><BICFI>{bic}</BICFI></FinInstnId></FIId></{name}>"
            );
        }
        element(out, "BizMsgIdr", self.message_id);
        element(out, "MsgDefIdr", self.name);
        element(out, "CreDt", self.created);
        out.push_str("</AppHdr>");
    }
}

/// Appends `<name>text</name>`, escaping the text.
pub(crate) fn element(out: &mut String, name: &str, text: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    escape(out, text);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

fn optional(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        element(out, name, text);
    }
}

/// Appends an amount element; without currency the attribute is missing.
pub(crate) fn money(out: &mut String, name: &str, currency: Option<&str>, amount: &str) {
    out.push('<');
    out.push_str(name);
    if let Some(currency) = currency {
        out.push_str(" Ccy=\"");
        out.push_str(currency);
        out.push('"');
    }
    out.push('>');
    out.push_str(amount);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Appends an agent known by its BIC.
pub(crate) fn agent(out: &mut String, name: &str, bic: &str) {
    out.push('<');
    out.push_str(name);
    out.push_str("><FinInstnId><BICFI>");
    out.push_str(bic);
    out.push_str("</BICFI></FinInstnId></");
    out.push_str(name);
    out.push('>');
}

fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

/// The tail of a bank transfer: both banks stand for themselves.
pub(crate) fn bank_tail(debtor: &str, creditor: &str) -> String {
    let mut tail = String::new();
    agent(&mut tail, "Dbtr", debtor);
    agent(&mut tail, "Cdtr", creditor);
    tail
}

/// `InstdAmt` in a fifth of the payments, and who bears the charges.
pub(crate) fn charges(rng: &mut Rng, currency: &str, amount: &str) -> String {
    let mut text = String::new();
    if rng.percent(20) {
        money(&mut text, "InstdAmt", Some(currency), amount);
    }
    element(
        &mut text,
        "ChrgBr",
        rng.pick(&["SLEV", "SLEV", "SHAR", "DEBT"]),
    );
    text
}
