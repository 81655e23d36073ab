//! What camt.052, camt.053 and camt.054 share: account, page, totals, entries and their payments.

use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, PaymentId, Timestamp,
};

use super::document::Head;
use super::status::{Finality, cycle_reference};
use super::version::CashVersion;
use super::xml::{Xml, date_text, fits_18_digits, hex_text, time_text};

/// A settlement account as reports name it.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Its identifier, 1 to 34 characters.
    pub id: &'a str,
    /// Its currency; every amount of the document is in it.
    pub currency: Currency,
    /// The participant that owns it.
    pub owner: Bic,
}

/// Credited or debited, seen from the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `CRDT`
    Credit,
    /// `DBIT`
    Debit,
}

impl Direction {
    /// The direction of a signed amount; nothing counts as a credit.
    #[must_use]
    pub const fn of(minor: i128) -> Self {
        if minor < 0 { Self::Debit } else { Self::Credit }
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Credit => "CRDT",
            Self::Debit => "DBIT",
        }
    }
}

/// What an entry is: a domain, family and sub-family of the ISO bank transaction codes, or a code of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankCode {
    /// Customer transfer received, `PMNT/RCDT/DMCT`.
    TransferReceived,
    /// Customer transfer sent, `PMNT/ICDT/DMCT`.
    TransferSent,
    /// Transfer between institutions received, `PMNT/RCDT/FICT`.
    BankTransferReceived,
    /// Transfer between institutions sent, `PMNT/ICDT/FICT`.
    BankTransferSent,
    /// Return received, `PMNT/RCDT/RRTN`.
    ReturnReceived,
    /// Return sent, `PMNT/ICDT/RRTN`.
    ReturnSent,
    /// The net movement of a cycle, or another movement without an ISO code: `Prtry/Cd`, at most 35 characters.
    Own(&'static str),
}

impl BankCode {
    /// The net movement of a cycle.
    pub const NETTING: Self = Self::Own("NETTING");
    /// A movement between the account and the central bank.
    pub const FUNDING: Self = Self::Own("FUNDING");

    fn write(self, xml: &mut Xml<'_>) {
        let (family, sub_family) = match self {
            Self::TransferReceived => ("RCDT", "DMCT"),
            Self::TransferSent => ("ICDT", "DMCT"),
            Self::BankTransferReceived => ("RCDT", "FICT"),
            Self::BankTransferSent => ("ICDT", "FICT"),
            Self::ReturnReceived => ("RCDT", "RRTN"),
            Self::ReturnSent => ("ICDT", "RRTN"),
            Self::Own(code) => {
                xml.raw("<BkTxCd><Prtry>");
                xml.text("Cd", code);
                xml.raw("</Prtry></BkTxCd>");
                return;
            }
        };
        xml.raw("<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>");
        xml.raw(family);
        xml.raw("</Cd><SubFmlyCd>");
        xml.raw(sub_family);
        xml.raw("</SubFmlyCd></Fmly></Domn></BkTxCd>");
    }
}

/// Which page of a report that was cut in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: u16,
    /// Whether no page follows.
    pub last: bool,
}

impl Page {
    /// A report of one page.
    pub const ONLY: Self = Self {
        number: 1,
        last: true,
    };
}

/// Counts and sums of a document's entries, in minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many entries are credits.
    pub credits: u64,
    /// Their sum.
    pub credit_sum: u128,
    /// How many entries are debits.
    pub debits: u64,
    /// Their sum.
    pub debit_sum: u128,
}

impl Totals {
    /// Adds one entry.
    ///
    /// # Panics
    /// When a sum would exceed 128 bits, which no account's sum can.
    pub fn add(&mut self, direction: Direction, minor: u128) {
        let (count, sum) = match direction {
            Direction::Credit => (&mut self.credits, &mut self.credit_sum),
            Direction::Debit => (&mut self.debits, &mut self.debit_sum),
        };
        *count += 1;
        *sum = sum
            .checked_add(minor)
            .expect("sums of 18-digit amounts stay below 128 bits");
    }
}

/// One booking on the account: a gross payment, a cycle's net movement, or a batch of a cycle's payments.
#[derive(Clone, Debug)]
pub struct Entry<'a, D> {
    /// `NtryRef`: its reference in this account, at most 35 characters.
    pub reference: &'a str,
    /// Amount, in minor units.
    pub amount: u128,
    /// Credited or debited.
    pub direction: Direction,
    /// When it became final.
    pub booked: Timestamp,
    /// Value date.
    pub value_date: BusinessDate,
    /// The cycle it belongs to; `AcctSvcrRef`, as `CYCLE-42`. Else the finality stands there.
    pub cycle: Option<CycleNumber>,
    /// Where it became final.
    pub finality: Finality,
    /// What it is.
    pub code: BankCode,
    /// How many payments it sums up: `Btch` is written where given.
    pub batch_count: Option<u64>,
    /// Its payments; may be none.
    pub details: D,
}

