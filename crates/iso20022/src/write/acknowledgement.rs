//! admi.007, what became of a request, of a hole in a sequence, or of a message that could not be read.

use clearspan_ledger::{Reason, Timestamp};

use super::document::{Head, document};

/// What became of one thing that a participant sent, or failed to send.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    /// What it was called: the request's message identifier, or a sequence number or range such as `17-25`. Empty where
    /// the message could not be read: `NOTPROVIDED` is written.
    pub reference: &'a str,
    /// The message definition, or the name of the sequence; at most 35 characters.
    pub name: Option<&'a str>,
    /// What became of it.
    pub handled: Handled,
    /// When.
    pub at: Option<Timestamp>,
    /// One sentence for people, with the place in the message where there is one; cut after 140 characters.
    pub text: &'a str,
}

/// A status code of request handling: at most 4 letters or digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// `ACPT`: done.
    Accepted,
    /// `PDNG`: taken in, waits (for the second person, for funds).
    Pending,
    /// `MISS`: numbers of the sequence are missing (rule R5).
    Missing,
    /// The code of the reason why it was refused.
    Refused(Reason),
}

impl Handled {
    /// The code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Accepted => "ACPT",
            Self::Pending => "PDNG",
            Self::Missing => "MISS",
            Self::Refused(reason) => reason.code(),
        }
    }
}

/// Appends an admi.007.001.01 with one report for each item.
///
/// # Panics
/// When there is no item: the message cannot say "nothing".
pub fn acknowledgement(out: &mut Vec<u8>, head: &Head<'_>, items: &[Acknowledgement<'_>]) {
    assert!(!items.is_empty(), "a receipt acknowledgement of nothing");
    document(out, head, "admi.007.001.01", "RctAck", |xml| {
        xml.group("MsgId", |xml| {
            xml.id("MsgId", head.message_id);
            xml.time("CreDtTm", head.created);
        });
        for item in items {
            xml.group("Rpt", |xml| {
                xml.group("RltdRef", |xml| {
                    xml.id("Ref", item.reference);
                    xml.optional("MsgNm", item.name);
                });
                xml.group("ReqHdlg", |xml| {
                    xml.code("StsCd", item.handled.code());
                    if let Some(at) = item.at {
                        xml.time("StsDtTm", at);
                    }
                    xml.description("Desc", item.text, 140);
                });
            });
        }
    });
}
