//! Taking messages in: order of checks, duplicates, numbering, the business day.

use crate::script::{check, check_on};

#[test]
fn single_faults_are_refused_singly() {
    check(
        "bank A 100
         bank B 0
         account A USD 10
         bank C 0
         day
         A sends m: Z 1, B 2, A 3, B 0, B 5 USD, B 5 XAU, B 5 ZZZ, - 8, B 9 dated yesterday, B 10 dated tomorrow, B 11 dated never -> accepted 1, refused RC04 at 1, AG03 at 3, AM01 at 4, AC03 at 5, AM03 at 6, AM11 at 7, RC04 at 8, DT01 at 9, DT04 at 10, DT01 at 11
         status m.2 -> netting
         status m.1 -> refused RC04
         B sends n: A 5 USD -> accepted 0, refused AC02 at 1
         cycle -> EUR settled 1 for 2",
    );
}

#[test]
fn two_faults_give_the_first_in_order() {
    check(
        "bank A 100
         bank B 0
         day
         A sends m: Z 0 dated yesterday, B 5 ZZZ dated never, B 1 fault DecimalsExceeded dated tomorrow -> accepted 0, refused AM01 at 1, AM11 at 2, CH20 at 3
         A sends d: B 1, B 0 key d.1 -> accepted 1, refused RF01 at 2
         A sends f fault CountMismatch: B 1 -> refused AM18
         A sends g fault Syntax: -> refused FF01
         status m.1 -> refused AM01",
    );
}

#[test]
fn a_package_with_one_fault_is_refused_whole_where_so_agreed() {
    check(
        "bank A 100 whole
         bank B 0
         day
         A sends m1: B 1, B 2 -> accepted 2
         A sends m2: B 1, B 0 -> refused AM01
         A sends m3: B 1, again m1.1 -> refused AM05
         A sends m4: B 1, B 2 key m4.1 -> refused RF01
         A sends m5: B 1, B 2 -> accepted 2
         queue A -> m1.1 m1.2 m5.1 m5.2
         again m2 -> same answer
         output A -> funded 100; m1 accepted 2 of 2; m2 refused AM01; m3 refused AM05; m4 refused RF01; m5 accepted 2 of 2",
    );
}

#[test]
fn payment_keys_are_used_once_a_day() {
    check(
        "bank A 100
         bank B 0
         bank C 50
         day
         A sends m1: B 1, B 2 -> accepted 2
         A sends m2: again m1.1, B 3 -> accepted 1, refused AM05 at 1
         A sends m3: B 1 key m1.1 -> accepted 0, refused DU03 at 1
         A sends m4: B 5, B 5 key m4.1, B 6 -> accepted 2, refused RF01 at 2
         A sends m5: B 7 content m1.2 -> accepted 1            # the same content under a new key is accepted
         C sends k: A 5 key m1.1 -> accepted 1                 # another sender's keys are its own
         A sends m6: B 0 -> accepted 0, refused AM01 at 1
         A sends m7: B 1 key m6 -> accepted 1                  # what was refused may come again, corrected
         A pays u urgent: again m1.2 -> accepted 0, refused AM05 at 1
         cycle -> EUR settled 8 for 30
         balances -> A 80, B 25, C 45
         close
         day
         A sends m8: B 1 key m1.1 -> accepted 1                # keys count for one day
         cycle -> EUR settled 1 for 1",
    );
}

#[test]
fn a_message_identifier_is_used_once_a_day() {
    check(
        "bank A 100
         bank B 0
         day
         A sends m: B 1 -> accepted 1
         A sends m: B 2 -> refused DU01
         again m -> same answer
         again m' -> same answer
         queue A -> m
         B sends m: A 1 -> accepted 1
         cycle -> EUR settled 2 for 2
         output A -> funded 100; m accepted 1 of 1; m' refused DU01; m netted 1, dropped 0; net result; credits 1 for 1
         close
         again m -> same answer                              # a replay of an older day changes nothing
         day
         again m -> same answer
         A sends m: B 2 -> accepted 1",
    );
}

