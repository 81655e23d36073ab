//! Acts that take two persons (ADR 0025): one asks, another approves, and only then the act is done, with exactly what was asked
//! for. Shard 0's journal holds every step, so a new leader goes on where the old one stood, and an auditor finds who did what.
//!
//! Once a cluster asks for two persons it goes on doing so. Who they are is for the nodes to know: a person is what the
//! certificate that was shown says, and the key that proved it.

use std::collections::BTreeMap;

use crate::apply::{AdminRefusal, Reply};
use crate::entry::{AdminCommand, Command};
use crate::layout::layout;
use crate::nodes::NodeCommand;
use crate::state::Ledger;
use crate::{LogIndex, Timestamp};

/// Requests that wait at once: beyond that nobody looks at what is approved.
pub const PENDING_MAX: usize = 16;
/// Decided requests that are still told; the journal has all of them.
pub const DECIDED_MAX: usize = 64;
/// Commands of one request: participants, accounts and opening balances of a few thousand participants.
pub const ACT_COMMANDS_MAX: usize = 8_192;
/// The longest name of a person: that of an operator in a certificate.
pub const PERSON_MAX_BYTES: usize = 63;

/// Who asks or approves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The name in the certificate.
    pub name: String,
    /// A fingerprint of the key that the certificate was shown with.
    pub key: u128,
}

layout!(struct Person { name, key });

impl Person {
    /// Two names with one key are one person, and so are two keys with one name.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name || self.key == other.key
    }
}

/// What takes two persons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Acts upon participants and money, in order; the first that is refused is the last.
    Admin(Vec<AdminCommand>),
    /// A change of the cluster's nodes.
    Nodes(NodeCommand),
}

layout!(enum Act { 0 => Admin(commands), 1 => Nodes(command) });

/// The table of acts: whether a command takes two persons where the cluster asks for them.
#[must_use]
pub const fn takes_two(command: &Command) -> bool {
    match command {
        Command::Admin(command) => admin_takes_two(command),
        Command::Nodes(command) => nodes_take_two(command),
        Command::Genesis(_)
        | Command::Cycle(_)
        | Command::Submit(_)
        | Command::SkipSequence { .. }
        | Command::AcknowledgeReceipts { .. }
        | Command::Deliver { .. }
        | Command::Delivered { .. }
        | Command::Tick
        | Command::Approvals(_) => false,
    }
}

const fn admin_takes_two(command: &AdminCommand) -> bool {
    match command {
        // Who may pay, how far below zero, and money from nothing.
        AdminCommand::AddParticipant(_)
        | AdminCommand::OpenAccount(_)
        | AdminCommand::Fund { .. } => true,
        // The timetable's acts, every day.
        AdminCommand::OpenDay { .. } | AdminCommand::CutOff { .. } | AdminCommand::CloseDay => {
            false
        }
    }
}

const fn nodes_take_two(command: &NodeCommand) -> bool {
    match command {
        // Who has everybody's data and a vote, for good.
        NodeCommand::Add { .. } | NodeCommand::Remove { .. } => true,
        // What can be taken back at once, and what the definition says already.
        NodeCommand::Found { .. } | NodeCommand::Drain { .. } | NodeCommand::MoveLeader { .. } => {
            false
        }
    }
}

impl Act {
    fn is_fit(&self) -> bool {
        match self {
            Self::Admin(commands) => {
                (1..=ACT_COMMANDS_MAX).contains(&commands.len())
                    && commands.iter().all(admin_takes_two)
            }
            Self::Nodes(command) => nodes_take_two(command),
        }
    }

    /// In a few words.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Admin(commands) => {
                let count = |of: fn(&AdminCommand) -> bool| {
                    commands.iter().filter(|command| of(command)).count()
                };
                let participants = count(|it| matches!(it, AdminCommand::AddParticipant(_)));
                let accounts = count(|it| matches!(it, AdminCommand::OpenAccount(_)));
                let funds = count(|it| matches!(it, AdminCommand::Fund { .. }));
                format!(
                    "take up {participants} participants, open {accounts} accounts, put money on {funds}"
                )
            }
            Self::Nodes(NodeCommand::Add { node }) => match node.replaces {
                None => format!("take up node {} at site {}", node.name, node.site),
                Some(old) => format!("put node {} in the place of member {old}", node.name),
            },
            Self::Nodes(NodeCommand::Remove { member }) => format!("remove member {member}"),
            Self::Nodes(_) => "change the nodes".to_owned(),
        }
    }
}

