//! Gross settlement: at once, or in strict order as funds allow; times, cancellation, returns and recalls.

use crate::script::{check, check_on};

#[test]
fn settles_at_once_or_waits_in_order() {
    check(
        "bank A 10
         bank B 0
         bank C 0
         day
         A pays p1 urgent: B 4 -> settled
         A pays p2: B 7 -> queued AM04
         A pays p3: B 1 -> queued ED05            # first in, first out: it may not overtake
         A pays p4 high: B 1 -> settled           # a more urgent class may
         A pays p5 high: B 9 -> queued AM04
         A pays p6 urgent: B 3 -> settled
         A pays p7 high: B 1 -> queued ED05
         queue A -> p5 p7 p2 p3
         incoming B -> p2 p3 p5 p7
         status p5 -> queued AM04
         status p2 -> queued ED05
         balances -> A 2, B 8, C 0
         fund A 6
         balances -> A 8, B 8, C 0                # 8 is short of 9, and what is less urgent waits behind it
         fund A 2
         queue A -> p2 p3
         balances -> A 0, B 18, C 0
         B pays back urgent: A 8 -> settled
         balances -> A 0, B 18, C 0
         queue A -> nothing
         output A -> funded 10; p1 settled; p2 queued AM04; p3 queued ED05; p4 settled; p5 queued AM04; p6 settled; p7 queued ED05; funded 6; funded 2; p5 settled; p7 settled; credit 8 from B; p2 settled; p3 settled",
    );
}

#[test]
fn a_credit_releases_a_chain() {
    check(
        "bank A 5
         bank B 0
         bank C 0
         bank D 0
         day
         D pays d: A 5 -> queued AM04
         C pays c: D 5 -> queued AM04
         B pays b: C 5 -> queued AM04
         A pays a: B 5 -> settled
         balances -> A 5, B 0, C 0, D 0
         status d -> settled",
    );
}

#[test]
fn gross_does_not_offset() {
    check(
        "bank A 0
         bank B 0
         day
         A pays a: B 10 -> queued AM04
         B pays b: A 10 -> queued AM04
         balances -> A 0, B 0
         fund A 10
         balances -> A 10, B 0
         status a -> settled
         status b -> settled",
    );
}

#[test]
fn settle_or_refuse() {
    check(
        "bank A 5
         bank B 0
         day
         A pays p1 urgent or-refuse: B 6 -> refused AM04
         A pays p2 urgent or-refuse: B 5 -> settled
         A pays p3 urgent: B 1 -> queued AM04
         A pays p4 urgent or-refuse: B 1 -> refused ED05
         A pays p5 high or-refuse: B 1 -> refused ED05
         queue A -> p3
         status p1 -> ended AM04
         balances -> A 0, B 5",
    );
}

#[test]
fn credit_line_is_the_floor() {
    check(
        "bank A 2 line 10
         bank B 0
         day
         A pays p1: B 13 -> queued AM04
         A pays p2 urgent: B 12 -> settled
         balances -> A -10, B 12
         A pays p3 urgent: B 1 -> queued AM04
         B pays b: A 12 -> settled
         balances -> A 1, B 1
         queue A -> p1
         status p3 -> settled",
    );
}

#[test]
fn a_gross_package_settles_payment_by_payment() {
    check(
        "bank A 10
         bank B 0
         day
         A pays g high: B 4, B 7, B 6 -> accepted 3
         balances -> A 6, B 4
         queue A -> g.2 g.3
         output A -> funded 10; g accepted 3 of 3; g.1 settled; g.2 queued AM04; g.3 queued ED05
         A pays h urgent: Z 1, B 0, B 3, B 1 dated tomorrow -> accepted 1, refused RC04 at 1, AM01 at 2, DT04 at 4
         output A -> h accepted 1 of 4; h.3 settled",
    );
}

#[test]
fn earliest_latest_and_reject_times() {
    check(
        "bank A 10
         bank B 0
         day
         A pays p1: B 4 from 50 -> queued DT05
         A pays p2: B 20 till 60 reject 80 -> queued AM04
         A pays p3: B 1 reject 70 -> queued ED05
         A pays p4: B 1 reject 0 -> refused TM01
         A pays p5: B 1 from 0 -> queued ED05
         status p1 -> queued DT05
         at 49
         tick
         queue A -> p2 p3 p5 p1
         at 50
         tick
         queue A -> p2 p3 p5                       # p1 came first: it settles ahead of those behind it
         balances -> A 6, B 4
         at 60
         tick
         output A -> funded 10; p1 queued DT05; p2 queued AM04; p3 queued ED05; p4 refused TM01; p5 queued ED05; p1 settled; p2 warned
         at 70
         tick
         status p3 -> ended AM04
         at 80
         tick
         status p2 -> ended AM04
         status p5 -> settled
         balances -> A 5, B 5
         output A -> p3 refused AM04; p2 refused AM04; p5 settled",
    );
}