/// Bug case 5: a duplicate in each state gets the same stored answer, and the receiver gets the money once.
#[test]
fn a_repeated_message_gets_the_same_answer_in_every_state() {
    check(
        "bank A 10
         bank B 0
         day
         A sends n1: B 3 -> accepted 1
         again n1 -> same answer                              # received
         pause
         open cycle
         again n1 -> same answer
         until reserving -> reserving 1
         again n1 -> same answer                              # in a cycle
         until posting -> posting
         again n1 -> same answer
         pump
         resume
         again n1 -> same answer                              # settled
         A sends n2: B 100 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 1 for 100
         again n2 -> same answer                              # dropped
         A cancels c2: n2 -> cancelled
         again n2 -> same answer                              # cancelled
         again c2 -> same answer
         A pays p1 urgent: B 2 -> settled
         again p1 -> same answer                              # settled
         A pays p2 urgent: B 90 -> queued AM04
         again p2 -> same answer                              # queued
         A cancels c: p2 -> cancelled
         again p2 -> same answer                              # cancelled
         again c -> same answer
         A pays p3 urgent or-refuse: B 90 -> refused AM04
         again p3 -> same answer                              # refused
         A pays p4 urgent: Z 90 -> accepted 0, refused RC04 at 1
         again p4 -> same answer                              # refused when taken in
         A pays p5 urgent: B 90 -> queued AM04
         A pays p6 urgent: B 1 -> queued ED05
         again p6 -> same answer
         A pays w: B 1, B 1 -> accepted 2
         fund A 85
         again p5 -> same answer                              # queued, then settled
         B pays b: A 3 -> settled
         again w -> same answer
         B returns r: A 2 of p1 -> accepted 1
         again r -> same answer
         balances -> A 2, B 93
         close
         again p5 -> same answer                              # the day is closed
         again n1 -> same answer
         balances -> A 2, B 93",
    );
}

#[test]
fn numbered_messages_are_taken_in_order() {
    check(
        "bank A 100 numbered
         bank B 0
         day
         A sends m1 no 1: B 1 -> accepted 1
         A sends m3 no 3: B 3 -> held, missing 2..2
         again m3 -> held, missing 2..2
         A sends m6 no 6: B 6 -> held, missing 2..2
         A sends x no 6: B 7 -> refused DU01
         gaps A -> 2..2, 4..5
         A sends u urgent: B 1 -> refused CH21                   # without a number
         queue A -> m1
         A sends m2 no 2: B 2 -> accepted 1
         queue A -> m1 m2 m3
         gaps A -> 4..5
         A sends late no 2: B 5 -> refused DU01
         again m1 -> same answer
         skip A 4 -> refused SequenceNotAhead
         skip A 7 -> refused SequenceNotAhead                    # never over a message that waits
         skip A 6
         queue A -> m1 m2 m3 m6
         gaps A -> nothing
         A sends m4 no 4: B 4 -> refused DU01                    # skipped
         A sends m7 no 7: B 7 -> accepted 1
         skip B 5 -> refused SequenceNotAhead                    # B does not number
         skip Z 5 -> refused ParticipantUnknown
         output A -> funded 100; m1 accepted 1 of 1; missing 2..2; missing 2..2; x refused DU01; u refused CH21; m2 accepted 1 of 1; message 4 accepted 1 of 1; late refused DU01; message 6 accepted 1 of 1; m4 refused DU01; m7 accepted 1 of 1",
    );
}

#[test]
fn a_hole_is_reported_again_until_it_is_closed() {
    check(
        "bank A 100 numbered
         bank B 0
         day
         A sends m2 no 2: B 1 -> held, missing 1..1
         output A -> funded 100; missing 1..1
         at 999
         tick
         output A -> nothing
         at 1000
         tick
         output A -> missing 1..1
         at 2000
         tick
         output A -> missing 1..1
         A sends m1 no 1: B 1 -> accepted 1
         at 5000
         tick
         output A -> m1 accepted 1 of 1; message 1 accepted 1 of 1",
    );
}

#[test]
fn what_waits_for_a_number_at_the_days_end_is_refused_and_numbers_begin_again() {
    check(
        "bank A 100 numbered
         bank B 0
         day
         A sends m1 no 1: B 1 -> accepted 1
         A sends m3 no 3: B 1 -> held, missing 2..2
         close
         output A -> funded 100; m1 accepted 1 of 1; missing 2..2; message 1 refused TM01; m1 ended; statement 1 EUR: 0 - 0 + 100 = 100
         day
         A sends n1 no 1: B 1 -> accepted 1
         at 5000
         tick
         output A -> n1 accepted 1 of 1
         skip A 9
         A sends n9 no 9: B 1 -> accepted 1",
    );
}

#[test]
fn nothing_is_taken_while_no_day_is_open() {
    check(
        "bank A 100
         bank B 0
         A sends m: B 1 -> not taken TM01
         Z sends m: B 1 -> not taken AG01
         cut-off pacs.008 -> refused DayNotOpen
         close -> refused DayNotOpen
         day
         day -> refused DayOpen
         close
         close -> refused DayNotOpen
         A sends m: B 1 -> not taken TM01
         A pays p: B 1 -> not taken TM01
         fund A 5
         output A -> funded 100; statement 1 EUR: 0 - 0 + 100 = 100; funded 5
         day
         close
         output A -> statement 2 EUR: 100 - 0 + 5 = 105",
    );
}

