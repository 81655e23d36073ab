//! camt.052: an account as it stands now, with the entries since its last statement.

use clearspan_iso20022::write::{
    self, Account, Balance, BalanceKind, Page, Statement, intraday_report,
};
use clearspan_ledger::{BusinessDate, Currency, Ledger, ParticipantId};

use super::statement::{movements, totals};
use super::{DocumentError, Documents, Sheaf, View, account_id};

impl<V: View> Documents<'_, V> {
    /// Balances and entries at the replica's journal position, which is the report's time (rule R36). `false` when the
    /// participant has no account in the currency.
    pub(super) fn interim(
        &self,
        sheaf: &mut Sheaf<'_>,
        ledger: &Ledger,
        participant: ParticipantId,
        currency: Currency,
        query: &str,
    ) -> Result<bool, DocumentError> {
        let Some(state) = ledger.account(participant, currency) else {
            return Ok(false);
        };
        let (owner, home) = self.participant(participant)?;
        let (index, now) = ledger.position();
        let end = ledger
            .stream(participant)
            .map_or(1, |stream| stream.next_number());
        let first = ledger.day_first_number(participant).unwrap_or(1);
        let movements = movements(ledger, home, participant, currency, (first, end))?;
        let totals = totals(&movements);
        let date = ledger.dates().last().unwrap_or_else(|| now.date());
        self.check_interim(state, owner, (currency, date), &movements)?;
        let lines = self.lines(home, &movements)?;
        let account = account_id(owner, currency);
        let id = format!("{account}-{index}");
        let balance = |kind, minor, at| Balance {
            kind,
            minor,
            date,
            at,
        };
        let balances = [
            balance(BalanceKind::Opening, state.day_opening_minor(), None),
            balance(BalanceKind::Interim, state.balance_minor(), Some(now)),
            balance(
                BalanceKind::InterimAvailable,
                state.available_minor(),
                Some(now),
            ),
        ];
        let position = format!("As of journal position {home}:{index}.");
        let report = Statement {
            version: self.settings.cash_version,
            id: if id.len() <= 35 { &id } else { &account },
            // Reports within a day have no chain: the journal position tells which is the newer one.
            sequence: index.get(),
            chain: Some(&position),
            period: None,
            account: Account {
                id: &account,
                currency,
                owner,
            },
            page: Page::ONLY,
            balances: &balances,
            totals,
            query: Some(query),
        };
        let name = format!("camt.052.{}", report.version.suffix());
        sheaf.add(name, |out, head: &write::Head<'_>| {
            intraday_report(
                out,
                head,
                &report,
                lines.iter().map(|line| line.entry(home)),
            );
        })?;
        Ok(true)
    }

    fn check_interim(
        &self,
        state: &clearspan_ledger::account::Account,
        participant: clearspan_ledger::Bic,
        (currency, date): (Currency, BusinessDate),
        movements: &[super::statement::Movement],
    ) -> Result<(), DocumentError> {
        let moved: i128 = movements.iter().map(|movement| movement.minor).sum();
        let derived_minor = state.day_opening_minor() + moved;
        if derived_minor == state.balance_minor() {
            return Ok(());
        }
        Err(DocumentError::Unreconciled {
            what: "balance",
            participant,
            currency,
            date,
            stated_minor: state.balance_minor(),
            derived_minor,
        })
    }
}