/// A step towards an act that takes two persons; shard 0 takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalCommand {
    /// From now on acts of the table take two persons. Said again it changes nothing.
    Require {
        /// How long a request waits before it is stale.
        valid_ns: u64,
    },
    /// Asks for an act. Asked again by the same person while it waits it is the same request.
    Ask {
        /// Who.
        by: Person,
        /// For what.
        act: Act,
        /// A digest of the act's bytes: who approves says it, and so what was looked at.
        digest: u64,
    },
    /// Approves a request: the act is done in this entry, or refused for good.
    Approve {
        /// Which.
        request: u64,
        /// The digest of the act that was looked at.
        digest: u64,
        /// Who.
        by: Person,
    },
    /// Ends a request without the act.
    Withdraw {
        /// Which.
        request: u64,
        /// Who: whoever asked, or somebody else who says no.
        by: Person,
    },
}

layout!(enum ApprovalCommand {
    0 => Require { valid_ns }, 1 => Ask { by, act, digest }, 2 => Approve { request, digest, by },
    3 => Withdraw { request, by }
});

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub by: Person,
    /// When, in log time.
    pub asked: Timestamp,
    /// After this it is stale.
    pub expires: Timestamp,
    /// The act in a few words.
    pub title: String,
    /// The act, while it waits.
    pub act: Option<Act>,
    /// The digest of its bytes.
    pub digest: u64,
    /// What became of it.
    pub fate: Fate,
}

layout!(struct Request { by, asked, expires, title, act, digest, fate });

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits; stale once its time is over.
    Waits,
    /// It was approved, and the act done or refused.
    Approved {
        /// Who approved.
        by: Person,
        /// Where in shard 0's journal.
        at: LogIndex,
        /// The first of its commands that was refused, from 0, and why; those before it were done.
        refused: Option<(u32, AdminRefusal)>,
    },
    /// It was ended without the act.
    Withdrawn {
        /// Who ended it.
        by: Person,
        /// Where in shard 0's journal.
        at: LogIndex,
    },
    /// Nobody approved it in time.
    Stale,
}

layout!(enum Fate { 0 => Waits, 1 => Approved { by, at, refused }, 2 => Withdrawn { by, at }, 3 => Stale });

/// Whether acts take two persons, and the requests by number: the place of each in shard 0's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    valid_ns: Option<u64>,
    requests: BTreeMap<u64, Request>,
}

layout!(struct Approvals { valid_ns, requests });

impl Approvals {
    /// How long a request waits before it is stale; nothing where one person is enough.
    #[must_use]
    pub const fn valid_ns(&self) -> Option<u64> {
        self.valid_ns
    }

    /// The requests that wait, and the last ones that were decided, by number.
    pub fn requests(&self) -> impl Iterator<Item = (u64, &Request)> {
        self.requests
            .iter()
            .map(|(&number, request)| (number, request))
    }

    /// A request by its number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Request> {
        self.requests.get(&number)
    }

    fn waiting(&self) -> impl Iterator<Item = (u64, &Request)> {
        self.requests()
            .filter(|(_, request)| request.fate == Fate::Waits)
    }

    fn end_stale(&mut self, now: Timestamp) {
        for request in self.requests.values_mut() {
            if request.fate == Fate::Waits && now > request.expires {
                request.decide(Fate::Stale);
            }
        }
    }

    /// The oldest of the decided go: the journal has them.
    fn forget(&mut self) {
        let decided =
            |(&number, request): (&u64, &Request)| (request.fate != Fate::Waits).then_some(number);
        let decided: Vec<u64> = self.requests.iter().filter_map(decided).collect();
        for number in decided.iter().rev().skip(DECIDED_MAX) {
            self.requests.remove(number);
        }
    }

    /// A request of this digest that somebody else than this person may still approve.
    fn open_to(&self, number: u64, digest: u64, by: &Person) -> Result<&Request, AdminRefusal> {
        let request = self.get(number).ok_or(AdminRefusal::RequestUnknown)?;
        match request.fate {
            _ if request.digest != digest => Err(AdminRefusal::RequestOther),
            Fate::Waits if request.by.is(by) => Err(AdminRefusal::SamePerson),
            Fate::Waits => Ok(request),
            Fate::Stale => Err(AdminRefusal::RequestStale),
            Fate::Approved { .. } | Fate::Withdrawn { .. } => Err(AdminRefusal::RequestDecided),
        }
    }
}

impl Request {
    fn decide(&mut self, fate: Fate) {
        self.fate = fate;
        self.act = None;
    }
}

impl Ledger {
    /// Acts that take two persons, in shard 0.
    #[must_use]
    pub const fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Log time: that of the last entry.
    #[must_use]
    pub const fn log_time(&self) -> Timestamp {
        self.now
    }

    /// Takes up what a snapshot holds beside the rest.
    pub fn set_approvals(&mut self, approvals: Approvals) {
        self.approvals = approvals;
    }

