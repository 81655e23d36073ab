//! camt.054, what was credited (or debited) to an account: one page.

use super::cash::{Account, Entry, EntryDetail, Page, Style, Totals};
use super::document::{Head, document};
use super::version::CashVersion;

/// A page of notices without its entries.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    /// Which version is written.
    pub version: CashVersion,
    /// The account.
    pub account: Account<'a>,
    /// Which page of the report.
    pub page: Page,
    /// `ElctrncSeqNb`: the participant's output number, where wanted.
    pub sequence: Option<u64>,
    /// Counts and sums of this page's entries.
    pub totals: Totals,
    /// The query that this answers, if one does.
    pub query: Option<&'a str>,
}

/// Appends one page of a camt.054, the entries in the order given. `Ntfctn/Id` is the message's identifier.
///
/// Time per notice on one core: see `benches/write.rs`.
pub fn notification<'e, 'd, D>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    notification: &Notification<'_>,
    entries: impl IntoIterator<Item = Entry<'e, D>>,
) where
    D: IntoIterator<Item = EntryDetail<'d>>,
{
    let mut style = Style::new(notification.version, notification.account.currency);
    document(
        out,
        head,
        definition(notification.version),
        "BkToCstmrDbtCdtNtfctn",
        |xml| {
            style.group_header(xml, head, notification.page, notification.query);
            xml.group("Ntfctn", |xml| {
                xml.id("Id", head.message_id);
                if let Some(sequence) = notification.sequence {
                    xml.number("ElctrncSeqNb", sequence);
                }
                xml.time("CreDtTm", head.created);
                style.account(xml, &notification.account, head.from);
                style.totals(xml, &notification.totals);
                for entry in entries {
                    style.entry(xml, entry);
                }
            });
        },
    );
}

const fn definition(version: CashVersion) -> &'static str {
    match version {
        CashVersion::V02 => "camt.054.001.02",
        CashVersion::V04 => "camt.054.001.04",
        CashVersion::V08 => "camt.054.001.08",
        CashVersion::V12 => "camt.054.001.12",
    }
}
