//! Identifiers. Two integers that a caller could swap have types of their own.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name($inner);

        impl $name {
            /// From its number.
            #[must_use]
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }

            /// Its number.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// The place of this number in a table indexed by it.
            #[must_use]
            // Some of the numbers are narrower, so an expectation would not hold for them.
            #[allow(
                clippy::cast_possible_truncation,
                reason = "tables of a ledger fit the memory of the 64-bit machines it runs on"
            )]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// A subset of the participants with its own Raft group, log and ledger; counted from 0. Shard 0 also coordinates.
    ShardId(u16)
}
number! {
    /// A participant's place in the directory, the same in every shard.
    ParticipantId(u16)
}
number! {
    /// A position in one shard's journal, from 1.
    LogIndex(u64)
}
number! {
    /// A message taken in by one shard, from 0 and never reused.
    MessageNo(u64)
}
number! {
    /// A payment taken in by one shard, from 0 and never reused, in order of arrival.
    PaymentNo(u64)
}
number! {
    /// A netting cycle of the whole cluster, from 1 and never reused.
    CycleNumber(u32)
}

/// A payment anywhere in the cluster: the shard that took it in, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PaymentRef {
    /// The sender's home shard.
    pub shard: ShardId,
    /// Its number there.
    pub payment: PaymentNo,
}

/// The key of a payment for its sender and business date (domain rule R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaymentId {
    /// The UETR's 128 bits (a lower-case UUID of version 4).
    Uetr(u128),
    /// The first 128 bits of a hash of the transaction identifier, where the message carries no UETR.
    Transaction(u128),
}

impl PaymentId {
    /// The 128 bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        match self {
            Self::Uetr(bits) | Self::Transaction(bits) => bits,
        }
    }

    /// From 128 bits: a UETR when the version nibble is 4, a transaction's key when it is 0, else `None`.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Option<Self> {
        match bits >> 76 & 0xF {
            0 => Some(Self::Transaction(bits)),
            4 => Some(Self::Uetr(bits)),
            _ => None,
        }
    }

    /// The key of a transaction identifier: XXH3 of its bytes, marked so that it never equals a UETR (a UUID's version
    /// nibble is 4, here it is 0).
    #[must_use]
    pub fn of_transaction(id: &str) -> Self {
        Self::Transaction(xxhash_rust::xxh3::xxh3_128(id.as_bytes()) & !(0xF << 76))
    }

    /// Reads a UETR: 36 characters, lower-case hexadecimal, version 4, variant 8 to b.
    #[must_use]
    pub fn parse_uetr(text: &[u8]) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        let mut bits = 0_u128;
        for (at, &byte) in text.iter().enumerate() {
            let digit = match byte {
                b'-' if matches!(at, 8 | 13 | 18 | 23) => continue,
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            if matches!(at, 8 | 13 | 18 | 23) {
                return None;
            }
            bits = bits << 4 | u128::from(digit);
        }
        (bits >> 76 & 0xF == 4 && bits >> 62 & 0b11 == 0b10).then_some(Self::Uetr(bits))
    }
}

impl fmt::Display for PaymentId {
    /// A UETR in its usual form; a transaction key as `tx:` and 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uetr(bits) => write!(
                f,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                bits >> 96,
                bits >> 80 & 0xFFFF,
                bits >> 64 & 0xFFFF,
                bits >> 48 & 0xFFFF,
                bits & 0xFFFF_FFFF_FFFF
            ),
            Self::Transaction(bits) => write!(f, "tx:{bits:032x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PaymentId;

    #[test]
    fn uetr_reads_and_prints() {
        let text = "8a562c67-ca16-48ba-b074-65581be6f001";
        let id = PaymentId::parse_uetr(text.as_bytes());
        assert_eq!(id.map(|id| id.to_string()).as_deref(), Some(text));
        for bad in [
            "8A562C67-CA16-48BA-B074-65581BE6F001",
            "8a562c67-ca16-38ba-b074-65581be6f001",
            "8a562c67-ca16-48ba-c074-65581be6f001",
            "8a562c67ca1648bab07465581be6f001",
            "8a562c67-ca16-48ba-b074-65581be6f00",
            "8a562c67-ca16-48ba-b07465581be6f0011",
        ] {
            assert_eq!(PaymentId::parse_uetr(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_transaction_key_is_never_a_uetr() {
        for id in ["", "A", "TX-1", "8a562c67-ca16-48ba-b074-65581be6f001"] {
            assert_eq!(PaymentId::of_transaction(id).bits() >> 76 & 0xF, 0);
        }
    }
}
