//! pacs.029, the multilateral settlement request: the netting result of one participant.
//!
//! The published message carries at least two movement records for each request, since a settlement has two sides. So
//! each currency is one request with the participant's movement and the clearing house's against it, and each request
//! balances by itself.

use clearspan_ledger::{Bic, Currency, CycleNumber, Timestamp};

use super::cash::Direction;
use super::document::{Head, document};
use super::status::Finality;
use super::xml::{Xml, clock_text, push_number};

/// What one cycle did to one participant.
#[derive(Clone, Copy, Debug)]
pub struct NettingResult<'a> {
    /// The cycle; `SttlmCycl` is its number.
    pub cycle: CycleNumber,
    /// The cut-off: `FrTm`, a time of day in UTC.
    pub cut_off: Timestamp,
    /// When the positions became final: `TillTm`.
    pub settled: Timestamp,
    /// One movement for each currency; not empty, since the message cannot say "nothing".
    pub movements: &'a [NetMovement<'a>],
}

/// The participant's net movement in one currency.
#[derive(Clone, Copy, Debug)]
pub struct NetMovement<'a> {
    /// The currency.
    pub currency: Currency,
    /// Minor units; positive where the participant receives, negative where it pays, zero where it comes out even.
    pub net: i128,
    /// The participant's settlement account, 1 to 34 characters.
    pub account_id: &'a str,
    /// Where it became final: `Ref`, as `shard:index`.
    pub finality: Finality,
}

/// Appends a pacs.029.001.02 to the participant `head.to`.
///
/// # Panics
/// When there is no movement: the caller has nothing to tell then.
pub fn netting_result(out: &mut Vec<u8>, head: &Head<'_>, result: &NettingResult<'_>) {
    assert!(
        !result.movements.is_empty(),
        "a netting result of cycle {} without movement",
        result.cycle
    );
    document(out, head, "pacs.029.001.02", "MulSttlmReq", |xml| {
        xml.group("GrpHdr", |xml| {
            xml.id("MsgId", head.message_id);
            xml.time("CreDtTm", head.created);
            xml.number(
                "NbOfSttlmReqs",
                result.movements.len().try_into().unwrap_or(u64::MAX),
            );
            xml.raw("<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>");
        });
        for movement in result.movements {
            xml.group("SttlmReq", |xml| request(xml, head, result, movement));
        }
    });
}

fn request(
    xml: &mut Xml<'_>,
    head: &Head<'_>,
    result: &NettingResult<'_>,
    movement: &NetMovement<'_>,
) {
    identifier(xml, "InstrId", result.cycle, movement.currency, None);
    xml.group("SttlmTmReq", |xml| {
        for (tag, at) in [("TillTm", result.settled), ("FrTm", result.cut_off)] {
            xml.open(tag);
            xml.out.extend_from_slice(&clock_text(at));
            xml.close(tag);
        }
    });
    xml.number("SttlmCycl", u64::from(result.cycle.get()));
    xml.number("NbOfMvmntRcrds", 2);
    let own = Direction::of(movement.net);
    let other = match own {
        Direction::Credit => Direction::Debit,
        Direction::Debit => Direction::Credit,
    };
    for (number, party, direction, account) in [
        (1, head.to, own, Some(movement.account_id)),
        (2, head.from, other, None),
    ] {
        xml.group("MvmntRcrd", |xml| {
            identifier(xml, "Id", result.cycle, movement.currency, Some(party));
            xml.number("SeqNb", number);
            xml.group("Amt", |xml| {
                xml.amount(
                    "Amt",
                    movement.net.unsigned_abs(),
                    movement.currency,
                    movement.currency.exponent(),
                );
                xml.code("CdtDbt", direction.code());
            });
            xml.raw("<Ptcpt><Id><OrgId>");
            xml.code("AnyBIC", party.as_str());
            xml.raw("</OrgId></Id></Ptcpt>");
            if let Some(account) = account {
                xml.raw("<PtcptAcct><Id><Othr>");
                xml.id("Id", account);
                xml.raw("</Othr></Id>");
                xml.code("Ccy", movement.currency.as_str());
                xml.raw("</PtcptAcct>");
            }
            movement.finality.write(xml, "Ref");
        });
    }
}

/// `CYCLE-42-EUR`, or `CYCLE-42-EUR-ALFADEFFXXX` for one side: at most 32 characters.
fn identifier(
    xml: &mut Xml<'_>,
    tag: &str,
    cycle: CycleNumber,
    currency: Currency,
    party: Option<Bic>,
) {
    xml.open(tag);
    xml.raw("CYCLE-");
    push_number(xml.out, u64::from(cycle.get()));
    xml.raw("-");
    xml.raw(currency.as_str());
    if let Some(party) = party {
        xml.raw("-");
        xml.raw(party.as_str());
    }
    xml.close(tag);
}
