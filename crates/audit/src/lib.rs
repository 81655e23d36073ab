//! An independent verifier of cycle certificates and statement chains; it shares no code with the ledger.
//!
//! The data model ([`Certificate`], [`InputLine`], [`Statement`], [`Day`]) is what the ledger's side writes; everything
//! else here only reads files and checks them. The crate depends on no other crate of the workspace, and its netting is
//! written separately, so that one mistake cannot stand in both.

#![forbid(unsafe_code)]

mod certificate;
mod figures;
mod inputs;
mod statement;

pub use certificate::{
    Account, CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate, Dropped, LogPosition, NetsBy,
    Participant, Round, Tally, Totals,
};
pub use figures::{Digest, FigureError, MINOR_MAX, Minor};
pub use inputs::{INPUTS_HEADER, InputLine, InputsEncoder, Outcome, TEXT_LEN_BYTES_MAX};
pub use statement::{DAY_FORMAT, DAY_VERSION, Day, DayCurrency, Statement};
