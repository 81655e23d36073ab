//! Who takes part: participants and their accounts' terms, the same in every shard.

use crate::layout::{Layout, Sink, Source, layout};
use crate::table::{Hasher, Index};
use crate::{AmountMinor, Bic, Currency, ParticipantId, ShardId};

/// The most participants of a cluster: their numbers are 16 bits.
pub const PARTICIPANTS_MAX: usize = 65_000;
/// The most currencies of a cluster: their places are 8 bits.
pub const CURRENCIES_MAX: usize = 250;
/// The longest name of a participant, in bytes (ISO 20022 `Max140Text`).
pub const NAME_MAX_BYTES: usize = 140;

/// What a participant may be dropped by when funds lack in a netting cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetUnit {
    /// Its last payments, one by one.
    #[default]
    Payment,
    /// Its last packages, each whole.
    Package,
}

layout!(enum NetUnit { 0 => Payment, 1 => Package });

/// A participant as the operator takes it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantTerms {
    /// Its code.
    pub bic: Bic,
    /// Its name, at most [`NAME_MAX_BYTES`].
    pub name: String,
    /// Where its accounts, queues, duplicate memory and output are.
    pub home: ShardId,
    /// Whether its messages are numbered and taken in that order only (rule R5).
    pub numbers_messages: bool,
    /// Whether one bad payment refuses its whole package (rule R1).
    pub refuse_whole: bool,
    /// What is dropped when its funds lack.
    pub net_unit: NetUnit,
}

layout!(struct ParticipantTerms { bic, name, home, numbers_messages, refuse_whole, net_unit });

/// A settlement account as the operator opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountTerms {
    /// The participant.
    pub bic: Bic,
    /// The currency; one account per participant and currency.
    pub currency: Currency,
    /// How far the balance may fall below zero.
    pub credit_line: AmountMinor,
}

layout!(struct AccountTerms { bic, currency, credit_line });

/// Where a participant's account in one currency is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountPlace {
    None,
    /// In another shard.
    Remote,
    /// In this shard's table of accounts.
    Home(u32),
}

layout!(enum AccountPlace { 0 => None, 1 => Remote, 2 => Home(number) });

/// All participants, in the order in which they were taken up.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    participants: Vec<ParticipantTerms>,
    currencies: Vec<Currency>,
    /// By participant, then currency.
    accounts: Vec<Vec<AccountPlace>>,
    by_bic: Index,
}

impl Directory {
    /// The participant with this code.
    #[inline]
    #[must_use]
    pub fn find(&self, bic: Bic) -> Option<ParticipantId> {
        self.by_bic
            .find(Self::hash(bic))
            .find(|&at| {
                self.participants
                    .get(at)
                    .is_some_and(|terms| terms.bic == bic)
            })
            .and_then(|at| u16::try_from(at).ok())
            .map(ParticipantId::new)
    }

    /// A participant's terms.
    #[must_use]
    pub fn get(&self, participant: ParticipantId) -> Option<&ParticipantTerms> {
        self.participants.get(participant.index())
    }

    /// A participant's code; for numbers that this directory gave out.
    ///
    /// # Panics
    /// When there is no such participant: numbers only come from [`Directory::find`] of an equal directory.
    #[must_use]
    pub fn bic(&self, participant: ParticipantId) -> Bic {
        self.participants[participant.index()].bic
    }

    /// All participants with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ParticipantId, &ParticipantTerms)> {
        (0..).map(ParticipantId::new).zip(&self.participants)
    }

    /// All currencies in which anybody holds an account, in the order of their first account.
    #[must_use]
    pub fn currencies(&self) -> &[Currency] {
        &self.currencies
    }

    /// A currency's place.
    #[inline]
    pub(crate) fn currency_place(&self, currency: Currency) -> Option<u8> {
        self.currencies
            .iter()
            .position(|&known| known == currency)
            .and_then(|at| u8::try_from(at).ok())
    }

    /// Where an account is.
    #[inline]
    pub(crate) fn account(&self, participant: ParticipantId, currency_place: u8) -> AccountPlace {
        self.accounts
            .get(participant.index())
            .and_then(|places| places.get(usize::from(currency_place)))
            .copied()
            .unwrap_or(AccountPlace::None)
    }

    pub(crate) fn add_participant(&mut self, terms: ParticipantTerms) {
        let position = self.participants.len();
        self.participants.push(terms);
        self.accounts.push(Vec::new());
        self.index(position);
    }

    pub(crate) fn add_account(
        &mut self,
        participant: ParticipantId,
        currency: Currency,
        place: AccountPlace,
    ) {
        let at = self.currency_place(currency).map_or_else(
            || {
                self.currencies.push(currency);
                self.currencies.len() - 1
            },
            usize::from,
        );
        let places = &mut self.accounts[participant.index()];
        if places.len() <= at {
            places.resize(at + 1, AccountPlace::None);
        }
        places[at] = place;
    }

    fn hash(bic: Bic) -> u64 {
        // Operators choose these keys, so the hash needs no secret.
        let mut wide = [0; 16];
        wide[..11].copy_from_slice(bic.as_bytes());
        Hasher::default().hash(u128::from_le_bytes(wide), 0)
    }

    fn index(&mut self, position: usize) {
        let hash = Self::hash(self.participants[position].bic);
        self.by_bic.insert(hash, position);
    }
}

impl Layout for Directory {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.participants.put(sink);
        self.currencies.put(sink);
        self.accounts.put(sink);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let participants: Vec<ParticipantTerms> = Layout::take(source)?;
        let currencies = Layout::take(source)?;
        let accounts: Vec<Vec<AccountPlace>> = Layout::take(source)?;
        if accounts.len() != participants.len() || participants.len() > PARTICIPANTS_MAX {
            return Err(source.invalid("accounts and participants differ in number"));
        }
        let mut directory = Self {
            participants,
            currencies,
            accounts,
            by_bic: Index::default(),
        };
        for position in 0..directory.participants.len() {
            directory.index(position);
        }
        Ok(directory)
    }
}
