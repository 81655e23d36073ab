//! An independent verifier of cycle certificates and statement chains; it shares no code with the ledger.
//!
//! The data model ([`Certificate`], [`InputLine`], [`Statement`], [`Day`]) and [`write_certificate`], [`write_day`] are
//! for the ledger's side; everything else only reads files and checks them. The crate depends on no other crate of the
//! workspace, and its netting is written separately, so that one mistake cannot stand in both.
//!
//! A certificate proves that the set was netted by the rules from the availabilities it states. That these were the true
//! balances is the journal's to prove. Layouts: `docs/format/certificate.md`.

#![forbid(unsafe_code)]

mod book;
mod certificate;
mod cycle;
mod days;
mod directory;
mod figures;
mod finding;
mod frame;
mod greatest;
mod history;
mod inputs;
mod object;
mod rounds;
mod statement;
mod write;

pub use certificate::{
    Account, CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate, Dropped, LogPosition, NetsBy,
    Participant, Round, Tally, Totals,
};
pub use cycle::{AccountName, CycleVerdict, verify_cycle};
pub use days::DayVerdict;
pub use directory::{CycleReport, DayReport, Report, verify_directory};
pub use figures::{Digest, FigureError, MINOR_MAX, Minor};
pub use finding::Finding;
pub use inputs::{INPUTS_HEADER, InputLine, InputsEncoder, Outcome, TEXT_LEN_BYTES_MAX};
pub use statement::{DAY_FORMAT, DAY_VERSION, Day, DayCurrency, Statement};
pub use write::{WriteError, cycle_directory, day_directory, write_certificate, write_day};