/// One payment of an entry.
#[derive(Clone, Copy, Debug)]
pub struct EntryDetail<'a> {
    /// Identifier of the sender's message, where it helps.
    pub message_id: Option<&'a str>,
    /// `InstrId`.
    pub instruction_id: Option<&'a str>,
    /// `EndToEndId`.
    pub end_to_end_id: Option<&'a str>,
    /// `TxId`.
    pub transaction_id: Option<&'a str>,
    /// The payment's key: a UETR is written, from version `.08` on as such, before as a proprietary reference without
    /// hyphens (36 characters do not fit); a hash is not.
    pub id: PaymentId,
    /// `ClrSysRef`: the finality reference, where the payment has one apart from its entry's.
    pub finality: Option<Finality>,
    /// Amount.
    pub amount: AmountMinor,
    /// The other participant: the debtor's agent of a credit, the creditor's agent of a debit.
    pub counterparty: Bic,
}

/// The texts and tags that every entry of a document repeats.
pub(super) struct Style {
    version: CashVersion,
    currency: Currency,
    exponent: u8,
    bic_tag: &'static str,
    // Entries of one cycle share their times: the last one's texts are kept.
    booked: (Timestamp, [u8; 27]),
    value_date: (BusinessDate, [u8; 10]),
}

impl Style {
    pub(super) fn new(version: CashVersion, currency: Currency) -> Self {
        Self {
            version,
            currency,
            exponent: currency.exponent(),
            bic_tag: if version == CashVersion::V02 {
                "BIC"
            } else {
                "BICFI"
            },
            booked: (Timestamp::ZERO, time_text(Timestamp::ZERO)),
            value_date: (BusinessDate::default(), date_text(BusinessDate::default())),
        }
    }

    pub(super) fn amount(&self, xml: &mut Xml<'_>, tag: &str, minor: u128) {
        xml.amount(tag, minor, self.currency, self.exponent);
    }

    fn old(&self) -> bool {
        self.version < CashVersion::V08
    }

    /// `Ntry`, all of it.
    pub(super) fn entry<'d, D>(&mut self, xml: &mut Xml<'_>, entry: Entry<'_, D>)
    where
        D: IntoIterator<Item = EntryDetail<'d>>,
    {
        xml.raw("<Ntry>");
        xml.optional("NtryRef", Some(entry.reference));
        self.amount(xml, "Amt", entry.amount);
        xml.code("CdtDbtInd", entry.direction.code());
        xml.raw(if self.old() {
            "<Sts>BOOK</Sts>"
        } else {
            "<Sts><Cd>BOOK</Cd></Sts>"
        });
        if self.booked.0 != entry.booked {
            self.booked = (entry.booked, time_text(entry.booked));
        }
        if self.value_date.0 != entry.value_date {
            self.value_date = (entry.value_date, date_text(entry.value_date));
        }
        xml.raw("<BookgDt><DtTm>");
        xml.out.extend_from_slice(&self.booked.1);
        xml.raw("</DtTm></BookgDt><ValDt><Dt>");
        xml.out.extend_from_slice(&self.value_date.1);
        xml.raw("</Dt></ValDt>");
        match entry.cycle {
            Some(cycle) => cycle_reference(xml, "AcctSvcrRef", cycle),
            None => entry.finality.write(xml, "AcctSvcrRef"),
        }
        entry.code.write(xml);
        xml.raw("<NtryDtls>");
        let begin = xml.out.len();
        if let Some(count) = entry.batch_count {
            xml.raw("<Btch>");
            xml.number("NbOfTxs", count);
            self.amount(xml, "TtlAmt", entry.amount);
            xml.code("CdtDbtInd", entry.direction.code());
            xml.raw("</Btch>");
        }
        for detail in entry.details {
            self.detail(xml, entry.direction, &detail);
        }
        if xml.out.len() == begin {
            // No batch, no payment: the element would be empty.
            xml.out.truncate(begin - "<NtryDtls>".len());
        } else {
            xml.raw("</NtryDtls>");
        }
        xml.raw("</Ntry>");
    }

