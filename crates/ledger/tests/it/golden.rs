//! The golden cases of domain 5: what FIFO netting settles, and where everybody stands afterwards.

use crate::script::check;

/// G1: a ring without any money settles as a whole.
#[test]
fn g1_ring() {
    check(
        "bank A 0
         bank B 0
         bank C 0
         day
         A sends a: B 10 -> accepted 1
         B sends b: C 10 -> accepted 1
         C sends c: A 10 -> accepted 1
         cycle -> EUR settled 3 for 30
         balances -> A 0, B 0, C 0
         output A -> a accepted 1 of 1; a netted 1, dropped 0; net result; credits 1 for 10",
    );
}

/// G2: strict order costs value; nothing settles though 18 could in free order.
#[test]
fn g2_order_hurts() {
    check(
        "bank A 2
         bank B 0
         day
         A sends a1: B 5 -> accepted 1
         A sends a2: B 10 -> accepted 1
         B sends b: A 8 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 3 for 23
         balances -> A 2, B 0
         queue A -> a1 a2
         queue B -> b",
    );
}

/// G3: the same payments in the other order.
#[test]
fn g3_same_in_other_order() {
    check(
        "bank A 2
         bank B 0
         day
         A sends a1: B 10 -> accepted 1
         A sends a2: B 5 -> accepted 1
         B sends b: A 8 -> accepted 1
         cycle -> EUR settled 2 for 18, dropped 1 for 5
         balances -> A 0, B 2
         queue A -> a2
         status a1 -> settled
         status a2 -> netting",
    );
}

/// G4: four banks, the first payment of each settles.
#[test]
fn g4_four_banks() {
    check(
        "bank A 5
         bank B 3
         bank C 2
         bank D 10
         day
         A sends a: B 30, C 20 -> accepted 2
         B sends b: C 25, A 9 -> accepted 2
         C sends c: D 20, A 10 -> accepted 2
         D sends d: A 28, B 15 -> accepted 2
         cycle -> EUR settled 4 for 103, dropped 4 for 54
         balances -> A 3, B 8, C 7, D 2
         queue A -> a.2
         queue D -> d.2",
    );
}

/// G4 with each bank's payments in packages of their own, and then as packages that are dropped whole.
#[test]
fn g4_packages_as_units() {
    check(
        "bank A 5 package
         bank B 3 package
         bank C 2 package
         bank D 10 package
         day
         A sends a: B 30, C 20 -> accepted 2
         B sends b: C 25, A 9 -> accepted 2
         C sends c: D 20, A 10 -> accepted 2
         D sends d: A 28, B 15 -> accepted 2
         cycle -> EUR settled 0 for 0, dropped 8 for 157
         balances -> A 5, B 3, C 2, D 10
         fund D 13
         cycle -> EUR settled 8 for 157
         balances -> A 2, B 14, C 17, D 0",
    );
}

/// G7: a true deadlock stays one.
#[test]
fn g7_true_deadlock() {
    check(
        "bank A 2
         bank B 0
         day
         A sends a: B 10 -> accepted 1
         B sends b: A 7 -> accepted 1
         cycle -> EUR settled 0 for 0, dropped 2 for 17
         balances -> A 2, B 0
         fund A 1
         cycle -> EUR settled 2 for 17
         balances -> A 0, B 3",
    );
}

/// G8: an urgent payment between cut and reservation takes the money that netting counted on.
#[test]
fn g8_urgent_before_the_reservation() {
    check(
        "bank A 2
         bank B 0
         bank C 0
         day
         A sends a1: B 10 -> accepted 1
         A sends a2: B 5 -> accepted 1
         B sends b: A 8 -> accepted 1
         pause
         open cycle
         until reserving -> reserving 1
         A pays u urgent: C 2 -> settled
         until nothing -> nothing
         resume
         last cycle -> EUR settled 0 for 0, dropped 3 for 23
         balances -> A 0, B 0, C 2",
    );
}

/// Once reserved, netting's money is not for urgent payments: they wait for it, and settle with what netting leaves.
#[test]
fn g8_urgent_after_the_reservation() {
    check(
        "bank A 2
         bank B 0
         bank C 0
         day
         A sends a1: B 10 -> accepted 1
         A sends a2: B 5 -> accepted 1
         B sends b: A 8 -> accepted 1
         pause
         open cycle
         until posting -> posting
         A pays u urgent: C 2 -> queued AM04
         pump
         resume
         last cycle -> EUR settled 2 for 18, dropped 1 for 5
         balances -> A 0, B 2, C 0
         queue A -> u a2
         fund A 3
         balances -> A 1, B 2, C 2",
    );
}
