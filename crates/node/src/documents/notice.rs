//! admi.007: holes in a participant's numbering (rule R5).

use clearspan_iso20022::write::{Acknowledgement, Handled, acknowledgement};
use clearspan_ledger::Text;

use super::{DocumentError, Documents, Sheaf, View};

impl<V: View> Documents<'_, V> {
    /// The missing numbers, and the message that waits for them where this is its answer.
    pub(super) fn gap(
        &self,
        sheaf: &mut Sheaf<'_>,
        message_id: &Text,
        missing_from: u64,
        missing_through: u64,
    ) -> Result<(), DocumentError> {
        add_gap(sheaf, message_id, missing_from, missing_through)
    }
}

/// `17`, or `17-25`.
fn range(from: u64, through: u64) -> String {
    if from == through {
        from.to_string()
    } else {
        format!("{from}-{through}")
    }
}

pub(super) fn add_gap(
    sheaf: &mut Sheaf<'_>,
    message_id: &Text,
    missing_from: u64,
    missing_through: u64,
) -> Result<(), DocumentError> {
    let at = Some(sheaf.created);
    let missing = range(missing_from, missing_through);
    let mut items = Vec::with_capacity(2);
    if !message_id.is_empty() {
        items.push(Acknowledgement {
            reference: message_id.as_str(),
            name: None,
            handled: Handled::Pending,
            at,
            text: "It waits for the missing numbers before it.",
        });
    }
    items.push(Acknowledgement {
        reference: &missing,
        name: Some("SEQUENCE"),
        handled: Handled::Missing,
        at,
        text: "These numbers of your sequence have not arrived.",
    });
    sheaf.add("admi.007.001.01".to_owned(), |out, head| {
        acknowledgement(out, head, &items);
    })
}

/// One thing that was not done, or not in full.
pub(super) fn add_notice(
    sheaf: &mut Sheaf<'_>,
    reference: &str,
    name: Option<&str>,
    handled: Handled,
    text: &str,
) -> Result<(), DocumentError> {
    let item = Acknowledgement {
        reference,
        name,
        handled,
        at: Some(sheaf.created),
        text,
    };
    sheaf.add("admi.007.001.01".to_owned(), |out, head| {
        acknowledgement(out, head, &[item]);
    })
}
