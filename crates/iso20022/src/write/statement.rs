//! camt.053, the statement of a business day, and camt.052, the report within the day.

use clearspan_ledger::{BusinessDate, Timestamp};

use super::cash::{Account, Direction, Entry, EntryDetail, Page, Style, Totals};
use super::document::{Head, document};
use super::version::CashVersion;

/// Which balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceKind {
    /// `OPBD`: at the opening; equals the closing of the statement before (rule R37).
    Opening,
    /// `CLBD`: at the close.
    Closing,
    /// `ITBD`: at an instant within the day, or at the end of a page that is not the last.
    Interim,
    /// `ITAV`: what of it is free, reservations taken off.
    InterimAvailable,
}

impl BalanceKind {
    /// The code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Opening => "OPBD",
            Self::Closing => "CLBD",
            Self::Interim => "ITBD",
            Self::InterimAvailable => "ITAV",
        }
    }
}

/// A balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Which.
    pub kind: BalanceKind,
    /// In minor units; negative where the account is overdrawn.
    pub minor: i128,
    /// Of which business date.
    pub date: BusinessDate,
    /// At which instant, for a balance within the day; then the date is not written.
    pub at: Option<Timestamp>,
}

/// A statement or report without its entries.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Which version is written.
    pub version: CashVersion,
    /// `Stmt/Id` or `Rpt/Id`, the same on all pages; 1 to 35 characters.
    pub id: &'a str,
    /// `ElctrncSeqNb` and `LglSeqNb`: the statement's place in the account's chain, from 1 and without holes.
    pub sequence: u64,
    /// `AddtlStmtInf` or `AddtlRptInf`: what ties the statement to the one before (such as the digest of its content);
    /// cut after 500 characters.
    pub chain: Option<&'a str>,
    /// First and last instant that it covers.
    pub period: Option<(Timestamp, Timestamp)>,
    /// The account.
    pub account: Account<'a>,
    /// Which page.
    pub page: Page,
    /// The balances, in order: a camt.053 needs one at least.
    pub balances: &'a [Balance],
    /// Counts and sums, of the whole statement.
    pub totals: Totals,
    /// The query that this answers, if one does.
    pub query: Option<&'a str>,
}

/// Appends one page of a camt.053, the entries in the order given.
pub fn statement<'e, 'd, D>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    statement: &Statement<'_>,
    entries: impl IntoIterator<Item = Entry<'e, D>>,
) where
    D: IntoIterator<Item = EntryDetail<'d>>,
{
    let names = Names {
        definition: match statement.version {
            CashVersion::V02 => "camt.053.001.02",
            CashVersion::V04 => "camt.053.001.04",
            CashVersion::V08 => "camt.053.001.08",
            CashVersion::V12 => "camt.053.001.12",
        },
        root: "BkToCstmrStmt",
        body: "Stmt",
        additional: "AddtlStmtInf",
    };
    write(out, head, &names, statement, entries);
}

/// Appends one page of a camt.052, the entries in the order given.
pub fn intraday_report<'e, 'd, D>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    report: &Statement<'_>,
    entries: impl IntoIterator<Item = Entry<'e, D>>,
) where
    D: IntoIterator<Item = EntryDetail<'d>>,
{
    let names = Names {
        definition: match report.version {
            CashVersion::V02 => "camt.052.001.02",
            CashVersion::V04 => "camt.052.001.04",
            CashVersion::V08 => "camt.052.001.08",
            CashVersion::V12 => "camt.052.001.12",
        },
        root: "BkToCstmrAcctRpt",
        body: "Rpt",
        additional: "AddtlRptInf",
    };
    write(out, head, &names, report, entries);
}

struct Names {
    definition: &'static str,
    root: &'static str,
    body: &'static str,
    additional: &'static str,
}

fn write<'e, 'd, D>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    names: &Names,
    statement: &Statement<'_>,
    entries: impl IntoIterator<Item = Entry<'e, D>>,
) where
    D: IntoIterator<Item = EntryDetail<'d>>,
{
    let mut style = Style::new(statement.version, statement.account.currency);
    document(out, head, names.definition, names.root, |xml| {
        style.group_header(xml, head, statement.page, statement.query);
        xml.group(names.body, |xml| {
            xml.id("Id", statement.id);
            xml.number("ElctrncSeqNb", statement.sequence);
            xml.number("LglSeqNb", statement.sequence);
            xml.time("CreDtTm", head.created);
            if let Some((from, to)) = statement.period {
                xml.group("FrToDt", |xml| {
                    xml.time("FrDtTm", from);
                    xml.time("ToDtTm", to);
                });
            }
            style.account(xml, &statement.account, head.from);
            for balance in statement.balances {
                xml.group("Bal", |xml| {
                    xml.raw("<Tp><CdOrPrtry>");
                    xml.code("Cd", balance.kind.code());
                    xml.raw("</CdOrPrtry></Tp>");
                    style.amount(xml, "Amt", balance.minor.unsigned_abs());
                    xml.code("CdtDbtInd", Direction::of(balance.minor).code());
                    xml.group("Dt", |xml| match balance.at {
                        Some(at) => xml.time("DtTm", at),
                        None => xml.date("Dt", balance.date),
                    });
                });
            }
            style.totals(xml, &statement.totals);
            for entry in entries {
                style.entry(xml, entry);
            }
            xml.description(names.additional, statement.chain.unwrap_or(""), 500);
        });
    });
}
