//! Real shapes and traps.
