//! Output documents: what the numbers of a participant's output stand for, as ISO 20022 messages.
//!
//! A document is a function of the state and of its item alone: asked for again at any later time within retention it has
//! the same bytes, but for the possible-duplicate mark in the business header (rule R24). So it is formed only from what
//! never changes once the item stands: the item itself, the package, what was refused at reception, the cycle that
//! settled a payment. What changes later (a return, a cancellation, a later cycle) is in later items.
//!
//! # Decided where the standard leaves it open
//! - One number may have several documents: a credit's notice (camt.054) comes first, the payments themselves, forwarded
//!   as sent, follow. All carry the number; their message identifiers differ in the leading digits of its 16.
//! - A message identifier begins with the UTC date of the item's log time: numbers never repeat, so the business date is
//!   not needed to tell them apart, and log time cannot change when a business day leaves memory.
//! - A cancelled gross payment is told `CANC` (`RJCT` before pacs.002.001.08, whose code list lacks it).
//! - `ACSC` for a message in a cycle means that nothing of it waits any more; refused ones were told at reception.
//! - A page of a cycle's credits is booked where its payments are final: in the senders' shard. The receiver's own
//!   position moves at its shard's posting, which the pacs.029 and the statement tell.

mod answers;
mod cache;
mod cancellation;
mod credit;
mod forward;
mod notice;
mod report;
mod statement;
mod status;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use clearspan_codec::DecodeError;
use clearspan_iso20022::fields;
use clearspan_iso20022::write::{CashVersion, Definition, Framing, Head, output_message_id};
use clearspan_ledger::message::Submission;
use clearspan_ledger::stream::{Item, ItemBody};
use clearspan_ledger::{
    Bic, BusinessDate, Currency, CycleNumber, Ledger, MessageNo, ParticipantId, ShardId, Text,
    Timestamp,
};

pub use cache::{Cache, PACKAGES_MAX_BYTES};
pub(crate) use statement::{Kind, movements};
pub use sweep::SWEEPS_MAX_BYTES;

/// Where state and packages come from: this node's replicas.
pub trait View {
    /// Why a package could not be read.
    type Error: std::error::Error + Send + Sync + 'static;

    /// How many shards the cluster has.
    fn shards(&self) -> u16;

    /// This node's replica of a shard below [`View::shards`].
    fn ledger(&self, shard: ShardId) -> &Ledger;

    /// A message as the package store keeps it: its heap packed by [`clearspan_codec::heap`]. `None` when it is not there.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Submission>, Self::Error>;
}

/// What all documents have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who writes: `Fr`, and the servicer of all accounts.
    pub clearing_house: Bic,
    /// `BizSvc`, at most 35 characters.
    pub service: Option<String>,
    /// With or without envelope and header.
    pub framing: Framing,
    /// Version of the camt.052, .053 and .054 that are written.
    pub cash_version: CashVersion,
    /// The most output numbers that one camt.060 is answered with; the rest is asked for again.
    pub replay_max_numbers: u64,
}

impl Settings {
    /// Envelope, camt versions `.08` (the ones most often seen), at most 1000 numbers for each request.
    #[must_use]
    pub const fn new(clearing_house: Bic) -> Self {
        Self {
            clearing_house,
            service: None,
            framing: Framing::Envelope,
            cash_version: CashVersion::V08,
            replay_max_numbers: 1000,
        }
    }
}

/// One message to a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// `00000012-pacs.002.xml`; `00000012-2-pacs.008.xml` is the second document of the same number.
    pub file_name: String,
    /// The message definition, `pacs.002.001.10`.
    pub name: String,
    /// The XML.
    pub bytes: Vec<u8>,
}