    fn detail(&self, xml: &mut Xml<'_>, direction: Direction, detail: &EntryDetail<'_>) {
        xml.raw("<TxDtls><Refs>");
        xml.optional("MsgId", detail.message_id);
        xml.optional("InstrId", detail.instruction_id);
        xml.optional("EndToEndId", detail.end_to_end_id);
        if let (PaymentId::Uetr(bits), false) = (detail.id, self.old()) {
            xml.uetr("UETR", bits);
        }
        xml.optional("TxId", detail.transaction_id);
        if let Some(finality) = detail.finality {
            finality.write(xml, "ClrSysRef");
        }
        if let (PaymentId::Uetr(bits), true) = (detail.id, self.old()) {
            xml.raw("<Prtry><Tp>UETR</Tp><Ref>");
            xml.out.extend_from_slice(&hex_text(bits));
            xml.raw("</Ref></Prtry>");
        }
        xml.raw("</Refs>");
        let minor = u128::from(detail.amount.minor());
        if self.version == CashVersion::V02 {
            xml.raw("<AmtDtls><TxAmt>");
            self.amount(xml, "Amt", minor);
            xml.raw("</TxAmt></AmtDtls>");
        } else {
            self.amount(xml, "Amt", minor);
            xml.code("CdtDbtInd", direction.code());
        }
        xml.raw("<RltdAgts>");
        let tag = match direction {
            Direction::Credit => "DbtrAgt",
            Direction::Debit => "CdtrAgt",
        };
        xml.agent(tag, detail.counterparty, self.bic_tag);
        xml.raw("</RltdAgts></TxDtls>");
    }

    /// `GrpHdr` of a report.
    pub(super) fn group_header(
        &self,
        xml: &mut Xml<'_>,
        head: &Head<'_>,
        page: Page,
        query: Option<&str>,
    ) {
        xml.group("GrpHdr", |xml| {
            xml.id("MsgId", head.message_id);
            xml.time("CreDtTm", head.created);
            xml.group("MsgPgntn", |xml| {
                xml.number("PgNb", u64::from(page.number));
                xml.code("LastPgInd", if page.last { "true" } else { "false" });
            });
            // Version .02 has no place for the query that is answered.
            if let Some(query) = query.filter(|_| self.version > CashVersion::V02) {
                xml.group("OrgnlBizQry", |xml| xml.id("MsgId", query));
            }
        });
    }

    /// `Acct`.
    pub(super) fn account(&self, xml: &mut Xml<'_>, account: &Account<'_>, servicer: Bic) {
        xml.group("Acct", |xml| {
            xml.raw("<Id><Othr>");
            xml.id("Id", account.id);
            xml.raw("</Othr></Id>");
            xml.code("Ccy", account.currency.as_str());
            xml.raw("<Ownr><Id><OrgId>");
            xml.code(
                if self.version == CashVersion::V02 {
                    "BICOrBEI"
                } else {
                    "AnyBIC"
                },
                account.owner.as_str(),
            );
            xml.raw("</OrgId></Id></Ownr>");
            xml.agent("Svcr", servicer, self.bic_tag);
        });
    }

    /// `TxsSummry`. Sums of more than 18 digits are left out.
    pub(super) fn totals(&self, xml: &mut Xml<'_>, totals: &Totals) {
        let (net, direction) = if totals.credit_sum >= totals.debit_sum {
            (totals.credit_sum - totals.debit_sum, Direction::Credit)
        } else {
            (totals.debit_sum - totals.credit_sum, Direction::Debit)
        };
        xml.group("TxsSummry", |xml| {
            xml.group("TtlNtries", |xml| {
                self.count_and_sum(
                    xml,
                    totals.credits + totals.debits,
                    totals.credit_sum.checked_add(totals.debit_sum),
                );
                if !fits_18_digits(net) {
                } else if self.version == CashVersion::V02 {
                    xml.decimal("TtlNetNtryAmt", net, self.exponent);
                    xml.code("CdtDbtInd", direction.code());
                } else {
                    xml.group("TtlNetNtry", |xml| {
                        xml.decimal("Amt", net, self.exponent);
                        xml.code("CdtDbtInd", direction.code());
                    });
                }
            });
            for (tag, count, sum) in [
                ("TtlCdtNtries", totals.credits, totals.credit_sum),
                ("TtlDbtNtries", totals.debits, totals.debit_sum),
            ] {
                if count > 0 {
                    xml.group(tag, |xml| self.count_and_sum(xml, count, Some(sum)));
                }
            }
        });
    }

    fn count_and_sum(&self, xml: &mut Xml<'_>, count: u64, sum: Option<u128>) {
        xml.number("NbOfNtries", count);
        if let Some(sum) = sum.filter(|&sum| fits_18_digits(sum)) {
            xml.decimal("Sum", sum, self.exponent);
        }
    }
}
