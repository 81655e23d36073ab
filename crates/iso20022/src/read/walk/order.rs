//! The published order and cardinality, while elements come.

use std::borrow::Cow;

use super::super::names::same;
use super::super::shape::Child;
use super::place::Printed;
use super::{Field, Frame, Node};

/// The child of `node` that an element is: the published order, and each as often as published.
pub(super) fn advance(
    parent: &mut Frame<'_>,
    node: &'static Node,
    name: &[u8],
    version: u8,
) -> Result<&'static Child, Cow<'static, str>> {
    let from = parent.next;
    let later = node.children.get(from..).unwrap_or_default();
    let found = later
        .iter()
        .position(|child| same(child.name.as_bytes(), name) && child.in_version(version));
    let Some(found) = found.map(|found| from + found) else {
        let known = node
            .children
            .iter()
            .any(|child| child.name.as_bytes() == name && child.in_version(version));
        return Err(if known {
            format!("{} is out of order, or stands twice", Printed(name)).into()
        } else {
            format!(
                "{} is no element of this place in this version",
                Printed(name)
            )
            .into()
        });
    };
    if node.choice {
        if parent.repeated && found != from {
            return Err(format!("{} beside its alternative", Printed(name)).into());
        }
    } else {
        missing(parent, node, found, version)?;
    }
    let child = &node.children[found];
    parent.repeated = child.many;
    parent.next = match (child.many, node.choice) {
        (true, _) => found,
        (false, false) => found + 1,
        (false, true) => node.children.len(),
    };
    Ok(child)
}

/// Whether a required child before `until` is missing.
fn missing(
    parent: &Frame<'_>,
    node: &'static Node,
    until: usize,
    version: u8,
) -> Result<(), Cow<'static, str>> {
    for at in parent.next..until {
        let child = &node.children[at];
        let came = at == parent.next && parent.repeated;
        if child.required && !came && child.in_version(version) {
            return Err(format!("{} is missing", child.name).into());
        }
    }
    Ok(())
}

pub(super) fn complete(
    frame: &Frame<'_>,
    node: &'static Node,
    version: u8,
) -> Result<(), Cow<'static, str>> {
    if node.choice {
        let chosen = frame.next != 0 || frame.repeated;
        return if chosen {
            Ok(())
        } else {
            Err("one of its alternatives is missing".into())
        };
    }
    missing(frame, node, node.children.len(), version)
}

/// Whether a field is read from text.
pub(super) fn is_value(field: Field) -> bool {
    !matches!(
        field,
        Field::None | Field::Cover | Field::GroupCancellation | Field::ReturnedGroup
    )
}
