//! pacs.002, the status of a message and of its payments.

use clearspan_ledger::{
    BusinessDate, CycleNumber, LogIndex, PaymentId, Reason, ShardId, Timestamp,
};

use super::document::{Head, document};
use super::version::{Definition, StatusVersion};
use super::xml::{Xml, fits_18_digits, push_number};

/// Where a message or payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `RCVD`: stored, not checked yet. For messages only.
    Received,
    /// `ACTC`: stored and checked.
    Accepted,
    /// `PART`: some payments accepted, others not, or not yet. For messages only.
    Partial,
    /// `PDNG`: queued, with the reason why it waits.
    Pending,
    /// `ACSP`: in a running cycle.
    InProcess,
    /// `ACSC`: settled, final.
    Settled,
    /// `RJCT`: refused.
    Rejected,
    /// `CANC`: cancelled while queued. The code lists of pacs.002.001.03 lack it; `RJCT` is written there.
    Cancelled,
}

impl Status {
    /// The code in a version.
    #[must_use]
    pub const fn code(self, version: StatusVersion) -> &'static str {
        match self {
            Self::Received => "RCVD",
            Self::Accepted => "ACTC",
            Self::Partial => "PART",
            Self::Pending => "PDNG",
            Self::InProcess => "ACSP",
            Self::Settled => "ACSC",
            Self::Rejected => "RJCT",
            Self::Cancelled if matches!(version, StatusVersion::V03) => "RJCT",
            Self::Cancelled => "CANC",
        }
    }
}

/// The point past which a settlement cannot be undone: a shard and a log index. Written `shard:index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finality {
    /// The shard whose log holds the settlement.
    pub shard: ShardId,
    /// Its place there.
    pub index: LogIndex,
}

impl Finality {
    /// At most 26 characters of the 35.
    pub(super) fn write(self, xml: &mut Xml<'_>, tag: &str) {
        xml.open(tag);
        push_number(xml.out, u64::from(self.shard.get()));
        xml.out.push(b':');
        push_number(xml.out, self.index.get());
        xml.close(tag);
    }
}

/// A netting cycle as a reference, `CYCLE-42`.
pub(super) fn cycle_reference(xml: &mut Xml<'_>, tag: &str, cycle: CycleNumber) {
    xml.open(tag);
    xml.raw("CYCLE-");
    push_number(xml.out, u64::from(cycle.get()));
    xml.close(tag);
}

/// Why a message or payment has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusReason<'a> {
    /// An external code of 1 to 4 characters; a longer one, up to 35, is written as proprietary.
    pub code: &'a str,
    /// One sentence for people, cut after 105 characters; may be empty.
    pub text: &'a str,
}

impl From<Reason> for StatusReason<'static> {
    fn from(reason: Reason) -> Self {
        Self {
            code: reason.code(),
            text: reason.text(),
        }
    }
}

impl StatusReason<'_> {
    /// `tag` with `Rsn` and `AddtlInf`.
    pub(super) fn write(self, xml: &mut Xml<'_>, tag: &str) {
        xml.group(tag, |xml| {
            if !self.code.is_empty() {
                let kind = if self.code.chars().count() <= 4 {
                    "Cd"
                } else {
                    "Prtry"
                };
                xml.group("Rsn", |xml| xml.text(kind, self.code));
            }
            xml.description("AddtlInf", self.text, 105);
        });
    }
}

/// A sum of amounts, in minor units of `exponent` decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Not negative.
    pub minor: u128,
    /// Decimals of the minor unit.
    pub exponent: u8,
}

impl Sum {
    /// Nothing is written for a sum of more than 18 digits: the type cannot hold it, and the element is optional.
    pub(super) fn write(self, xml: &mut Xml<'_>, tag: &str) {
        if fits_18_digits(self.minor) {
            xml.decimal(tag, self.minor, self.exponent);
        }
    }
}

/// The message that is answered.
#[derive(Clone, Copy, Debug)]
pub struct OriginalMessage<'a> {
    /// Its identifier; empty where it could not be read.
    pub message_id: &'a str,
    /// What it was.
    pub definition: Definition,
    /// Its `CreDtTm`, as sent.
    pub created: Option<&'a str>,
    /// Its number of payments.
    pub count: Option<u64>,
    /// Its control sum.
    pub sum: Option<Sum>,
}

impl OriginalMessage<'_> {
    fn write_reference(&self, xml: &mut Xml<'_>) {
        xml.id("OrgnlMsgId", self.message_id);
        xml.text("OrgnlMsgNmId", self.definition.text().as_str());
        xml.optional("OrgnlCreDtTm", self.created);
    }
}

/// How many of the message's payments have a status, and their sum.
#[derive(Clone, Copy, Debug)]
pub struct StatusCount {
    /// The status.
    pub status: Status,
    /// How many payments.
    pub count: u64,
    /// Their sum, where they are of one currency.
    pub sum: Option<Sum>,
}

/// A pacs.002 without its payments.
#[derive(Clone, Copy, Debug)]
pub struct StatusReport<'a> {
    /// Which version is written; see [`status_report_version`](super::status_report_version).
    pub version: StatusVersion,
    /// The message that is answered.
    pub original: OriginalMessage<'a>,
    /// Status of the message; `None` in a report about some of its payments.
    pub status: Option<Status>,
    /// Why, where the message as a whole was refused.
    pub reason: Option<StatusReason<'a>>,
    /// Counts by status; may be empty.
    pub counts: &'a [StatusCount],
}

