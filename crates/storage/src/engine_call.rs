//! Calls into the storage engines below us, whose own assertions damaged input can trip: a panic in one is a refusal with
//! a text, never a crash.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the engine answered, or the text of its panic. What the call worked on may be half done afterwards: the caller
/// gives it up or only reads.
pub(crate) fn engine_call<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| text(panic.as_ref()))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "the storage engine panicked".to_owned())
}
