//! The part of a customer payment that no clearing system reads and every receiver wants unchanged: parties, accounts,
//! purpose, reporting, remittance, supplementary data. Shares of optional elements are in `docs/generate.md`.

use super::Version;
use super::ids;
use super::message::{agent, element, money};
use super::rng::Rng;
use super::text::{CATEGORIES, LOCALES, Locale, PURPOSES, REMITTANCES};

/// What the tail of a payment repeats from its head.
pub(crate) struct Context<'a> {
    pub(crate) version: Version,
    pub(crate) debtor_agent: &'a str,
    pub(crate) creditor_agent: &'a str,
    pub(crate) currency: &'a str,
    pub(crate) amount: &'a str,
    pub(crate) date: &'a str,
}

/// Everything from `UltmtDbtr` to `SplmtryData`.
pub(crate) fn tail(rng: &mut Rng, context: &Context<'_>) -> String {
    let mut out = String::with_capacity(1_400);
    if rng.percent(6) {
        party(&mut out, rng, context.version, "UltmtDbtr");
    }
    let debtor = party(&mut out, rng, context.version, "Dbtr");
    account(&mut out, rng, "DbtrAcct", debtor);
    agent(&mut out, "DbtrAgt", context.debtor_agent);
    agent(&mut out, "CdtrAgt", context.creditor_agent);
    let creditor = party(&mut out, rng, context.version, "Cdtr");
    account(&mut out, rng, "CdtrAcct", creditor);
    if rng.percent(3) {
        party(&mut out, rng, context.version, "UltmtCdtr");
    }
    if rng.percent(2) {
        out.push_str(
            "<InstrForCdtrAgt><Cd>PHOB</Cd><InstrInf>+49 30 5550 100</InstrInf></InstrForCdtrAgt>",
        );
    }
    if rng.percent(30) {
        out.push_str("<Purp>");
        element(&mut out, "Cd", rng.pick(PURPOSES));
        out.push_str("</Purp>");
    }
    if rng.percent(4) {
        regulatory(&mut out, rng, context, debtor);
    }
    match rng.below(100) {
        0..=34 => structured_remittance(&mut out, rng, context),
        35..=84 => {
            out.push_str("<RmtInf>");
            element(&mut out, "Ustrd", rng.pick(REMITTANCES));
            out.push_str("</RmtInf>");
        }
        _ => {}
    }
    if rng.percent(1) {
        supplementary(&mut out, rng);
    }
    out
}

/// `PmtTpInf` of one payment, in 15 % of them.
pub(crate) fn type_information(rng: &mut Rng) -> String {
    let mut out = String::new();
    if rng.percent(15) {
        out.push_str("<PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl><CtgyPurp>");
        element(&mut out, "Cd", rng.pick(CATEGORIES));
        out.push_str("</CtgyPurp></PmtTpInf>");
    }
    out
}

fn locale(rng: &mut Rng) -> &'static Locale {
    let total = LOCALES.iter().map(|locale| locale.weight).sum();
    let mut drawn = rng.below(total);
    for locale in LOCALES {
        if drawn < locale.weight {
            return locale;
        }
        drawn -= locale.weight;
    }
    unreachable!("the draw is below the sum of the weights")
}

