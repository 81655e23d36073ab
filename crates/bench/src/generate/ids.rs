//! Identifiers that carry their own check: UETR, IBAN, LEI, creditor reference.

use super::rng::Rng;

/// A lower-case UUID of version 4 (RFC 9562): the form of an end-to-end transaction reference.
pub(crate) fn uetr(rng: &mut Rng) -> String {
    let high = (rng.next_u64() & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (rng.next_u64() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// `len` decimal digits.
pub(crate) fn digits(rng: &mut Rng, len: usize) -> String {
    let mut text = String::with_capacity(len);
    while text.len() < len {
        let drawn = format!("{:018}", rng.below(1_000_000_000_000_000_000));
        text.push_str(&drawn[..drawn.len().min(len - text.len())]);
    }
    text
}

/// An IBAN of `country` whose national part is `national_digits` digits (ISO 13616).
pub(crate) fn iban(rng: &mut Rng, country: &str, national_digits: usize) -> String {
    let national = digits(rng, national_digits);
    let check = 98 - remainder_97(&[&national, country, "00"]);
    format!("{country}{check:02}{national}")
}

/// A legal entity identifier (ISO 17442).
pub(crate) fn lei(rng: &mut Rng) -> String {
    let body = format!("5299{}", digits(rng, 14));
    let check = 98 - remainder_97(&[&body, "00"]);
    format!("{body}{check:02}")
}

/// A creditor reference (ISO 11649) of ten digits.
pub(crate) fn creditor_reference(rng: &mut Rng) -> String {
    let body = digits(rng, 10);
    let check = 98 - remainder_97(&[&body, "RF", "00"]);
    format!("RF{check:02}{body}")
}

/// The remainder by 97 of the number that `parts` spell, letters counting from A = 10 (ISO 7064).
fn remainder_97(parts: &[&str]) -> u32 {
    let mut remainder = 0;
    for character in parts.iter().flat_map(|part| part.chars()) {
        let value = character
            .to_digit(36)
            .expect("identifiers are of digits and letters");
        remainder = if value < 10 {
            remainder * 10 + value
        } else {
            remainder * 100 + value
        } % 97;
    }
    remainder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_of_published_examples() {
        // ISO 13616 and ISO 11649 examples: a right identifier has remainder 1.
        assert_eq!(remainder_97(&["370400440532013000", "DE89"]), 1);
        assert_eq!(remainder_97(&["539007547034", "RF18"]), 1);
        let mut rng = Rng::new(5, 5);
        let made = iban(&mut rng, "AE", 19);
        assert_eq!(made.len(), 23);
        assert_eq!(remainder_97(&[&made[4..], &made[..4]]), 1);
        assert_eq!(remainder_97(&[&lei(&mut rng)]), 1);
    }

    #[test]
    fn a_uetr_is_a_version_4_uuid() {
        let mut rng = Rng::new(5, 6);
        for _ in 0..100 {
            let made = uetr(&mut rng);
            assert_eq!(made.len(), 36);
            assert_eq!(&made[14..15], "4");
            assert!("89ab".contains(&made[19..20]), "{made}");
            assert_eq!(made, made.to_lowercase());
        }
    }
}