/// Date or instant of settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveDate {
    /// The business date.
    Date(BusinessDate),
    /// The instant of finality.
    At(Timestamp),
}

/// One payment of a pacs.002. Identifiers are those of the original, each where it was given.
#[derive(Clone, Copy, Debug)]
pub struct PaymentStatus<'a> {
    /// `InstrId`.
    pub instruction_id: Option<&'a str>,
    /// `EndToEndId`.
    pub end_to_end_id: Option<&'a str>,
    /// `TxId`.
    pub transaction_id: Option<&'a str>,
    /// The payment's key: a UETR is written from version `.10` on, a hash is not.
    pub id: PaymentId,
    /// Where it stands: not `Received` and not `Partial`.
    pub status: Status,
    /// Why.
    pub reason: Option<StatusReason<'a>>,
    /// `AccptncDtTm`: when the payment entered the system.
    pub accepted: Option<Timestamp>,
    /// `FctvIntrBkSttlmDt`, from version `.10` on: when it settled.
    pub effective: Option<EffectiveDate>,
    /// `AcctSvcrRef`: the netting cycle, as `CYCLE-42`.
    pub cycle: Option<CycleNumber>,
    /// `ClrSysRef`: the finality reference, as `shard:index`.
    pub finality: Option<Finality>,
}

/// Appends a pacs.002: the report, and the payments in the order given (none for a status of the whole message alone).
pub fn status_report<'a>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    report: &StatusReport<'_>,
    payments: impl IntoIterator<Item = PaymentStatus<'a>>,
) {
    let version = report.version;
    let bic_tag = if version == StatusVersion::V03 {
        "BIC"
    } else {
        "BICFI"
    };
    document(out, head, definition(version), "FIToFIPmtStsRpt", |xml| {
        xml.group("GrpHdr", |xml| {
            xml.id("MsgId", head.message_id);
            xml.time("CreDtTm", head.created);
            xml.agent("InstgAgt", head.from, bic_tag);
            xml.agent("InstdAgt", head.to, bic_tag);
        });
        xml.group("OrgnlGrpInfAndSts", |xml| group_status(xml, report));
        for payment in payments {
            xml.open("TxInfAndSts");
            payment_status(xml, version, &payment);
            xml.close("TxInfAndSts");
        }
    });
}

const fn definition(version: StatusVersion) -> &'static str {
    match version {
        StatusVersion::V03 => "pacs.002.001.03",
        StatusVersion::V08 => "pacs.002.001.08",
        StatusVersion::V10 => "pacs.002.001.10",
        StatusVersion::V11 => "pacs.002.001.11",
        StatusVersion::V12 => "pacs.002.001.12",
        StatusVersion::V14 => "pacs.002.001.14",
        StatusVersion::V15 => "pacs.002.001.15",
    }
}

fn group_status(xml: &mut Xml<'_>, report: &StatusReport<'_>) {
    report.original.write_reference(xml);
    if let Some(count) = report.original.count {
        xml.number("OrgnlNbOfTxs", count);
    }
    if let Some(sum) = report.original.sum {
        sum.write(xml, "OrgnlCtrlSum");
    }
    if let Some(status) = report.status {
        xml.code("GrpSts", status.code(report.version));
    }
    if let Some(reason) = report.reason {
        reason.write(xml, "StsRsnInf");
    }
    for count in report.counts {
        xml.group("NbOfTxsPerSts", |xml| {
            xml.number("DtldNbOfTxs", count.count);
            xml.code("DtldSts", count.status.code(report.version));
            if let Some(sum) = count.sum {
                sum.write(xml, "DtldCtrlSum");
            }
        });
    }
}

fn payment_status(xml: &mut Xml<'_>, version: StatusVersion, payment: &PaymentStatus<'_>) {
    xml.optional("OrgnlInstrId", payment.instruction_id);
    xml.optional("OrgnlEndToEndId", payment.end_to_end_id);
    xml.optional("OrgnlTxId", payment.transaction_id);
    if let (PaymentId::Uetr(bits), true) = (payment.id, version >= StatusVersion::V10) {
        xml.uetr("OrgnlUETR", bits);
    }
    xml.code("TxSts", payment.status.code(version));
    if let Some(reason) = payment.reason {
        reason.write(xml, "StsRsnInf");
    }
    if let Some(accepted) = payment.accepted {
        xml.time("AccptncDtTm", accepted);
    }
    if let (Some(effective), true) = (payment.effective, version >= StatusVersion::V10) {
        xml.group("FctvIntrBkSttlmDt", |xml| match effective {
            EffectiveDate::Date(date) => xml.date("Dt", date),
            EffectiveDate::At(at) => xml.time("DtTm", at),
        });
    }
    if let Some(cycle) = payment.cycle {
        cycle_reference(xml, "AcctSvcrRef", cycle);
    }
    if let Some(finality) = payment.finality {
        finality.write(xml, "ClrSysRef");
    }
}
