//! camt.054 and pacs.029: what reached an account, and a cycle's net result.

use clearspan_iso20022::read::heap::transaction_ids;
use clearspan_iso20022::write::{
    Account, BankCode, Direction, Entry, EntryDetail, NetMovement, NettingResult, Notification,
    Page, Totals, netting_result, notification,
};
use clearspan_ledger::day::MessageRecord;
use clearspan_ledger::entry::CreditAdvice;
use clearspan_ledger::message::MessageKind;
use clearspan_ledger::query::{CyclePayment, PaymentView};
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{
    AmountMinor, Currency, CycleNumber, Ledger, PaymentId, PaymentNo, ShardId, Text,
};

use super::forward::{Forms, Forwards};
use super::status::{Names, body, check, finality};
use super::{DocumentError, Documents, Found, Sheaf, View, Wanted, account_id};

/// A payment of another participant, looked up in its sender's shard.
pub(super) struct Credited<'a> {
    pub(super) view: PaymentView,
    pub(super) record: &'a MessageRecord,
}

impl<'a, V: View> Documents<'a, V> {
    pub(super) fn payment_of(
        &self,
        shard: ShardId,
        payment: PaymentNo,
    ) -> Result<Credited<'a>, DocumentError> {
        let missing = |what, number| DocumentError::Missing {
            what,
            shard,
            number,
        };
        let ledger: &'a Ledger = self.view.ledger(shard);
        let view = ledger
            .payment(payment)
            .ok_or_else(|| missing("payment", payment.get()))?;
        let record = ledger
            .message(view.message)
            .ok_or_else(|| missing("message", view.message.get()))?;
        Ok(Credited { view, record })
    }

    /// A gross payment reached the account: the notice, and the payment as its sender wrote it.
    pub(super) fn gross_credit(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        advice: &CreditAdvice,
        wanted: Wanted,
    ) -> Result<(), DocumentError> {
        let shard = advice.payment.shard;
        let Credited { view, record } = self.payment_of(shard, advice.payment.payment)?;
        let package = self.package(shard, advice.message)?;
        let names = Names::of(
            record.kind,
            body(&package, shard, advice.message, view.position)?,
        );
        let (sender, _) = self.participant(advice.sender)?;
        let number = found.item.number.to_string();
        let detail = EntryDetail {
            message_id: Some(record.message_id.as_str()),
            instruction_id: names.instruction(),
            end_to_end_id: names.end_to_end(),
            transaction_id: names.transaction(),
            id: view.id,
            finality: view.settled.map(|settled| finality(shard, settled.index)),
            amount: advice.amount,
            counterparty: sender,
        };
        let entry = Entry {
            reference: &number,
            amount: u128::from(advice.amount.minor()),
            direction: Direction::Credit,
            booked: found.item.time,
            value_date: view.date,
            cycle: None,
            finality: finality(found.home, found.item.index),
            code: received_code(record.kind),
            batch_count: None,
            details: Some(detail),
        };
        self.notify(sheaf, found, advice.currency, Page::ONLY, entry)?;
        if wanted == Wanted::All {
            let place = (shard, advice.message, view.position);
            let mut forms = Forms::default();
            let form = forms.place(&package, place, sender)?;
            let mut forwards = Forwards::new(view.date, advice.currency, found.bic);
            let bytes = body(&package, shard, advice.message, view.position)?;
            forwards.add(form, bytes, advice.amount);
            forwards.add_to(sheaf, &forms)?;
        }
        Ok(())
    }

    /// Central-bank money reached the account.
    pub(super) fn funded(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        reference: &Text,
        currency: Currency,
        amount: AmountMinor,
    ) -> Result<(), DocumentError> {
        let entry = Entry {
            reference: reference.as_str(),
            amount: u128::from(amount.minor()),
            direction: Direction::Credit,
            booked: found.item.time,
            value_date: found.item.time.date(),
            cycle: None,
            finality: finality(found.home, found.item.index),
            code: BankCode::FUNDING,
            batch_count: None,
            details: None,
        };
        self.notify(sheaf, found, currency, Page::ONLY, entry)
    }

    fn notify<'d>(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        currency: Currency,
        page: Page,
        entry: Entry<'_, impl IntoIterator<Item = EntryDetail<'d>>>,
    ) -> Result<(), DocumentError> {
        let mut totals = Totals::default();
        totals.add(entry.direction, entry.amount);
        let account = account_id(found.bic, currency);
        let notice = Notification {
            version: self.settings.cash_version,
            account: Account {
                id: &account,
                currency,
                owner: found.bic,
            },
            page,
            sequence: Some(found.item.number + u64::from(page.number) - 1),
            totals,
            query: None,
        };
        let name = format!("camt.054.{}", notice.version.suffix());
        sheaf.add(name, |out, head| notification(out, head, &notice, [entry]))
    }

    /// One page of the payments of a cycle that credited the participant, and these payments as their senders wrote
    /// them, one message for each sender and form of message.
    pub(super) fn net_credits(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        (cycle, from, currency): (CycleNumber, ShardId, Currency),
        number: u64,
        wanted: Wanted,
    ) -> Result<(), DocumentError> {
        let ItemBody::NetCredits { count, minor, .. } = found.item.body else {
            return Ok(());
        };
        let posted = self.cycle_record(from, cycle)?;
        let senders = self.view.ledger(from);
        let place = senders
            .directory()
            .currencies()
            .iter()
            .position(|&known| known == currency);
        let credits = self.cache.credits(senders, cycle, from);
        let all = credits
            .get()
            .zip(place)
            .map_or(&[][..], |(credits, place)| {
                credits.of(found.participant, place)
            });
        check("payments", found, u128::from(count), all.len() as u128)?;
        let page_len = found
            .ledger
            .genesis()
            .map_or(1, |genesis| genesis.page_len_payments.max(1)) as usize;
        let page = usize::try_from(number - found.item.number).unwrap_or(usize::MAX);
        let start = page.saturating_mul(page_len).min(all.len());
        let end = (start + page_len).min(all.len());
        let payments: Vec<CyclePayment> = senders.credited(cycle, &all[start..end]).collect();
        check(
            "payments of the page",
            found,
            (end - start) as u128,
            payments.len() as u128,
        )?;
        let sum: u128 = payments
            .iter()
            .map(|payment| u128::from(payment.amount.minor()))
            .sum();
        if start == 0 && end == all.len() {
            check("sum", found, minor, sum)?;
        }
        // What a payment without UETR is called stands in its bytes, which a forward needs as well.
        let unnamed = |payment: &CyclePayment| matches!(payment.id, PaymentId::Transaction(_));
        let sweep = match (credits.get(), place) {
            (Some(credits), Some(place))
                if wanted == Wanted::All || payments.iter().any(unnamed) =>
            {
                Some(self.cache.sweep(
                    (cycle, from),
                    self.view.shards(),
                    |sweep| sweep.list(found.participant, place).is_some(),
                    || self.sweep(cycle, from, found.participant, credits),
                )?)
            }
            _ => None,
        };
        let bodies = sweep
            .as_ref()
            .zip(place)
            .and_then(|(sweep, place)| sweep.list(found.participant, place));
        let body_of = |at: usize, payment: &CyclePayment| {
            bodies
                .and_then(|bodies| bodies.get(at))
                .ok_or(DocumentError::Body {
                    shard: from,
                    message: payment.message,
                    position: payment.position,
                })
        };
        let mut names: Vec<(PaymentNo, String)> = Vec::new();
        for (at, payment) in (start..)
            .zip(&payments)
            .filter(|(_, payment)| unnamed(payment))
        {
            let ids = Names::from_ids(transaction_ids(body_of(at, payment)?.1));
            if let Some(name) = ids.transaction() {
                names.push((payment.payment, name.to_owned()));
            }
        }
        let directory = found.ledger.directory();
        let details = payments.iter().map(|payment| EntryDetail {
            message_id: None,
            instruction_id: None,
            end_to_end_id: None,
            transaction_id: match payment.id {
                PaymentId::Uetr(_) => None,
                PaymentId::Transaction(_) => names
                    .binary_search_by_key(&payment.payment, |(payment, _)| *payment)
                    .ok()
                    .and_then(|at| names.get(at))
                    .map(|(_, name)| name.as_str()),
            },
            id: payment.id,
            finality: None,
            amount: payment.amount,
            counterparty: directory.bic(payment.sender),
        });
        let reference = format!("CYCLE-{cycle}-{from}-{}", page + 1);
        let entry = Entry {
            reference: &reference,
            amount: sum,
            direction: Direction::Credit,
            booked: posted.posted_time,
            value_date: posted.date,
            cycle: Some(cycle),
            finality: finality(from, posted.posted),
            code: BankCode::NETTING,
            batch_count: Some(payments.len() as u64),
            details,
        };
        let shown = Page {
            number: u16::try_from(page + 1).unwrap_or(u16::MAX),
            last: end == all.len(),
        };
        self.notify(sheaf, found, currency, shown, entry)?;
        if let (Wanted::All, Some(sweep)) = (wanted, &sweep) {
            let mut forwards = Forwards::new(posted.date, currency, found.bic);
            for (at, payment) in (start..).zip(&payments) {
                let (form, bytes) = body_of(at, payment)?;
                forwards.add(form, bytes, payment.amount);
            }
            forwards.add_to(sheaf, &sweep.forms)?;
        }
        Ok(())
    }

    /// What payments without UETR are called, ascending by payment.
    pub(crate) fn transaction_names(
        &self,
        shard: ShardId,
        payments: &[CyclePayment],
    ) -> Result<Vec<(PaymentNo, String)>, DocumentError> {
        let mut named = Vec::new();
        for payment in payments {
            if let PaymentId::Transaction(_) = payment.id {
                let package = self.package(shard, payment.message)?;
                let names = self.names(Some(&package), shard, payment.message, payment.position)?;
                if let Some(name) = names.transaction() {
                    named.push((payment.payment, name.to_owned()));
                }
            }
        }
        Ok(named)
    }

    /// The participant's net movements of a cycle.
    pub(super) fn net_result(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        cycle: CycleNumber,
    ) -> Result<(), DocumentError> {
        let record = self.cycle_record(found.home, cycle)?;
        let results: Vec<_> = record
            .results
            .iter()
            .filter(|result| result.participant == found.participant)
            .map(|result| {
                (
                    result.currency,
                    result.closing_minor - result.opening_minor,
                    account_id(found.bic, result.currency),
                )
            })
            .collect();
        if results.is_empty() {
            return Err(DocumentError::Missing {
                what: "result of cycle",
                shard: found.home,
                number: u64::from(cycle.get()),
            });
        }
        let movements: Vec<NetMovement<'_>> = results
            .iter()
            .map(|(currency, net, account)| NetMovement {
                currency: *currency,
                net: *net,
                account_id: account,
                finality: finality(found.home, record.posted),
            })
            .collect();
        let result = NettingResult {
            cycle,
            cut_off: record.cut_time,
            settled: record.posted_time,
            movements: &movements,
        };
        sheaf.add("pacs.029.001.02".to_owned(), |out, head| {
            netting_result(out, head, &result);
        })
    }
}

pub(super) const fn received_code(kind: MessageKind) -> BankCode {
    match kind {
        MessageKind::CustomerTransfer | MessageKind::Cancellation => BankCode::TransferReceived,
        MessageKind::BankTransfer | MessageKind::CoverTransfer => BankCode::BankTransferReceived,
        MessageKind::Return => BankCode::ReturnReceived,
    }
}

pub(super) const fn sent_code(kind: MessageKind) -> BankCode {
    match kind {
        MessageKind::CustomerTransfer | MessageKind::Cancellation => BankCode::TransferSent,
        MessageKind::BankTransfer | MessageKind::CoverTransfer => BankCode::BankTransferSent,
        MessageKind::Return => BankCode::ReturnSent,
    }
}