    /// Whether this command may not be done by one person alone.
    pub(crate) fn lacks_approval(&self, command: &Command) -> bool {
        self.approvals.valid_ns.is_some() && takes_two(command)
    }

    pub(crate) fn approval_command(&mut self, command: &ApprovalCommand) -> Reply {
        if self.shard().get() != 0 {
            return Reply::Refused(AdminRefusal::NotCoordinator);
        }
        self.approvals.end_stale(self.now);
        let reply = match command {
            ApprovalCommand::Require { valid_ns } => {
                self.approvals.valid_ns.get_or_insert(*valid_ns);
                Reply::Done
            }
            ApprovalCommand::Ask { by, act, digest } => self.ask(by, act, *digest),
            ApprovalCommand::Approve {
                request,
                digest,
                by,
            } => self.approve(*request, *digest, by),
            ApprovalCommand::Withdraw { request, by } => self.withdraw(*request, by),
        };
        self.approvals.forget();
        let waiting = self.approvals.waiting().count() as u64;
        self.digest.fold(waiting ^ 0xA0 << 56);
        reply
    }

    fn ask(&mut self, by: &Person, act: &Act, digest: u64) -> Reply {
        let Some(valid_ns) = self.approvals.valid_ns else {
            return Reply::Refused(AdminRefusal::ApprovalNotNeeded);
        };
        let named = (1..=PERSON_MAX_BYTES).contains(&by.name.len());
        if !named || !act.is_fit() {
            return Reply::Refused(AdminRefusal::RequestInvalid);
        }
        let same =
            |(_, known): &(u64, &Request)| known.by == *by && known.act.as_ref() == Some(act);
        if let Some((number, _)) = self.approvals.waiting().find(same) {
            return Reply::Asked { request: number };
        }
        if self.approvals.waiting().count() >= PENDING_MAX {
            return Reply::Refused(AdminRefusal::RequestsFull);
        }
        // What would be refused today is said at once; it is looked at again when it is approved.
        if let Err(refusal) = self.would_begin(act) {
            return Reply::Refused(refusal);
        }
        let number = self.index.get();
        let request = Request {
            by: by.clone(),
            asked: self.now,
            expires: Timestamp::from_ns(self.now.ns().saturating_add(valid_ns)),
            title: act.title(),
            act: Some(act.clone()),
            digest,
            fate: Fate::Waits,
        };
        self.approvals.requests.insert(number, request);
        Reply::Asked { request: number }
    }

    fn would_begin(&self, act: &Act) -> Result<(), AdminRefusal> {
        match act {
            Act::Admin(commands) => commands.first().map_or(Ok(()), |first| self.admit(first)),
            Act::Nodes(command) => self.nodes_admit(command),
        }
    }

    fn approve(&mut self, number: u64, digest: u64, by: &Person) -> Reply {
        if let Some(Fate::Approved {
            by: known, refused, ..
        }) = self.approvals.get(number).map(|request| &request.fate)
            && known == by
        {
            // Asked a second time, after an answer was lost.
            return refused.map_or(Reply::Done, |(_, why)| Reply::Refused(why));
        }
        let act = match self.approvals.open_to(number, digest, by) {
            Ok(request) => request.act.clone(),
            Err(refusal) => return Reply::Refused(refusal),
        };
        let refused = act.as_ref().and_then(|act| self.act(act));
        let fate = Fate::Approved {
            by: by.clone(),
            at: self.index,
            refused,
        };
        if let Some(request) = self.approvals.requests.get_mut(&number) {
            request.decide(fate);
        }
        refused.map_or(Reply::Done, |(_, why)| Reply::Refused(why))
    }

    /// Does an act; the first of its commands that is refused, and why.
    fn act(&mut self, act: &Act) -> Option<(u32, AdminRefusal)> {
        match act {
            Act::Admin(commands) => {
                (0..)
                    .zip(commands)
                    .find_map(|(at, command)| match self.admin(command) {
                        Reply::Refused(why) => Some((at, why)),
                        _ => None,
                    })
            }
            Act::Nodes(command) => match self.change_nodes(command) {
                Reply::Refused(why) => Some((0, why)),
                _ => None,
            },
        }
    }

    fn withdraw(&mut self, number: u64, by: &Person) -> Reply {
        let at = self.index;
        let Some(request) = self.approvals.requests.get_mut(&number) else {
            return Reply::Refused(AdminRefusal::RequestUnknown);
        };
        match request.fate {
            Fate::Waits => {
                request.decide(Fate::Withdrawn { by: by.clone(), at });
                Reply::Done
            }
            // It does no more harm, which is what was wanted.
            Fate::Withdrawn { .. } | Fate::Stale => Reply::Done,
            Fate::Approved { .. } => Reply::Refused(AdminRefusal::RequestDecided),
        }
    }
}

#[cfg(test)]
mod tests;