#[test]
fn a_payment_takes_the_place_of_its_arrival_when_its_time_comes() {
    check(
        "bank A 5
         bank B 0
         day
         A pays p1 or-refuse: B 5 from 50 -> queued DT05
         A pays p2: B 6 -> queued AM04
         at 50
         tick
         status p1 -> settled                       # p2 came later, so p1 is not behind it
         status p2 -> queued AM04
         output A -> funded 5; p1 queued DT05; p2 queued AM04; p1 settled",
    );
}

#[test]
fn times_that_pass_without_a_tick_count_with_the_next_entry() {
    check(
        "bank A 0
         bank B 0
         day
         A pays p1: B 5 reject 100 -> queued AM04
         at 99
         fund A 4
         status p1 -> queued AM04
         at 100
         fund A 1
         status p1 -> ended AM04
         balances -> A 5, B 0",
    );
}

/// Bug case 20: cancelling, the end of its time and the money come with one log position's time, in all orders: the
/// order of the log decides, one of them wins, and no trace is left of the others.
#[test]
fn cancel_expiry_and_settlement_in_all_orders() {
    let start = "bank A 0
         bank B 0
         day
         A pays p: B 5 reject 100 -> queued AM04
         output A -> p queued AM04
        ";
    // (what happens, outcome of the cancellation, end status, output, balances)
    let cases = [
        // Before its time, the first of the two wins.
        (
            "at 99\nfund A 5\nA cancels c: p -> recalled",
            "settled",
            "funded 5; p settled; c recalled",
            "A 0, B 5",
        ),
        (
            "at 99\nA cancels c: p -> cancelled\nfund A 5",
            "cancelled",
            "p cancelled; c cancelled; funded 5",
            "A 5, B 0",
        ),
        // An entry at its time comes too late, whatever it wants.
        (
            "at 100\nfund A 5\nA cancels c: p -> refused RCPR",
            "ended AM04",
            "p refused AM04; funded 5; c refused RCPR",
            "A 5, B 0",
        ),
        (
            "at 100\nA cancels c: p -> refused RCPR\nfund A 5",
            "ended AM04",
            "p refused AM04; c refused RCPR; funded 5",
            "A 5, B 0",
        ),
        (
            "at 100\ntick\nfund A 5\nA cancels c: p -> refused RCPR",
            "ended AM04",
            "p refused AM04; funded 5; c refused RCPR",
            "A 5, B 0",
        ),
        (
            "at 99\nfund A 5\nat 100\ntick\nA cancels c: p -> recalled",
            "settled",
            "funded 5; p settled; c recalled",
            "A 0, B 5",
        ),
        (
            "at 99\nA cancels c: p -> cancelled\nat 100\ntick\nfund A 5",
            "cancelled",
            "p cancelled; c cancelled; funded 5",
            "A 5, B 0",
        ),
    ];
    for (acts, status, output, balances) in cases {
        check(&format!(
            "{start}
             {acts}
             at 200
             tick
             status p -> {status}
             output A -> {output}
             balances -> {balances}"
        ));
    }
}

#[test]
fn cancelling_the_head_lets_the_next_one_try() {
    check(
        "bank A 5
         bank B 0
         day
         A pays p1: B 6 -> queued AM04
         A pays p2: B 3 -> queued ED05
         A cancels c: p1, p2, p1, px -> cancelled, recalled, refused RCPR, refused NOOR
         output A -> funded 5; p1 queued AM04; p2 queued ED05; p1 cancelled; p2 settled; c cancelled, recalled, refused RCPR, refused NOOR
         output B -> credit 3 from A; recall from A
         balances -> A 2, B 3",
    );
}

#[test]
fn only_its_sender_cancels_a_payment() {
    check(
        "bank A 0
         bank B 0
         day
         A pays p: B 6 -> queued AM04
         B cancels c: p -> refused NOOR
         status p -> queued AM04",
    );
}

