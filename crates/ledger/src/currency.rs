//! ISO 4217 currencies: the code, and the number of decimals as data.

use std::fmt;

/// A currency code of three capital letters. Whether ISO 4217 lists it is a question of [`Currency::is_listed`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Stands where no readable code was found; never listed, no account can hold it.
    pub const NONE: Self = Self(*b"XXX");

    /// Three capital letters, or `None`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let code: [u8; 3] = text.try_into().ok()?;
        code.iter()
            .all(u8::is_ascii_uppercase)
            .then_some(Self(code))
    }

    /// The three letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }

    /// The three bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 3] {
        &self.0
    }

    /// Whether ISO 4217 lists the code as money or as a unit one can hold (`XAU` is listed, `XXX` and `ZZZ` are not).
    #[must_use]
    pub fn is_listed(self) -> bool {
        exponent_of(&self.0).is_some()
    }

    /// Decimals of the minor unit; 2 for a code that is not listed.
    #[must_use]
    pub fn exponent(self) -> u8 {
        exponent_of(&self.0).unwrap_or(2)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn exponent_of(code: &[u8; 3]) -> Option<u8> {
    let found = |list: &str| list.as_bytes().chunks(4).any(|item| item.starts_with(code));
    if found(TWO_DECIMALS) {
        Some(2)
    } else if found(NO_DECIMALS) {
        Some(0)
    } else if found(THREE_DECIMALS) {
        Some(3)
    } else if found(FOUR_DECIMALS) {
        Some(4)
    } else {
        None
    }
}

// ISO 4217 list one. Metals, funds and bond units have no minor unit and count as 0 here; XTS (test) and XXX (none) are
// left out on purpose.
const NO_DECIMALS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF \
XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XUA ";
const TWO_DECIMALS: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD \
CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD \
HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU \
MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK \
SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD \
XCG YER ZAR ZMW ZWG ";
const THREE_DECIMALS: &str = "BHD IQD JOD KWD LYD OMR TND ";
const FOUR_DECIMALS: &str = "CLF UYW ";

#[cfg(test)]
mod tests {
    use super::Currency;

    #[test]
    fn exponents_of_the_golden_currencies() {
        let exponent =
            |code: &str| Currency::parse(code.as_bytes()).map(|c| (c.is_listed(), c.exponent()));
        assert_eq!(exponent("EUR"), Some((true, 2)));
        assert_eq!(exponent("JPY"), Some((true, 0)));
        assert_eq!(exponent("KWD"), Some((true, 3)));
        assert_eq!(exponent("OMR"), Some((true, 3)));
        assert_eq!(exponent("CLF"), Some((true, 4)));
        assert_eq!(exponent("XAU"), Some((true, 0)));
        assert_eq!(exponent("ZZZ"), Some((false, 2)));
        assert_eq!(exponent("XXX"), Some((false, 2)));
        assert_eq!(exponent("eur"), None);
        assert_eq!(exponent("EU"), None);
    }
}
