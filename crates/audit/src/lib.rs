//! An independent verifier of cycle certificates and statement chains; it shares no code with the ledger.

#![forbid(unsafe_code)]