/// Why a document could not be formed.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// No participant has this number or code.
    #[error("no such participant")]
    ParticipantUnknown,
    /// The output number is not (or no longer, or not yet) in the participant's output.
    #[error("output number {number} is not within {first}..{end}")]
    NumberUnknown {
        /// The number asked for.
        number: u64,
        /// The first number kept.
        first: u64,
        /// The number after the last.
        end: u64,
    },
    /// Something an item stands for is not in this node's replica: it is behind, or retention has ended.
    #[error("{what} {number} of shard {shard} is not here, not yet or no longer")]
    Missing {
        /// What.
        what: &'static str,
        /// In which shard.
        shard: ShardId,
        /// Its number there.
        number: u64,
    },
    /// The package store could not be read.
    #[error("read package {message} of shard {shard}")]
    Package {
        /// The shard.
        shard: ShardId,
        /// The message.
        message: MessageNo,
        /// What the store said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A package's heap could not be unpacked.
    #[error("unpack package {message} of shard {shard}")]
    Heap {
        /// The shard.
        shard: ShardId,
        /// The message.
        message: MessageNo,
        /// What the codec said.
        source: DecodeError,
    },
    /// A package does not hold what its records point at.
    #[error("package {message} of shard {shard} holds no payment {position}")]
    Body {
        /// The shard.
        shard: ShardId,
        /// The message.
        message: MessageNo,
        /// Place of the payment in the message, from 0.
        position: u32,
    },
    /// What an item states is not what the state derives.
    #[error("{what} of output number {number}: stated {stated}, derived {derived}")]
    Differs {
        /// Which figure.
        what: &'static str,
        /// The output number.
        number: u64,
        /// As the item states it.
        stated: u128,
        /// As it is derived.
        derived: u128,
    },
    /// A statement does not reconcile with the output that it sums up (rule R37).
    #[error(
        "{what} of {participant} in {currency} on {date}: stated {stated_minor}, its entries give {derived_minor} minor units"
    )]
    Unreconciled {
        /// Which figure.
        what: &'static str,
        /// The account's owner.
        participant: Bic,
        /// The account's currency.
        currency: Currency,
        /// The business date.
        date: BusinessDate,
        /// As the statement has it.
        stated_minor: i128,
        /// As its entries give it.
        derived_minor: i128,
    },
    /// A number has more documents than can be told apart.
    #[error("output number {number} has more than {DOCUMENTS_MAX} documents, or too many digits")]
    TooMany {
        /// The output number.
        number: u64,
    },
}

/// The most documents of one output number: four leading digits of a message identifier's 16 count them.
pub const DOCUMENTS_MAX: u64 = 10_000;
/// Output numbers stay below this: the other 12 digits. At a million documents a second it takes 11 days of one
/// participant's output.
const NUMBERS_MAX: u64 = 1_000_000_000_000;

const _: () = assert!(DOCUMENTS_MAX * NUMBERS_MAX == 10_000_000_000_000_000);

/// Forms documents from one consistent view. Light: make one for each view, and keep the [`Cache`].
#[derive(Debug)]
pub struct Documents<'a, V> {
    view: &'a V,
    settings: &'a Settings,
    cache: &'a Cache,
}

/// One item of one participant, looked up.
pub(crate) struct Found<'a> {
    pub(crate) participant: ParticipantId,
    pub(crate) bic: Bic,
    pub(crate) home: ShardId,
    pub(crate) ledger: &'a Ledger,
    pub(crate) item: &'a Item,
}

/// How many of a number's documents are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// The first: receipt or notice, without forwards.
    First,
}

impl<'a, V: View> Documents<'a, V> {
    /// Over a view, with what earlier views have left in the cache.
    #[must_use]
    pub const fn new(view: &'a V, settings: &'a Settings, cache: &'a Cache) -> Self {
        Self {
            view,
            settings,
            cache,
        }
    }

    /// All documents of an output number, the receipt or notice first.
    ///
    /// # Errors
    /// [`DocumentError`]: an unknown number, or something that this node does not hold.
    pub fn documents(
        &self,
        participant: ParticipantId,
        number: u64,
        possible_duplicate: bool,
    ) -> Result<Vec<Document>, DocumentError> {
        self.form(participant, number, possible_duplicate, Wanted::All)
    }