#[test]
fn a_payment_for_netting_is_cancelled_before_the_cut_only() {
    check(
        "bank A 10
         bank B 0
         day
         A sends m: B 1, B 2, B 3 -> accepted 3
         A cancels c1: m.2 -> cancelled
         pause
         open cycle
         pump
         A cancels c2: m.1, m.2, m.3 -> recalled, refused RCPR, recalled
         resume
         last cycle -> EUR settled 2 for 4
         A sends n: B 100 -> accepted 1
         pause
         open cycle
         until reserving -> reserving 1
         A cancels c3: n -> refused BIAS
         pump
         resume
         last cycle -> EUR settled 0 for 0, dropped 1 for 100
         A cancels c4: n -> cancelled                # dropped, so it waits again
         cycle -> nothing
         balances -> A 6, B 4",
    );
}

#[test]
fn returns_are_payments_back_up_to_the_original() {
    check(
        "bank A 10
         bank B 5
         bank C 0
         day
         A pays p urgent: B 10 -> settled
         B returns r1: A 4 of p -> accepted 1
         status r1 -> settled
         returned p -> 4
         balances -> A 4, B 11, C 0
         B returns r2: A 7 of p -> accepted 1
         status r2 -> ended AM09
         B returns r3: A 6 of p -> accepted 1
         status r3 -> settled
         returned p -> 10
         B returns r4: A 1 of p -> accepted 1
         status r4 -> ended RCPR
         B returns r5: A 1 of nothing -> accepted 1
         status r5 -> ended NOOR
         C returns r6: A 1 of p -> accepted 1         # not the one that was paid
         status r6 -> ended NOOR
         balances -> A 10, B 5, C 0
         output B -> funded 5; credit 10 from A; r1 accepted 1 of 1; r1 settled; r2 accepted 1 of 1; r2 refused AM09; r3 accepted 1 of 1; r3 settled; r4 accepted 1 of 1; r4 refused RCPR; r5 accepted 1 of 1; r5 refused NOOR",
    );
}

#[test]
fn a_return_in_another_currency_is_refused() {
    check(
        "bank A 10
         bank B 0
         account A USD 5
         account B USD 5
         day
         A pays p urgent: B 10 -> settled
         B returns r: A 4 USD of p -> accepted 1
         status r -> ended CURR
         returned p -> 0
         balance A USD -> 5",
    );
}

#[test]
fn a_return_of_a_netted_payment() {
    check(
        "bank A 10
         bank B 0
         day
         A sends m: B 3, B 4 -> accepted 2
         B returns r0: A 3 of m.1 -> accepted 1
         status r0 -> ended NOOR                       # not settled yet
         cycle -> EUR settled 2 for 7
         B returns r1: A 3 of m.1 -> accepted 1
         status r1 -> settled
         A cancels c: m.2 -> recalled
         output B -> r0 accepted 1 of 1; r0 refused NOOR; net result; credits 2 for 7; r1 accepted 1 of 1; r1 settled; recall from A
         balances -> A 6, B 4",
    );
}

#[test]
fn a_return_that_does_not_settle_gives_its_claim_back() {
    check(
        "bank A 10
         bank B 0
         bank C 0
         day
         A pays p urgent: B 10 -> settled
         B pays away urgent: C 8 -> settled
         B returns r1: A 9 of p -> accepted 1
         status r1 -> queued AM04
         returned p -> 9
         B returns r2: A 2 of p -> accepted 1
         status r2 -> ended AM09
         B cancels c: r1 -> cancelled
         returned p -> 0
         B returns r3: A 9 of p -> accepted 1
         returned p -> 9
         close
         status r3 -> ended AM04
         returned p -> 0
         day
         B returns r4: A 2 of p -> accepted 1            # an original of an earlier day
         status r4 -> settled
         returned p -> 2",
    );
}

#[test]
fn a_return_waits_for_its_verdict() {
    check_on(
        &[2, 4],
        "bank A 10
         bank B 0
         day
         A pays p urgent: B 10 -> settled
         pause
         B returns r: A 4 of p -> accepted 1
         status r -> claiming
         B cancels c: r -> refused BIAS
         pump
         resume
         status r -> settled",
    );
}

#[test]
fn currencies_do_not_fund_each_other() {
    check(
        "bank A 100
         bank B 0
         account A JPY 0
         account B JPY 7
         account A KWD 1
         account B KWD 0
         day
         A pays j: B 5 JPY -> queued AM04
         A pays k: B 1 KWD -> settled
         A pays e: B 100 -> settled
         balance A KWD -> 0
         A pays k2: B 1 KWD -> queued AM04
         balance B KWD -> 1
         balance A JPY -> 0
         fund A 5 JPY
         status j -> settled
         status k2 -> queued AM04
         account A ZZZ -> refused CurrencyUnknown
         account A EUR -> refused AccountExists",
    );
}
