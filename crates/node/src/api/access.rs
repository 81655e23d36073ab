//! Who may do what: one table, and nothing that is not in it.

use clearspan_ledger::Bic;

use crate::cluster::pki::ClientName;

/// What a client's certificate makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends messages and reads what is its own.
    Participant,
    /// Runs the cluster; sends no payments and reads no participant's output.
    Operator,
    /// Reads everything, changes nothing.
    Auditor,
}

/// Something that can be asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Hand in a message.
    SubmitMessage,
    /// Read numbered output.
    ReadReceipts,
    /// Say that output is safely stored.
    AcknowledgeReceipts,
    /// Look a payment up.
    ReadPayment,
    /// Look accounts up.
    ReadAccounts,
    /// Look up what waits.
    ReadQueue,
    /// Look up what is expected.
    ReadIncoming,
    /// Look netting cycles up.
    ReadCycles,
    /// Found, open, cut off, net, close.
    Administer,
    /// Read how nodes and shards stand.
    ReadStatus,
    /// Read the node's figures.
    ReadMetrics,
    /// Read how the interface is to be used.
    ReadInterface,
    /// Ask whether the node lives and is ready.
    Probe,
}

/// How much of something a role may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    No,
    /// What is its own.
    Own,
    /// Of everybody.
    All,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SubmitMessage,
        Self::ReadReceipts,
        Self::AcknowledgeReceipts,
        Self::ReadPayment,
        Self::ReadAccounts,
        Self::ReadQueue,
        Self::ReadIncoming,
        Self::ReadCycles,
        Self::Administer,
        Self::ReadStatus,
        Self::ReadMetrics,
        Self::ReadInterface,
        Self::Probe,
    ];
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Participant, Self::Operator, Self::Auditor];
}

/// The table.
#[must_use]
pub const fn access(role: Role, operation: Operation) -> Access {
    use Access::{All, No, Own};
    // Participant, operator, auditor.
    let row = match operation {
        Operation::SubmitMessage | Operation::AcknowledgeReceipts => [Own, No, No],
        Operation::ReadReceipts => [Own, No, All],
        Operation::ReadPayment
        | Operation::ReadAccounts
        | Operation::ReadQueue
        | Operation::ReadIncoming
        | Operation::ReadCycles => [Own, All, All],
        Operation::Administer => [No, All, No],
        Operation::ReadStatus | Operation::ReadMetrics => [No, All, All],
        Operation::ReadInterface | Operation::Probe => [All, All, All],
    };
    match role {
        Role::Participant => row[0],
        Role::Operator => row[1],
        Role::Auditor => row[2],
    }
}

/// Who asks, as the certificate says, and how much of the asked thing it may have.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub name: ClientName,
    /// The fingerprint of the key that proved it.
    pub key: u128,
    /// Never [`Access::No`].
    pub access: Access,
}

/// What a client's certificate makes it.
#[must_use]
pub const fn role_of(name: &ClientName) -> Role {
    match name {
        ClientName::Participant(_) => Role::Participant,
        ClientName::Operator(_) => Role::Operator,
        ClientName::Auditor(_) => Role::Auditor,
    }
}

impl Caller {
    /// The participant that an answer is about: the caller itself, or whom somebody who may read everything names.
    /// `None` when that one names nobody.
    ///
    /// # Errors
    /// The code of another, which the caller may not read.
    pub fn subject(&self, named: Option<Bic>) -> Result<Option<Bic>, Bic> {
        match (&self.name, named) {
            (ClientName::Participant(own), Some(named)) if named != *own => Err(named),
            (ClientName::Participant(own), _) => Ok(Some(*own)),
            (_, named) => Ok(named),
        }
    }

    /// The only participant whose things the caller may see; `None` for those who see everybody's.
    #[must_use]
    pub const fn only(&self) -> Option<Bic> {
        match &self.name {
            ClientName::Participant(own) => Some(*own),
            ClientName::Operator(_) | ClientName::Auditor(_) => None,
        }
    }
}