    /// The first document of an output number: receipt or notice. It reads packages only where a payment has no UETR or
    /// was refused, so it is the fast part of a cycle's receipts; the forwards are [`Documents::documents`]' others.
    ///
    /// # Errors
    /// As [`Documents::documents`].
    pub fn receipt(
        &self,
        participant: ParticipantId,
        number: u64,
        possible_duplicate: bool,
    ) -> Result<Option<Document>, DocumentError> {
        let documents = self.form(participant, number, possible_duplicate, Wanted::First)?;
        Ok(documents.into_iter().next())
    }

    /// The stored answer once more, as a repeated message is answered (rule R3): the same bytes, marked as a possible
    /// duplicate.
    ///
    /// # Errors
    /// As [`Documents::documents`].
    pub fn repeat_answer(
        &self,
        participant: ParticipantId,
        answer: u64,
    ) -> Result<Vec<Document>, DocumentError> {
        self.documents(participant, answer, true)
    }

    fn form(
        &self,
        participant: ParticipantId,
        number: u64,
        possible_duplicate: bool,
        wanted: Wanted,
    ) -> Result<Vec<Document>, DocumentError> {
        let found = self.find(participant, number)?;
        let item = found.item;
        let mut sheaf = Sheaf {
            settings: self.settings,
            to: found.bic,
            created: item.time,
            possible_duplicate,
            naming: Naming::Number(number),
            documents: Vec::with_capacity(1),
        };
        match &item.body {
            ItemBody::Reception { message } => self.reception(&mut sheaf, &found, *message)?,
            ItemBody::Gap {
                message_id,
                missing_from,
                missing_through,
            } => self.gap(&mut sheaf, message_id, *missing_from, *missing_through)?,
            ItemBody::Gross { payment, event } => {
                self.gross(&mut sheaf, &found, *payment, *event)?
            }
            ItemBody::GrossCredit(advice) => {
                self.gross_credit(&mut sheaf, &found, advice, wanted)?
            }
            ItemBody::Funded {
                reference,
                currency,
                amount,
            } => self.funded(&mut sheaf, &found, reference, *currency, *amount)?,
            ItemBody::Netted {
                cycle,
                message,
                settled,
                dropped,
            } => self.netted(&mut sheaf, &found, *cycle, *message, (*settled, *dropped))?,
            ItemBody::NetResult { cycle } => self.net_result(&mut sheaf, &found, *cycle)?,
            ItemBody::NetCredits {
                cycle,
                from,
                currency,
                ..
            } => self.net_credits(
                &mut sheaf,
                &found,
                (*cycle, *from, *currency),
                number,
                wanted,
            )?,
            ItemBody::CancellationAnswer { message } => {
                self.cancellation(&mut sheaf, &found, *message)?;
            }
            ItemBody::RecallRequest { from, notice } => {
                self.recall(&mut sheaf, *from, notice)?;
            }
            ItemBody::Ended { message } => self.ended(&mut sheaf, &found, *message)?,
            ItemBody::Statement(statement) => self.statement(&mut sheaf, &found, statement)?,
        }
        Ok(sheaf.documents)
    }

    /// A participant's code and home; directories are equal in all shards, but a replica may be behind.
    fn participant(&self, participant: ParticipantId) -> Result<(Bic, ShardId), DocumentError> {
        self.ledgers()
            .find_map(|ledger| ledger.directory().get(participant))
            .map(|terms| (terms.bic, terms.home))
            .ok_or(DocumentError::ParticipantUnknown)
    }

    fn find_participant(&self, bic: Bic) -> Result<(ParticipantId, &'a Ledger), DocumentError> {
        let participant = self
            .ledgers()
            .find_map(|ledger| ledger.directory().find(bic))
            .ok_or(DocumentError::ParticipantUnknown)?;
        let (_, home) = self.participant(participant)?;
        Ok((participant, self.view.ledger(home)))
    }

