//! Elements by name, found by looking for their tags: enough for documents of our own and for the inputs of these tests,
//! and not a line shared with the reader and the writer that are under test.

/// A piece of XML with one element's whole text and what stands between its tags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) outer: &'a str,
    pub(crate) inner: &'a str,
}

impl<'a> Element<'a> {
    /// The value of an attribute, in either kind of quotes.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        let tag = self.outer.split('>').next()?;
        let value = tag.split_once(&format!("{name}="))?.1;
        let quote = value.chars().next()?;
        value[1..].split(quote).next()
    }
}

/// All elements of a name, with or without a prefix, that do not lie in one another.
pub(crate) fn all<'a>(text: &'a str, name: &str) -> Vec<Element<'a>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        // What a comment holds is no element.
        if rest.starts_with("<!--") {
            rest = rest.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let tag = rest[1..]
            .split(['>', ' ', '/', '\r', '\n'])
            .next()
            .unwrap_or_default();
        if tag.rsplit(':').next() != Some(name) {
            rest = &rest[1..];
            continue;
        }
        let Some(open) = rest.find('>') else { break };
        let close = format!("</{tag}>");
        let Some(end) = rest.find(&close) else { break };
        let after = end + close.len();
        found.push(Element {
            outer: &rest[..after],
            inner: &rest[open + 1..end],
        });
        rest = &rest[after..];
    }
    found
}

/// The text of the first element of a name.
pub(crate) fn first<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    all(text, name).first().map(|element| element.inner)
}

/// The text of an element that must be there.
#[track_caller]
pub(crate) fn need<'a>(text: &'a str, name: &str) -> &'a str {
    first(text, name).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// A decimal number in hundred-thousandths, the finest that an amount may be.
#[track_caller]
pub(crate) fn amount(text: &str) -> i128 {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    assert!(decimals.len() <= 5, "{text} has too many decimals");
    format!("{whole}{decimals:0<5}")
        .parse()
        .unwrap_or_else(|_| panic!("{text:?} is no amount"))
}

#[test]
fn prefixes_comments_and_attributes() {
    let text = "<a><!-- <b>x</b> --><p:b Ccy='EUR'>1</p:b><b Ccy=\"JPY\">2</b></a>";
    let found = all(text, "b");
    assert_eq!(
        found
            .iter()
            .map(|element| element.inner)
            .collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert_eq!(found[0].attribute("Ccy"), Some("EUR"));
    assert_eq!(found[1].outer, "<b Ccy=\"JPY\">2</b>");
    assert_eq!(amount("12.5"), 1_250_000);
    assert_eq!(amount("-0.00001"), -1);
}
