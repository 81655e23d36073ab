//! One rule, one small message.
