//! Netting cycles: the set, the steps, what settles and what waits, whatever happens between two steps.

use crate::script::{check, check_on};

#[test]
fn an_empty_cycle_and_one_that_nets_to_zero_both_end() {
    // Bug case 9.
    check(
        "bank A 0
         bank B 0
         bank C 3
         day
         cycle -> nothing
         running -> nothing
         A sends a: B 10 -> accepted 1
         B sends b: A 10 -> accepted 1
         cycle -> EUR settled 2 for 20
         balances -> A 0, B 0, C 3
         output C -> funded 3
         C sends c: A 3 -> accepted 1
         cycle -> EUR settled 1 for 3
         cycle -> nothing",
    );
}

#[test]
fn the_cut_fixes_the_set() {
    check(
        "bank A 10
         bank B 0
         day
         A sends m1: B 1 -> accepted 1
         pause
         open cycle
         open cycle -> refused CycleRunning
         until reserving -> reserving 1
         A sends m2: B 2 -> accepted 1
         close -> refused CycleRunning
         account A USD -> refused CycleRunning
         pump
         resume
         last cycle -> EUR settled 1 for 1
         status m2 -> netting
         cycle -> EUR settled 1 for 2
         balances -> A 7, B 3",
    );
}

#[test]
fn dropped_payments_keep_their_order_and_come_first_next_time() {
    check(
        "bank A 5
         bank B 0
         day
         A sends m1: B 4, B 3, B 2 -> accepted 3
         cycle -> EUR settled 1 for 4, dropped 2 for 5
         queue A -> m1.2 m1.3
         A sends m2: B 1 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 3 for 6    # m2 alone would fit, and may not overtake
         queue A -> m1.2 m1.3 m2
         fund A 4
         cycle -> EUR settled 2 for 5, dropped 1 for 1
         output A -> funded 5; m1 accepted 3 of 3; m1 netted 1, dropped 2; net result; m2 accepted 1 of 1; m1 netted 0, dropped 2; m2 netted 0, dropped 1; net result; funded 4; m1 netted 2, dropped 0; m2 netted 0, dropped 1; net result
         balances -> A 0, B 9",
    );
}

#[test]
fn a_failing_payer_does_not_lose_what_it_receives() {
    // Rule R16: no punishment.
    check(
        "bank A 0
         bank B 5
         bank C 0
         day
         A sends a: C 100 -> accepted 1
         B sends b: A 5 -> accepted 1
         cycle -> EUR settled 1 for 5, dropped 1 for 100
         balances -> A 5, B 0, C 0",
    );
}

#[test]
fn packages_are_dropped_whole() {
    check(
        "bank A 9 package
         bank B 0
         day
         A sends m1: B 5 -> accepted 1
         A sends m2: B 1, B 3, B 1 -> accepted 3
         A sends m3: B 1 -> accepted 1
         cycle -> EUR settled 1 for 5, dropped 4 for 6
         queue A -> m2.1 m2.2 m2.3 m3
         A cancels c: m2.2 -> cancelled
         cycle -> EUR settled 3 for 3
         balances -> A 1, B 8",
    );
}

#[test]
fn a_package_in_two_currencies_is_one_unit_in_each() {
    check(
        "bank A 10 package
         account A USD 0
         bank B 0
         account B USD 0
         day
         A sends m: B 1, B 2 USD, B 3, B 4 USD -> accepted 4
         cycle -> EUR settled 2 for 4; USD settled 0 for 0, dropped 2 for 6
         queue A -> m.2 m.4
         fund A 5 USD
         cycle -> USD settled 0 for 0, dropped 2 for 6
         fund A 1 USD
         cycle -> USD settled 2 for 6
         output A -> funded 10; m accepted 4 of 4; m netted 2, dropped 2; net result; funded 5; m netted 0, dropped 2; net result; funded 1; m netted 2, dropped 0; net result",
    );
}

#[test]
fn credit_lines_carry_net_debits() {
    check(
        "bank A 0 line 10
         bank B 0 line 3
         day
         A sends a: B 20 -> accepted 1
         B sends b: A 9 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 2 for 29
         B pays p urgent: A 1 -> settled
         cycle -> EUR settled 2 for 29
         balances -> A -10, B 10",
    );
}

#[test]
fn currencies_with_0_2_and_3_decimals_net_apart() {
    check(
        "bank A 0
         bank B 0
         account A JPY 0
         account B JPY 0
         account A KWD 1
         account B KWD 0
         day
         A sends a: B 10, B 10 JPY, B 1 KWD -> accepted 3
         B sends b: A 10, A 9 JPY -> accepted 2
         cycle -> EUR settled 2 for 20; JPY settled 0 for 0, dropped 2 for 19; KWD settled 1 for 1
         balance A KWD -> 0
         balance B KWD -> 1
         balance A JPY -> 0
         queue A -> a.2
         fund A 1 JPY
         cycle -> JPY settled 2 for 19",
    );
}

