//! Values of single elements: identifiers, agents, amounts.

use clearspan_ledger::money::{AmountFault, parse_amount};
use clearspan_ledger::{AmountMinor, Bic, Currency, PaymentId, Reason, Text};

use super::{Agent, Gather, Place, Role, Stop, transaction_id, values};

impl Gather<'_> {
    pub(super) fn message_id(&mut self, text: &[u8], place: &dyn Place) {
        let text = String::from_utf8_lossy(text).into_owned();
        if text.is_empty() || Text::new(&text).is_none() {
            let mut stop = Stop::new(
                place.at(),
                Reason::MessageIdInvalid,
                "empty, or longer than 35 bytes",
            );
            stop.path = Some(place.path());
            self.fatal.get_or_insert(stop);
        }
        self.message_id = Some(text);
    }

    pub(super) fn code(&mut self, text: &[u8], codes: &[&[u8]], place: &dyn Place) {
        if !codes.contains(&text) {
            self.fault(place, Reason::FieldInvalid, "not a code of this element");
        }
    }

    pub(super) fn id_len(&mut self, text: &[u8], place: &dyn Place) {
        // Characters, not bytes: continuation bytes do not count.
        let characters = || text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        if text.is_empty() || (text.len() > 35 && characters() > 35) {
            self.fault(
                place,
                Reason::IdInvalid,
                "empty, or longer than 35 characters",
            );
        }
    }

    pub(super) fn uetr(&mut self, text: &[u8], place: &dyn Place) -> Option<PaymentId> {
        let uetr = PaymentId::parse_uetr(text);
        if uetr.is_none() {
            self.fault(
                place,
                Reason::IdInvalid,
                "not a lower-case UUID of version 4",
            );
            // It still tells the payment apart from the others.
            return transaction_id(text);
        }
        uetr
    }

    /// A legal entity identifier, wherever in the message it stands.
    pub(crate) fn entity(&mut self, text: &[u8], place: &dyn Place) {
        if !values::is_lei(text) {
            self.fault(
                place,
                Reason::FieldInvalid,
                "not a legal entity identifier with right check digits",
            );
        }
    }

    pub(super) fn agent(&mut self, bic: Option<Bic>, place: &dyn Place) {
        match self.role {
            Role::From => {
                if let Some(header) = self.header.as_mut() {
                    header.from = bic;
                }
                match (bic, self.context.sender) {
                    (None, _) => self.fault(place, Reason::HeaderMismatch, "not a BIC"),
                    (Some(from), Some(sender)) if from != sender => {
                        self.fault(
                            place,
                            Reason::HeaderMismatch,
                            "not the participant that delivered the message",
                        );
                    }
                    _ => {}
                }
            }
            Role::To => {
                if let Some(header) = self.header.as_mut() {
                    header.to = bic;
                }
            }
            Role::Claim => match (bic, self.claim) {
                (None, _) => self.fault(place, Reason::SenderUnknown, "not a BIC"),
                (Some(bic), None) => {
                    self.claim = Some(bic);
                    let known = self.context.sender.or_else(|| self.header.as_ref()?.from);
                    if known.is_some_and(|known| known != bic) {
                        self.fault(
                            place,
                            Reason::SenderUnknown,
                            "not the sender of the message",
                        );
                    }
                }
                (Some(bic), Some(claim)) if bic != claim && !self.claims_differ => {
                    self.claims_differ = true;
                    self.fault(
                        place,
                        Reason::SenderUnknown,
                        "not the sender of the message",
                    );
                }
                _ => {}
            },
            Role::Instructed => {
                self.common().instructed = bic.map_or(Agent::Invalid, Agent::Named);
                if bic.is_none() {
                    self.fault(place, Reason::ReceiverInvalid, "not a BIC");
                }
            }
            Role::None => {}
        }
    }

    pub(super) fn amount(&mut self, text: &[u8], place: &dyn Place) {
        let currency = self.currency.take().flatten();
        self.transaction.amount_seen = true;
        self.transaction.currency = currency;
        if currency.is_none() {
            self.fault(
                place,
                Reason::CurrencyInvalid,
                "no currency, or none that ISO 4217 lists",
            );
        }
        self.sum = match (self.sum, values::decimal5(text)) {
            (Some(sum), Some(amount)) => sum.checked_add(amount),
            _ => None,
        };
        // Without a currency only the spelling can be checked: five decimals are what the type allows.
        match parse_amount(text, currency.map_or(5, Currency::exponent)) {
            Ok(amount) if currency.is_none() => {
                if amount == AmountMinor::ZERO {
                    self.fault(place, Reason::AmountZero, "zero");
                }
            }
            Ok(amount) => {
                self.transaction.amount = Some(amount);
                if amount == AmountMinor::ZERO {
                    self.fault(place, Reason::AmountZero, "zero");
                } else if amount > self.context.amount_max {
                    self.fault(
                        place,
                        Reason::AmountTooLarge,
                        "above the largest amount of one payment",
                    );
                }
            }
            Err(AmountFault::Empty) => self.fault(place, Reason::AmountInvalid, "empty"),
            Err(AmountFault::NotANumber) => {
                self.fault(place, Reason::AmountInvalid, "not a number")
            }
            Err(AmountFault::TooManyDecimals) => {
                self.fault(
                    place,
                    Reason::DecimalsExceeded,
                    "more decimals than the currency has",
                );
            }
            Err(AmountFault::TooLarge) => {
                self.fault(place, Reason::AmountTooLarge, "more than 18 digits")
            }
        }
    }
}
