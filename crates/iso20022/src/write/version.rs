//! Which version of our messages answers which version of theirs, and what a version lacks.

use clearspan_ledger::message::MessageKind;

/// A message definition of a participant's message, such as `pacs.008.001.08`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which message.
    pub kind: MessageKind,
    /// Its version, 8 for `.001.08`.
    pub version: u8,
}

impl Definition {
    /// Its name as ASCII: `pacs.008.001.08`.
    pub(super) fn text(self) -> DefinitionText {
        let mut text = *b"pacs.008.001.00";
        text[..8].copy_from_slice(self.kind.name().as_bytes());
        // A version has two digits in its name.
        text[13] = b'0' + self.version / 10 % 10;
        text[14] = b'0' + self.version % 10;
        DefinitionText(text)
    }

    /// The name of the BIC element in this version: `BICFI` since the second generation of the message.
    pub(crate) const fn bic_tag(self) -> &'static str {
        let last_old = if matches!(self.kind, MessageKind::Cancellation) {
            1
        } else {
            2
        };
        if self.version <= last_old {
            "BIC"
        } else {
            "BICFI"
        }
    }
}

pub(super) struct DefinitionText([u8; 15]);

impl DefinitionText {
    pub(super) fn as_str(&self) -> &str {
        // `text` fills it from ASCII alone.
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

macro_rules! versions {
    ($(#[$doc:meta])* $name:ident { $( $variant:ident = $number:literal, )+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( #[doc = concat!("`.001.", $number, "`")] $variant, )+
        }

        impl $name {
            /// All versions that are written.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The end of the message's name: `001.08`.
            #[must_use]
            pub const fn suffix(self) -> &'static str {
                match self { $( Self::$variant => concat!("001.", $number), )+ }
            }
        }
    };
}

versions! {
    /// Version of a pacs.002 that we write.
    StatusVersion { V03 = "03", V08 = "08", V10 = "10", V11 = "11", V12 = "12", V14 = "14", V15 = "15", }
}

versions! {
    /// Version of a camt.052, camt.053 or camt.054 that we write.
    CashVersion { V02 = "02", V04 = "04", V08 = "08", V12 = "12", }
}

versions! {
    /// Version of a camt.029 that we write.
    CancellationVersion { V09 = "09", V13 = "13", }
}

/// The pacs.002 that answers a message: of the same yearly release of the ISO 20022 repository, so that a participant
/// needs one generation of schemas (domain 4: answer in the sender's version). Older than served: the oldest; newer:
/// the newest.
#[must_use]
pub const fn status_report_version(kind: MessageKind, version: u8) -> StatusVersion {
    match kind {
        MessageKind::CustomerTransfer => match version {
            0..=5 => StatusVersion::V03,
            6 | 7 => StatusVersion::V08,
            8 => StatusVersion::V10,
            9 => StatusVersion::V11,
            10 | 11 => StatusVersion::V12,
            12 => StatusVersion::V14,
            _ => StatusVersion::V15,
        },
        MessageKind::BankTransfer | MessageKind::CoverTransfer | MessageKind::Cancellation => {
            match version {
                0..=5 => StatusVersion::V03,
                6 | 7 => StatusVersion::V08,
                8 => StatusVersion::V10,
                9 => StatusVersion::V11,
                10 => StatusVersion::V12,
                11 => StatusVersion::V14,
                _ => StatusVersion::V15,
            }
        }
        MessageKind::Return => match version {
            0..=5 => StatusVersion::V03,
            6..=8 => StatusVersion::V08,
            9 => StatusVersion::V10,
            10 => StatusVersion::V11,
            11 | 12 => StatusVersion::V12,
            13 => StatusVersion::V14,
            _ => StatusVersion::V15,
        },
    }
}

/// The camt.029 that answers a camt.056 of a version: `.13` from `.11` on, else `.09`.
#[must_use]
pub const fn cancellation_answer_version(request_version: u8) -> CancellationVersion {
    if request_version >= 11 {
        CancellationVersion::V13
    } else {
        CancellationVersion::V09
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_answers_itself() {
        use MessageKind::{BankTransfer, Cancellation, CustomerTransfer, Return};
        for (kind, version, answer) in [
            (CustomerTransfer, 2, "001.03"),
            (CustomerTransfer, 8, "001.10"),
            (CustomerTransfer, 13, "001.15"),
            (CustomerTransfer, 99, "001.15"),
            (BankTransfer, 8, "001.10"),
            (BankTransfer, 12, "001.15"),
            (Return, 9, "001.10"),
            (Return, 14, "001.15"),
            (Cancellation, 8, "001.10"),
        ] {
            assert_eq!(
                status_report_version(kind, version).suffix(),
                answer,
                "{kind:?} {version}"
            );
        }
        assert_eq!(cancellation_answer_version(8).suffix(), "001.09");
        assert_eq!(cancellation_answer_version(11).suffix(), "001.13");
    }

    #[test]
    fn definitions_are_named_in_full() {
        let name = |kind, version| Definition { kind, version }.text().as_str().to_owned();
        assert_eq!(name(MessageKind::CustomerTransfer, 8), "pacs.008.001.08");
        assert_eq!(name(MessageKind::Cancellation, 11), "camt.056.001.11");
    }

    #[test]
    fn the_first_generation_names_its_bic_otherwise() {
        let tag = |kind, version| Definition { kind, version }.bic_tag();
        assert_eq!(tag(MessageKind::CustomerTransfer, 2), "BIC");
        assert_eq!(tag(MessageKind::CustomerTransfer, 3), "BICFI");
        assert_eq!(tag(MessageKind::Cancellation, 1), "BIC");
        assert_eq!(tag(MessageKind::Cancellation, 2), "BICFI");
    }
}
