//! The same message in the clothes that real senders give it.

/// Every element under the prefix `p`.
pub(super) fn prefixed(xml: &str) -> String {
    let mut out = String::with_capacity(xml.len() + xml.len() / 8);
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        let after = &rest[at + 1..];
        let closing = usize::from(after.starts_with('/'));
        out.push_str(&rest[..=at + closing]);
        rest = &after[closing..];
        if !rest.starts_with('?') {
            out.push_str("p:");
        }
    }
    out.push_str(rest);
    out.replace(" xmlns=", " xmlns:p=")
}

/// A byte order mark, every element on a line of its own, lines ending in carriage return and line feed.
pub(super) fn bom_and_crlf(xml: &str) -> String {
    let lines = xml.replace('\n', "\r\n").replace("><", ">\r\n  <");
    format!("\u{feff}{lines}")
}

/// Single quotes around attributes, and a comment between two elements.
pub(super) fn quoted_and_commented(xml: &str) -> String {
    xml.replace('"', "'").replace(
        "</GrpHdr>",
        "</GrpHdr><!-- <CdtTrfTxInf> of yesterday's batch, left out -->",
    )
}

/// The document below a root of `root`, with what `before` says before it.
pub(super) fn enveloped(xml: &str, root: &str, before: &str, end: &str) -> String {
    let body = xml.split_once('\n').map_or(xml, |(_, body)| body);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{root}{before}{body}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_goes_on_every_element_and_on_the_namespace() {
        let plain = "<?xml version=\"1.0\"?>\n<A xmlns=\"urn:x\"><B c=\"d\">e</B></A>";
        assert_eq!(
            prefixed(plain),
            "<?xml version=\"1.0\"?>\n<p:A xmlns:p=\"urn:x\"><p:B c=\"d\">e</p:B></p:A>"
        );
    }
}
