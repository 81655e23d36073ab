//! camt.029, the answer to a request to cancel (camt.056).

use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId};

use super::document::{Head, document};
use super::status::StatusReason;
use super::version::{CancellationVersion, Definition};
use super::xml::Xml;

/// What became of one payment that was to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancellationStatus {
    /// `ACCR`: cancelled.
    Cancelled,
    /// `RJCR`: not cancelled.
    Rejected,
    /// `PDCR`: passed on to the receiver, who decides.
    Pending,
}

impl CancellationStatus {
    /// The code of one payment.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Cancelled => "ACCR",
            Self::Rejected => "RJCR",
            Self::Pending => "PDCR",
        }
    }
}

/// The answer as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// `CNCL`: all cancelled.
    Cancelled,
    /// `RJCR`: none cancelled.
    Rejected,
    /// `PDCR`: all passed on.
    Pending,
    /// `PECR`: some cancelled, others not.
    Mixed,
}

impl Confirmation {
    /// The answer that the payments' answers add up to; `Rejected` when there are none.
    #[must_use]
    pub fn of(statuses: impl IntoIterator<Item = CancellationStatus>) -> Self {
        let single = |status| match status {
            CancellationStatus::Cancelled => Self::Cancelled,
            CancellationStatus::Rejected => Self::Rejected,
            CancellationStatus::Pending => Self::Pending,
        };
        statuses
            .into_iter()
            .map(single)
            .reduce(|sum, next| if sum == next { sum } else { Self::Mixed })
            .unwrap_or(Self::Rejected)
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Cancelled => "CNCL",
            Self::Rejected => "RJCR",
            Self::Pending => "PDCR",
            Self::Mixed => "PECR",
        }
    }
}

/// The case that the request opened.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Its identifier, at most 35 characters.
    pub id: &'a str,
    /// Who opened it.
    pub creator: Bic,
}

/// A camt.029 without its payments.
#[derive(Clone, Copy, Debug)]
pub struct CancellationAnswer<'a> {
    /// Which version is written; see [`cancellation_answer_version`](super::cancellation_answer_version).
    pub version: CancellationVersion,
    /// The request's identifier (`Assgnmt/Id`): `OrgnlGrpCxlId`.
    pub request_id: &'a str,
    /// The case, where the request named one.
    pub case: Option<Case<'a>>,
    /// The answer as a whole.
    pub confirmation: Confirmation,
    /// The message that carried the payments to cancel, where they are of one: its identifier and what it was.
    pub original: Option<(&'a str, Definition)>,
}

/// One payment of the request.
#[derive(Clone, Copy, Debug)]
pub struct PaymentCancellation<'a> {
    /// `CxlId` of the request, for this payment: `CxlStsId`.
    pub cancellation_id: Option<&'a str>,
    /// The message that carried it, where not given for all.
    pub original: Option<(&'a str, Definition)>,
    /// `InstrId`.
    pub instruction_id: Option<&'a str>,
    /// `EndToEndId`.
    pub end_to_end_id: Option<&'a str>,
    /// `TxId`.
    pub transaction_id: Option<&'a str>,
    /// Its key: a UETR is written, a hash is not.
    pub id: PaymentId,
    /// What became of it.
    pub status: CancellationStatus,
    /// Why.
    pub reason: Option<StatusReason<'a>>,
    /// Its amount, where it is known.
    pub amount: Option<(AmountMinor, Currency)>,
    /// Its settlement date, where it is known.
    pub date: Option<BusinessDate>,
}

/// Appends a camt.029, the payments in the order given.
pub fn cancellation_answer<'a>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    answer: &CancellationAnswer<'_>,
    payments: impl IntoIterator<Item = PaymentCancellation<'a>>,
) {
    let definition = match answer.version {
        CancellationVersion::V09 => "camt.029.001.09",
        CancellationVersion::V13 => "camt.029.001.13",
    };
    document(out, head, definition, "RsltnOfInvstgtn", |xml| {
        xml.group("Assgnmt", |xml| {
            xml.id("Id", head.message_id);
            xml.nested_agent("Assgnr", "Agt", head.from, "BICFI");
            xml.nested_agent("Assgne", "Agt", head.to, "BICFI");
            xml.time("CreDtTm", head.created);
        });
        if let Some(case) = answer.case {
            xml.group("RslvdCase", |xml| {
                xml.id("Id", case.id);
                xml.nested_agent("Cretr", "Agt", case.creator, "BICFI");
            });
        }
        xml.group("Sts", |xml| xml.code("Conf", answer.confirmation.code()));
        xml.group("CxlDtls", |xml| {
            if let Some((id, definition)) = answer.original {
                xml.group("OrgnlGrpInfAndSts", |xml| {
                    xml.optional("OrgnlGrpCxlId", Some(answer.request_id));
                    original(xml, id, definition);
                });
            }
            for payment in payments {
                xml.group("TxInfAndSts", |xml| payment_answer(xml, &payment));
            }
        });
    });
}

fn original(xml: &mut Xml<'_>, id: &str, definition: Definition) {
    xml.id("OrgnlMsgId", id);
    xml.text("OrgnlMsgNmId", definition.text().as_str());
}

fn payment_answer(xml: &mut Xml<'_>, payment: &PaymentCancellation<'_>) {
    xml.optional("CxlStsId", payment.cancellation_id);
    if let Some((id, definition)) = payment.original {
        xml.group("OrgnlGrpInf", |xml| original(xml, id, definition));
    }
    xml.optional("OrgnlInstrId", payment.instruction_id);
    xml.optional("OrgnlEndToEndId", payment.end_to_end_id);
    xml.optional("OrgnlTxId", payment.transaction_id);
    if let PaymentId::Uetr(bits) = payment.id {
        xml.uetr("OrgnlUETR", bits);
    }
    xml.code("TxCxlSts", payment.status.code());
    if let Some(reason) = payment.reason {
        reason.write(xml, "CxlStsRsnInf");
    }
    if let Some((amount, currency)) = payment.amount {
        xml.amount(
            "OrgnlIntrBkSttlmAmt",
            u128::from(amount.minor()),
            currency,
            currency.exponent(),
        );
    }
    if let Some(date) = payment.date {
        xml.date("OrgnlIntrBkSttlmDt", date);
    }
}

#[cfg(test)]
mod tests {
    use super::{CancellationStatus, Confirmation};

    #[test]
    fn single_answers_add_up() {
        use CancellationStatus::{Cancelled, Pending, Rejected};
        assert_eq!(Confirmation::of([Cancelled, Cancelled]).code(), "CNCL");
        assert_eq!(Confirmation::of([Rejected]).code(), "RJCR");
        assert_eq!(Confirmation::of([Pending, Pending]).code(), "PDCR");
        assert_eq!(
            Confirmation::of([Cancelled, Pending, Cancelled]).code(),
            "PECR"
        );
        assert_eq!(Confirmation::of([]).code(), "RJCR");
    }
}
