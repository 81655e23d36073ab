//! An outbox as its participants read it: statuses, credits, forwarded payments, net results, statements.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::tree;
use crate::xml::{all, amount, first, need};

/// Count and sum (in hundred-thousandths) per currency.
pub(crate) type Totals = BTreeMap<String, (u64, i128)>;

/// One document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) bic: String,
    pub(crate) name: String,
    pub(crate) xml: String,
}

/// All numbered documents.
#[derive(Debug)]
pub(crate) struct Outbox(Vec<Document>);

/// What a pacs.002 says.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) bic: String,
    pub(crate) message_id: String,
    pub(crate) group: String,
    pub(crate) group_code: String,
    pub(crate) payments: Vec<PaymentStatus>,
    /// Status and count.
    pub(crate) counts: Vec<(String, u64)>,
}

#[derive(Debug)]
pub(crate) struct PaymentStatus {
    pub(crate) transaction: String,
    pub(crate) status: String,
    pub(crate) code: String,
}

/// What a camt.053 says, in hundred-thousandths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) opening: i128,
    pub(crate) closing: i128,
    pub(crate) credits: (u64, i128),
    pub(crate) debits: (u64, i128),
}

impl Outbox {
    pub(crate) fn read(out: &Path) -> Self {
        let mut documents = Vec::new();
        for (path, bytes) in tree(&out.join("outbox")) {
            let parts: Vec<_> = path
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if let [bic, name] = &parts[..] {
                let xml = String::from_utf8(bytes).expect("documents are UTF-8");
                documents.push(Document {
                    bic: bic.clone(),
                    name: name.clone(),
                    xml,
                });
            }
        }
        Self(documents)
    }

    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Document> {
        self.0
            .iter()
            .filter(move |document| document.name.contains(kind))
    }

    pub(crate) fn to<'a>(&'a self, bic: &'a str) -> impl Iterator<Item = &'a Document> {
        self.0.iter().filter(move |document| document.bic == bic)
    }