#[test]
fn a_cut_off_refuses_its_kind_only() {
    check(
        "bank A 100
         bank B 0
         day
         A pays p urgent: B 5 -> settled
         A pays q: B 500 -> queued AM04
         cut-off pacs.008
         A sends m: B 1 -> accepted 0, refused TM01 at 1
         A pays u urgent: B 1 -> accepted 0, refused TM01 at 1
         B returns r: A 5 of p -> accepted 1
         status r -> settled
         cut-off pacs.004
         B returns r2: A 5 of p -> accepted 0, refused TM01 at 1
         A cancels c: q -> cancelled
         A pays v: B 500 -> accepted 0, refused TM01 at 1
         cut-off camt.056
         A cancels c2: p -> refused TM01
         close
         day
         A sends n: B 1 -> accepted 1
         A cancels c3: n -> cancelled",
    );
}

#[test]
fn the_day_closes_with_everything_waiting() {
    check(
        "bank A 10
         bank B 0
         bank C 0
         day
         A sends m: B 100, B 1 -> accepted 2
         A cancels c: m.2 -> cancelled
         cycle -> EUR settled 0 for 0, dropped 1 for 100
         A sends n: B 1 -> accepted 1
         A sends o: B 1 -> accepted 1
         A cancels d: o -> cancelled
         A pays p: B 50 -> queued AM04
         A pays q: B 50 from 900 -> queued DT05
         A pays s: B 50 reject 5000 -> queued ED05
         close
         status m.1 -> ended AM04                  # in a cycle, and short of funds
         status m.2 -> cancelled
         status n -> ended ED05                    # after the last cut-off
         status p -> ended AM04
         status q -> ended ED05
         queue A -> nothing
         output A -> funded 10; m accepted 2 of 2; c cancelled; m netted 0, dropped 1; net result; n accepted 1 of 1; o accepted 1 of 1; d cancelled; p queued AM04; q queued DT05; s queued ED05; p refused AM04; q refused ED05; s refused AM04; m ended; n ended; statement 1 EUR: 0 - 0 + 10 = 10",
    );
}

#[test]
fn statements_chain_over_three_days() {
    check(
        "bank A 10
         account A USD 4
         bank B 0
         account B USD 0
         day
         A pays p: B 3 -> settled
         close
         output B -> credit 3 from A; statement 1 EUR: 0 - 0 + 3 = 3; statement 1 USD: 0 - 0 + 0 = 0
         day
         B pays q: A 1 -> settled
         A sends m: B 4, B 2 USD -> accepted 2
         cycle -> EUR settled 1 for 4; USD settled 1 for 2
         close
         fund B 1
         day
         close
         output A -> funded 10; funded 4; p settled; statement 1 EUR: 0 - 3 + 10 = 7; statement 1 USD: 0 - 0 + 4 = 4; credit 1 from B; m accepted 2 of 2; m netted 2, dropped 0; net result; statement 2 EUR: 7 - 4 + 1 = 4; statement 2 USD: 4 - 2 + 0 = 2; statement 3 EUR: 4 - 0 + 0 = 4; statement 3 USD: 2 - 0 + 0 = 2
         output B -> q settled; net result; credits 2 for 6; statement 2 EUR: 3 - 1 + 4 = 6; statement 2 USD: 0 - 0 + 2 = 2; funded 1; statement 3 EUR: 6 - 0 + 1 = 7; statement 3 USD: 2 - 0 + 0 = 2",
    );
}

#[test]
fn output_is_acknowledged_up_to_what_is_there() {
    check_on(
        &[1, 3],
        "bank A 10
         bank B 0
         acknowledged A -> 0
         ack A 99
         acknowledged A -> 1
         ack A 0
         acknowledged A -> 1
         ack Z 1 -> refused ParticipantUnknown
         day
         A pays p: B 1 -> settled
         output A -> funded 10; p settled",
    );
}

#[test]
fn what_any_cycle_of_the_day_dropped_lacked_funds() {
    check(
        "bank A 10
         bank B 0
         day
         A sends m: B 100 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 1 for 100
         A sends n: B 1 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 2 for 101
         A sends o: B 1 -> accepted 1
         close
         status m -> ended AM04
         status n -> ended AM04
         status o -> ended ED05",
    );
}