#[test]
fn urgent_payments_settle_between_every_two_steps() {
    check(
        "bank A 20
         bank B 20
         bank C 20
         bank D 20
         day
         A sends a: B 15 -> accepted 1
         C sends c: D 5 -> accepted 1
         pause
         open cycle
         B pays u1 urgent: A 1 -> settled
         until reserving -> reserving 1
         B pays u2 urgent: A 1 -> settled
         A pays u3 urgent: B 6 -> settled
         until posting -> posting
         A pays u4 urgent or-refuse: C 2 -> refused AM04
         D pays u5 urgent: C 20 -> settled
         pump
         resume
         last cycle -> EUR settled 2 for 20
         balances -> A 1, B 39, C 35, D 5",
    );
}

#[test]
fn money_that_comes_after_the_reservation_is_free_for_urgent_payments() {
    check(
        "bank A 5
         bank B 9
         bank C 0
         day
         A sends a: B 5 -> accepted 1
         pause
         open cycle
         until posting -> posting
         reserved A -> 5
         B pays b urgent: A 4 -> settled
         pump
         balances -> A 4, B 10, C 0
         A pays p urgent: C 4 -> settled
         resume
         reserved A -> 0
         balances -> A 0, B 10, C 4",
    );
}

/// Abandoned at each step and started again: as if never started.
#[test]
fn a_cycle_is_given_up_at_each_step_and_started_again() {
    let start = "bank A 5
         bank B 3
         bank C 2
         bank D 10
         day
         A sends a: B 30, C 20 -> accepted 2
         B sends b: C 25, A 9 -> accepted 2
         C sends c: D 20, A 10 -> accepted 2
         D sends d: A 28, B 15 -> accepted 2
         output A -> funded 5; a accepted 2 of 2
         pause
         open cycle
        ";
    let end = "pump
         resume
         reserved A -> 0
         reserved D -> 0
         output A -> nothing
         running -> nothing
         last cycle -> abandoned
         cycle -> EUR settled 4 for 103, dropped 4 for 54
         balances -> A 3, B 8, C 7, D 2
         output A -> a netted 1, dropped 1; net result; credits 1 for 28";
    for steps in [
        "abandon",
        "until reserving -> reserving 1\nabandon",
        "until reserving -> reserving 1\nabandon\nabandon -> refused NoCycle",
        "until round-2 -> reserving 2\nabandon",
        "until reserving -> reserving 1\nabandon\nopen cycle\nabandon\nopen cycle\nabandon",
    ] {
        check(&format!("{start}{steps}\n{end}"));
    }
}

#[test]
fn a_decided_cycle_cannot_be_given_up() {
    check(
        "bank A 5
         bank B 0
         day
         abandon -> refused NoCycle
         A sends a: B 5 -> accepted 1
         pause
         open cycle
         until posting -> posting
         abandon -> refused NoCycle
         pump
         resume
         last cycle -> EUR settled 1 for 5",
    );
}

#[test]
fn money_set_aside_by_a_cycle_given_up_releases_what_waits_for_it() {
    check(
        "bank A 5
         bank B 0
         bank C 0
         bank D 0
         day
         A sends a1: B 5, B 1 -> accepted 2
         pause
         open cycle
         until round-2 -> reserving 2
         reserved A -> 5
         A pays p: C 4 -> queued AM04
         abandon
         pump
         resume
         balances -> A 1, B 0, C 4, D 0",
    );
}

#[test]
fn a_net_receiver_pays_what_waits_with_what_it_got() {
    check(
        "bank A 5
         bank B 0
         bank C 0
         day
         B pays p: C 5 -> queued AM04
         A sends a: B 5 -> accepted 1
         cycle -> EUR settled 1 for 5
         balances -> A 0, B 0, C 5
         output B -> p queued AM04; net result; p settled; credits 1 for 5",
    );
}

#[test]
fn receipts_of_a_large_cycle_take_several_pages() {
    check_on(
        &[1, 3],
        "bank A 100
         bank B 0
         day
         A sends m: B 1, B 2, B 3, B 4, B 5, B 6, B 7 -> accepted 7
         cycle -> EUR settled 7 for 28
         output B -> net result; credits 7 for 28       # three pages of at most three credits
         A pays p: B 1 -> settled
         output B -> credit 1 from A",
    );
}

#[test]
fn cycles_need_an_open_day() {
    check(
        "bank A 5
         open cycle -> refused DayNotOpen
         day
         close
         open cycle -> refused DayNotOpen",
    );
}

#[test]
fn a_day_closes_behind_a_cycle_that_was_given_up() {
    check(
        "bank A 5
         bank B 0
         day
         A sends a: B 50 -> accepted 1
         pause
         open cycle
         until reserving -> reserving 1
         abandon
         close
         pump
         resume
         reserved A -> 0
         status a -> ended ED05
         output A -> funded 5; a accepted 1 of 1; a ended; statement 1 EUR: 0 - 0 + 5 = 5
         day
         cycle -> nothing",
    );
}