    /// Every participant's numbers run from 1 without a hole.
    pub(crate) fn check_numbers(&self) {
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for document in &self.0 {
            let number = document.name[..8]
                .parse()
                .expect("a name begins with its number");
            let before = last.insert(&document.bic, number).unwrap_or(0);
            assert!(
                number == before || number == before + 1,
                "{} {number} follows {before}",
                document.bic
            );
        }
    }

    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.of("pacs.002")
            .map(|document| status(&document.bic, &document.xml))
            .collect()
    }

    /// Payments said to be settled, by count: singly (gross), or by the number in a cycle.
    pub(crate) fn settled_by_statuses(&self) -> u64 {
        self.statuses()
            .iter()
            .map(|status| {
                let counted: u64 = status
                    .counts
                    .iter()
                    .filter(|(code, _)| code == "ACSC")
                    .map(|(_, count)| count)
                    .sum();
                let named = status
                    .payments
                    .iter()
                    .filter(|payment| payment.status == "ACSC")
                    .count() as u64;
                counted.max(named)
            })
            .sum()
    }

    /// What credit notices say of payments; central-bank money is none.
    pub(crate) fn credits(&self) -> Totals {
        let mut totals = Totals::new();
        for document in self.of("camt.054") {
            let currency = need(need(&document.xml, "Acct"), "Ccy");
            for entry in all(&document.xml, "Ntry") {
                assert_eq!(need(entry.inner, "CdtDbtInd"), "CRDT", "{}", document.name);
                if entry.inner.contains("<Cd>FUNDING</Cd>") {
                    continue;
                }
                let details = all(entry.inner, "TxDtls");
                let count = first(entry.inner, "NbOfTxs")
                    .map_or(1, |count| count.parse().expect("a count"));
                assert_eq!(
                    details.len() as u64,
                    count,
                    "{} {}",
                    document.bic,
                    document.name
                );
                let sum: i128 = details
                    .iter()
                    .map(|detail| amount(need(detail.inner, "Amt")))
                    .sum();
                assert_eq!(
                    sum,
                    amount(need(entry.inner, "Amt")),
                    "{} {}",
                    document.bic,
                    document.name
                );
                add(&mut totals, currency, count, sum);
            }
        }
        totals
    }

    /// Payments passed on to their receivers, with their bytes.
    pub(crate) fn forwarded(&self) -> (Totals, Vec<&str>) {
        let mut totals = Totals::new();
        let mut transactions = Vec::new();
        for (kind, element, money) in [
            ("pacs.008", "CdtTrfTxInf", "IntrBkSttlmAmt"),
            ("pacs.009", "CdtTrfTxInf", "IntrBkSttlmAmt"),
            ("pacs.004", "TxInf", "RtrdIntrBkSttlmAmt"),
        ] {
            for document in self.of(kind) {
                let found = all(&document.xml, element);
                assert_eq!(
                    need(&document.xml, "NbOfTxs"),
                    found.len().to_string(),
                    "{}",
                    document.name
                );
                let mut sum = 0;
                for transaction in &found {
                    let amounts = all(transaction.inner, money);
                    let value = amount(amounts[0].inner);
                    add(
                        &mut totals,
                        amounts[0].attribute("Ccy").expect("a currency"),
                        1,
                        value,
                    );
                    sum += value;
                    transactions.push(transaction.outer);
                }
                if let Some(stated) = first(&document.xml, "CtrlSum") {
                    assert_eq!(amount(stated), sum, "{} {}", document.bic, document.name);
                }
            }
        }
        (totals, transactions)
    }

    /// Of each cycle and currency, what the participants gained and what they gave, by the pacs.029 to each.
    pub(crate) fn nets(&self) -> BTreeMap<(String, String), (i128, i128)> {
        let mut nets = BTreeMap::new();
        for document in self.of("pacs.029") {
            for request in all(&document.xml, "SttlmReq") {
                let own = all(request.inner, "MvmntRcrd")
                    .into_iter()
                    .find(|record| need(record.inner, "AnyBIC") == document.bic)
                    .expect("its own movement");
                let money = all(need(own.outer, "Amt"), "Amt");
                let money = money
                    .first()
                    .copied()
                    .unwrap_or_else(|| all(own.inner, "Amt")[0]);
                let currency = need(request.inner, "InstrId")
                    .rsplit('-')
                    .next()
                    .expect("a currency")
                    .to_owned();
                let value = amount(money.inner.rsplit('>').next().expect("an amount"));
                let sums: &mut (i128, i128) = nets
                    .entry((need(request.inner, "SttlmCycl").to_owned(), currency))
                    .or_default();
                match need(own.inner, "CdtDbt") {
                    "CRDT" => sums.0 += value,
                    _ => sums.1 += value,
                }
            }
        }
        nets
    }

    /// Statements by participant and currency, each checked in itself: opening and entries give the closing balance.
    pub(crate) fn statements(&self) -> BTreeMap<(String, String), Vec<Statement>> {
        let mut statements: BTreeMap<_, Vec<Statement>> = BTreeMap::new();
        for document in self.of("camt.053") {
            let currency = need(need(&document.xml, "Acct"), "Ccy");
            let balance = |code: &str| {
                let balances = all(&document.xml, "Bal");
                let found = balances
                    .iter()
                    .find(|balance| need(balance.inner, "Cd") == code)
                    .expect("a balance");
                signed(found.inner)
            };
            let mut statement = Statement {
                opening: balance("OPBD"),
                closing: balance("CLBD"),
                credits: (0, 0),
                debits: (0, 0),
            };
            for entry in all(&document.xml, "Ntry") {
                let value = signed(entry.inner);
                let side = if value < 0 {
                    &mut statement.debits
                } else {
                    &mut statement.credits
                };
                side.0 += 1;
                side.1 += value.abs();
            }
            assert_eq!(
                statement.opening + statement.credits.1 - statement.debits.1,
                statement.closing,
                "{} {}",
                document.bic,
                document.name
            );
            for (total, (count, sum)) in [
                ("TtlCdtNtries", statement.credits),
                ("TtlDbtNtries", statement.debits),
            ] {
                if let Some(stated) = first(&document.xml, total) {
                    assert_eq!(
                        need(stated, "NbOfNtries"),
                        count.to_string(),
                        "{}",
                        document.name
                    );
                    assert_eq!(amount(need(stated, "Sum")), sum, "{}", document.name);
                }
            }
            statements
                .entry((document.bic.clone(), currency.to_owned()))
                .or_default()
                .push(statement);
        }
        statements
    }
}

pub(crate) fn status(bic: &str, xml: &str) -> Status {
    let group = need(xml, "OrgnlGrpInfAndSts");
    let own_reason = first(group, "StsRsnInf").and_then(|reason| first(reason, "Cd"));
    let text = |found: Option<&str>| found.unwrap_or_default().to_owned();
    Status {
        bic: bic.to_owned(),
        message_id: text(first(group, "OrgnlMsgId")),
        group: text(first(group, "GrpSts")),
        group_code: text(own_reason),
        payments: all(xml, "TxInfAndSts")
            .iter()
            .map(|payment| PaymentStatus {
                transaction: text(first(payment.inner, "OrgnlTxId")),
                status: text(first(payment.inner, "TxSts")),
                code: text(first(payment.inner, "Cd")),
            })
            .collect(),
        counts: all(group, "NbOfTxsPerSts")
            .iter()
            .map(|of| {
                (
                    text(first(of.inner, "DtldSts")),
                    need(of.inner, "DtldNbOfTxs").parse().expect("a count"),
                )
            })
            .collect(),
    }
}

/// The amount of an entry or balance with its sign.
fn signed(inner: &str) -> i128 {
    let value = amount(need(inner, "Amt"));
    if need(inner, "CdtDbtInd") == "DBIT" {
        -value
    } else {
        value
    }
}

pub(crate) fn add(totals: &mut Totals, currency: &str, count: u64, sum: i128) {
    let total = totals.entry(currency.to_owned()).or_default();
    total.0 += count;
    total.1 += sum;
}
