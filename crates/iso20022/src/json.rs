//! Messages in JSON: another spelling of the ISO 20022 messages that are read, never another way of deciding (ADR 0023).
//!
//! A message in JSON is written as the XML message that it stands for, and that is read ([`crate::read`]): the same checks in
//! the same order with the same codes, the same digests (so that a message sent once in each form is a duplicate), and
//! the receiver gets the payment as ISO 20022. What JSON cannot say (structured addresses, regulatory reporting, charges,
//! cover payments) is sent in XML.
//!
//! Amounts are texts with decimals; a number is refused, as is every unknown field, with its place.

mod write;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use write::{place, to_xml};

/// A message in JSON that has another form than [`Message`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {place}: {detail}")]
pub struct FormFault {
    /// Where, such as `transfer.payments[2].amount.value`; `.` for the whole.
    pub place: String,
    /// What was expected there.
    pub detail: String,
}

/// One message: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// One payment or a package of payments (pacs.008).
    Transfer(Transfer),
    /// Payments sent back, wholly or in part (pacs.004).
    Return(Return),
    /// Payments to be cancelled while they wait, or asked back once settled (camt.056).
    Cancellation(Cancellation),
    /// What became of payments (pacs.028).
    StatusRequest(StatusRequest),
}

/// An exact amount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// ISO 4217 code.
    pub currency: String,
    /// A text such as `1250.00`, with at most the currency's decimals.
    pub value: String,
}

/// How a message's payments settle (ADR 0008).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettleBy {
    /// Gross, before all others.
    Urgent,
    /// Gross, before normal ones.
    High,
    /// Gross, in turn.
    Normal,
    /// In the next netting cycle.
    #[default]
    Net,
}

/// Who pays or is paid behind a participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Party {
    /// Name, at most 140 characters.
    pub name: String,
    /// IBAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iban: Option<String>,
    /// An account that is no IBAN, at most 34 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// pacs.008.001.08
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Identifier, 1 to 35 characters, used once a business day; ends with the number where the sender numbers messages.
    pub message_id: String,
    /// Business date, `2026-11-30`.
    pub business_date: String,
    /// How all of its payments settle.
    #[serde(default)]
    pub settlement: SettleBy,
    /// Refuse what cannot settle at once, rather than let it wait. Gross payments only.
    #[serde(default)]
    pub settle_or_refuse: bool,
    /// One payment, or a package.
    pub payments: Vec<Payment>,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    /// UETR: a UUID of version 4 in small letters. This or `transaction_id` must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uetr: Option<String>,
    /// Identifier among the sender's payments, at most 35 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
    /// Reference that reaches the creditor; `NOTPROVIDED` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_to_end_id: Option<String>,
    /// Reference between participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_id: Option<String>,
    /// Amount.
    pub amount: Amount,
    /// The participant that is credited, by BIC.
    pub receiver: String,
    /// Who pays.
    pub debtor: Party,
    /// Who is paid.
    pub creditor: Party,
    /// Not before this time of day, with zone: `10:30:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_time: Option<String>,
    /// Tell the sender when it still waits at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_time: Option<String>,
    /// Refuse it when it still waits at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject_time: Option<String>,
    /// For the creditor, at most 140 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remittance: Option<String>,
}

/// pacs.004.001.09
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Return {
    /// As in a transfer.
    pub message_id: String,
    /// Business date.
    pub business_date: String,
    /// What is sent back.
    pub payments: Vec<ReturnedPayment>,
}

/// One payment sent back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReturnedPayment {
    /// The return's own identifier, at most 35 characters.
    pub return_id: String,
    /// The payment that is returned.
    pub original: Original,
    /// How much is sent back.
    pub amount: Amount,
    /// ISO 20022 return reason, such as `FOCR`.
    pub reason: String,
    /// The participant that is credited: the original's sender, by BIC.
    pub receiver: String,
}

/// A payment by its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// Its UETR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uetr: Option<String>,
    /// Its transaction identifier, where it has no UETR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
}

/// camt.056.001.08
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancellation {
    /// As in a transfer.
    pub message_id: String,
    /// What is to be cancelled.
    pub payments: Vec<CancelledPayment>,
}

/// One payment to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelledPayment {
    /// The request's own identifier, at most 35 characters.
    pub cancellation_id: String,
    /// The payment.
    pub original: Original,
    /// Its amount.
    pub amount: Amount,
    /// Its business date.
    pub business_date: String,
    /// ISO 20022 cancellation reason, such as `CUST` or `DUPL`.
    pub reason: String,
}

/// pacs.028.001.03
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {
    /// Identifier, 1 to 35 characters.
    pub message_id: String,
    /// The payments asked about.
    pub payments: Vec<Original>,
}

impl Message {
    /// Reads the form; what it says is checked when its XML is read.
    ///
    /// ```
    /// use clearspan_iso20022::json::Message;
    ///
    /// let text = br#"{ "status_request": { "message_id": "Q-1", "payments": [{ "uetr": 5 }] } }"#;
    /// let fault = Message::parse(text).unwrap_err();
    /// assert_eq!(fault.place, "status_request.payments[0].uetr");
    /// ```
    ///
    /// # Errors
    /// [`FormFault`] names the place.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormFault> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let message = serde_path_to_error::deserialize(&mut json).map_err(|error| FormFault {
            place: error.path().to_string(),
            detail: error.inner().to_string(),
        })?;
        json.end().map_err(|error| FormFault {
            place: ".".to_owned(),
            detail: error.to_string(),
        })?;
        Ok(message)
    }
}