fn party(out: &mut String, rng: &mut Rng, version: Version, name: &str) -> &'static Locale {
    let locale = locale(rng);
    let firm = rng.percent(45);
    out.push('<');
    out.push_str(name);
    out.push('>');
    if firm {
        element(out, "Nm", rng.pick(locale.firms));
    } else {
        let family = rng.pick(locale.family);
        let given = rng.pick(locale.given);
        let full = match locale.country {
            "CN" => format!("{family}{given}"),
            "JP" => format!("{family}　{given}"),
            _ => format!("{given} {family}"),
        };
        element(out, "Nm", &full);
    }
    match rng.below(100) {
        0..=69 => {
            out.push_str("<PstlAdr>");
            element(out, "StrtNm", rng.pick(locale.streets));
            element(out, "BldgNb", &(1 + rng.below(180)).to_string());
            element(out, "PstCd", &ids::digits(rng, 5));
            element(out, "TwnNm", rng.pick(locale.towns));
            element(out, "Ctry", locale.country);
            out.push_str("</PstlAdr>");
        }
        70..=84 => {
            out.push_str("<PstlAdr>");
            element(out, "Ctry", locale.country);
            element(
                out,
                "AdrLine",
                &format!("{} {}", rng.pick(locale.streets), 1 + rng.below(180)),
            );
            element(out, "AdrLine", rng.pick(locale.towns));
            out.push_str("</PstlAdr>");
        }
        _ => {}
    }
    // The LEI of a firm came with version 08.
    if firm && version.number() >= 8 && rng.percent(18) {
        out.push_str("<Id><OrgId>");
        element(out, "LEI", &ids::lei(rng));
        out.push_str("</OrgId></Id>");
    }
    out.push_str("</");
    out.push_str(name);
    out.push('>');
    locale
}

fn account(out: &mut String, rng: &mut Rng, name: &str, locale: &Locale) {
    out.push('<');
    out.push_str(name);
    out.push_str("><Id>");
    if locale.iban_digits > 0 {
        element(
            out,
            "IBAN",
            &ids::iban(rng, locale.country, locale.iban_digits),
        );
    } else {
        out.push_str("<Othr>");
        element(out, "Id", &ids::digits(rng, 16));
        out.push_str("</Othr>");
    }
    out.push_str("</Id></");
    out.push_str(name);
    out.push('>');
}

fn regulatory(out: &mut String, rng: &mut Rng, context: &Context<'_>, locale: &Locale) {
    out.push_str(
        "<RgltryRptg><DbtCdtRptgInd>CRED</DbtCdtRptgInd><Dtls><Tp>BALANCE OF PAYMENTS</Tp>",
    );
    element(out, "Ctry", locale.country);
    element(out, "Cd", &ids::digits(rng, 3));
    money(out, "Amt", Some(context.currency), context.amount);
    out.push_str("</Dtls></RgltryRptg>");
}

fn structured_remittance(out: &mut String, rng: &mut Rng, context: &Context<'_>) {
    let invoice = format!("INV-{}", ids::digits(rng, 8));
    out.push_str("<RmtInf><Strd><RfrdDocInf><Tp><CdOrPrtry><Cd>CINV</Cd></CdOrPrtry></Tp>");
    element(out, "Nb", &invoice);
    // Version 12 gave dates and amounts of a document types of their own.
    let typed = context.version.number() >= 12;
    if typed {
        out.push_str("<RltdDt><Tp><Cd>INDA</Cd></Tp>");
        element(out, "Dt", context.date);
        out.push_str("</RltdDt>");
    } else {
        element(out, "RltdDt", context.date);
    }
    out.push_str("</RfrdDocInf><RfrdDocAmt>");
    if typed {
        out.push_str("<RmtAmtAndTp><Tp><Cd>DUPA</Cd></Tp>");
        money(out, "Amt", Some(context.currency), context.amount);
        out.push_str("</RmtAmtAndTp>");
    } else {
        money(out, "DuePyblAmt", Some(context.currency), context.amount);
    }
    out.push_str("</RfrdDocAmt>");
    if rng.percent(60) {
        out.push_str("<CdtrRefInf><Tp><CdOrPrtry><Cd>SCOR</Cd></CdOrPrtry><Issr>ISO</Issr></Tp>");
        element(out, "Ref", &ids::creditor_reference(rng));
        out.push_str("</CdtrRefInf>");
    }
    if rng.percent(25) {
        element(out, "AddtlRmtInf", rng.pick(REMITTANCES));
    }
    out.push_str("</Strd></RmtInf>");
}

fn supplementary(out: &mut String, rng: &mut Rng) {
    out.push_str("<SplmtryData><PlcAndNm>/Document/CdtTrfTxInf</PlcAndNm><Envlp>");
    out.push_str("<x:trace xmlns:x=\"urn:example:trace\" x:hop=\"1\">");
    element(out, "x:ref", &ids::digits(rng, 12));
    out.push_str("</x:trace></Envlp></SplmtryData>");
}
