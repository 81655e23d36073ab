//! What the verifier promises at its door: sound certificates pass, and no tampering does.

mod forgery;
mod golden;
mod netting;
mod random;
mod statements;