    fn ledgers(&self) -> impl Iterator<Item = &'a Ledger> {
        let view = self.view;
        (0..view.shards()).map(move |shard| view.ledger(ShardId::new(shard)))
    }

    fn find(&self, participant: ParticipantId, number: u64) -> Result<Found<'a>, DocumentError> {
        let (bic, home) = self.participant(participant)?;
        let ledger = self.view.ledger(home);
        let stream = ledger.stream(participant);
        let item = stream
            .and_then(|stream| stream.get(number))
            .ok_or_else(|| DocumentError::NumberUnknown {
                number,
                first: stream
                    .and_then(|stream| stream.iter().next())
                    .map_or(1, |item| item.number),
                end: stream.map_or(1, |stream| stream.next_number()),
            })?;
        Ok(Found {
            participant,
            bic,
            home,
            ledger,
            item,
        })
    }

    /// A message with its heap unpacked.
    fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Arc<Submission>, DocumentError> {
        self.cache
            .package((shard, message), || self.read_package(shard, message))
    }

    /// The same past the cache.
    fn read_package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Submission, DocumentError> {
        let mut submission = self
            .view
            .package(shard, message)
            .map_err(|e| DocumentError::Package {
                shard,
                message,
                source: Box::new(e),
            })?
            .ok_or(DocumentError::Missing {
                what: "package",
                shard,
                number: message.get(),
            })?;
        submission.heap = clearspan_codec::heap::unpack(&submission.heap).map_err(|source| {
            DocumentError::Heap {
                shard,
                message,
                source,
            }
        })?;
        if fields::are_in(&submission.heap) {
            fields::expand(&mut submission);
        }
        Ok(submission)
    }

    fn cycle_record(
        &self,
        shard: ShardId,
        cycle: CycleNumber,
    ) -> Result<&'a clearspan_ledger::CycleRecord, DocumentError> {
        self.view
            .ledger(shard)
            .cycle(cycle)
            .ok_or(DocumentError::Missing {
                what: "cycle",
                shard,
                number: u64::from(cycle.get()),
            })
    }
}

/// What names documents.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// The output number.
    Number(u64),
    /// An answer outside the numbered output: a hash of what it answers and of the journal position it holds at.
    Answer(u128),
}

/// The documents of one number, or of one answer, as they are formed.
struct Sheaf<'a> {
    settings: &'a Settings,
    to: Bic,
    created: Timestamp,
    possible_duplicate: bool,
    naming: Naming,
    documents: Vec<Document>,
}

impl Sheaf<'_> {
    fn add(
        &mut self,
        name: String,
        write: impl FnOnce(&mut Vec<u8>, &Head<'_>),
    ) -> Result<(), DocumentError> {
        let ordinal = self.documents.len() as u64;
        let short = name.get(..8).unwrap_or(&name);
        let (message_id, file_name) = match self.naming {
            Naming::Number(number) => {
                if ordinal >= DOCUMENTS_MAX || number >= NUMBERS_MAX {
                    return Err(DocumentError::TooMany { number });
                }
                let id =
                    output_message_id(self.created.date(), self.to, ordinal * NUMBERS_MAX + number);
                let file_name = if ordinal == 0 {
                    format!("{number:08}-{short}.xml")
                } else {
                    format!("{number:08}-{}-{short}.xml", ordinal + 1)
                };
                (id, file_name)
            }
            Naming::Answer(hash) => {
                let text = format!("Q{:032x}", hash.wrapping_add(u128::from(ordinal)));
                let file_name = format!("{text}-{short}.xml");
                (Text::new(&text).unwrap_or(Text::EMPTY), file_name)
            }
        };
        let head = Head {
            from: self.settings.clearing_house,
            to: self.to,
            message_id: message_id.as_str(),
            created: self.created,
            service: self.settings.service.as_deref(),
            possible_duplicate: self.possible_duplicate,
            framing: self.settings.framing,
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &head);
        self.documents.push(Document {
            file_name,
            name,
            bytes,
        });
        Ok(())
    }
}

/// `pacs.008.001.08`
fn definition_name(definition: Definition) -> String {
    format!("{}.001.{:02}", definition.kind.name(), definition.version)
}

/// A participant's settlement account in one currency as documents name it: `ALFADEFFXXX-EUR`.
#[must_use]
pub fn account_id(owner: Bic, currency: Currency) -> String {
    format!("{owner}-{currency}")
}
