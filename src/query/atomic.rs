//! The types of XML Schema that `castable as` asks for: whether a string is written as one of their values.

use super::moment::{self, trimmed};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Atomic {
    String,
    Boolean,
    Integer,
    Decimal,
    Double,
    Date,
    DateTime,
}

impl Atomic {
    pub const ALL: [Atomic; 7] = [
        Atomic::String,
        Atomic::Boolean,
        Atomic::Integer,
        Atomic::Decimal,
        Atomic::Double,
        Atomic::Date,
        Atomic::DateTime,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Atomic::String => "xs:string",
            Atomic::Boolean => "xs:boolean",
            Atomic::Integer => "xs:integer",
            Atomic::Decimal => "xs:decimal",
            Atomic::Double => "xs:double",
            Atomic::Date => "xs:date",
            Atomic::DateTime => "xs:dateTime",
        }
    }

    /// The type with this name in the namespace of XML Schema.
    pub fn named(local: &str) -> Option<Atomic> {
        Atomic::ALL.into_iter().find(|atomic| atomic.name().strip_prefix("xs:") == Some(local))
    }

    /// Whether a string can be cast. White space around it does not matter.
    pub fn takes_text(self, text: &[u8]) -> bool {
        let trimmed = trimmed(text);
        match self {
            Atomic::String => true,
            Atomic::Boolean => matches!(trimmed, b"true" | b"false" | b"1" | b"0"),
            Atomic::Integer => is_digits(unsigned(trimmed)),
            Atomic::Decimal => is_decimal(unsigned(trimmed)),
            Atomic::Double => is_double(trimmed),
            Atomic::Date => !moment::date(text).is_nan(),
            Atomic::DateTime => !moment::date_time(text).is_nan(),
        }
    }

    pub fn takes_number(self, number: f64) -> bool {
        match self {
            Atomic::String | Atomic::Boolean | Atomic::Double => true,
            Atomic::Integer | Atomic::Decimal => number.is_finite(),
            Atomic::Date | Atomic::DateTime => false,
        }
    }

    pub fn takes_boolean(self) -> bool {
        !matches!(self, Atomic::Date | Atomic::DateTime)
    }

    /// The number that a string is cast to; NaN if it cannot be cast.
    pub fn number_of(self, text: &[u8]) -> f64 {
        if !self.takes_text(text) {
            return f64::NAN;
        }
        match trimmed(text) {
            b"INF" => f64::INFINITY,
            b"-INF" => f64::NEG_INFINITY,
            // All other forms are also forms of Rust.
            text => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN),
        }
    }
}

fn unsigned(text: &[u8]) -> &[u8] {
    match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    }
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn is_decimal(text: &[u8]) -> bool {
    let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or(b""));
    (is_digits(whole) || whole.is_empty())
        && (is_digits(fraction) || fraction.is_empty())
        && !(whole.is_empty() && fraction.is_empty())
}

fn is_double(text: &[u8]) -> bool {
    if matches!(text, b"INF" | b"-INF" | b"NaN") {
        return true;
    }
    let exponent = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let mantissa = &text[..exponent.unwrap_or(text.len())];
    is_decimal(unsigned(mantissa)) && exponent.is_none_or(|at| is_digits(unsigned(&text[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::Atomic;

    #[test]
    fn forms_of_types() {
        let cases: [(Atomic, &[&str], &[&str]); 5] = [
            (Atomic::Integer, &["0", "-12", "+3", " 007 "], &["", "1.0", "1e3", "-", "x", "1 2"]),
            (Atomic::Decimal, &["1", "-1.5", ".5", "5.", "+0.10"], &["", ".", "1e3", "INF", "1.2.3"]),
            (
                Atomic::Double,
                &["1", "1e3", "-1.5E-10", "INF", "-INF", "NaN"],
                &["", "e3", "1e", "+INF", "inf", "1e2.5"],
            ),
            (Atomic::Boolean, &["true", "0", " 1\n"], &["TRUE", "yes", ""]),
            (Atomic::Date, &["2026-02-28", "2026-02-28Z"], &["2026-02-29", "28.02.2026", ""]),
        ];
        for (atomic, taken, refused) in cases {
            taken.iter().for_each(|text| assert!(atomic.takes_text(text.as_bytes()), "{atomic:?} {text}"));
            refused.iter().for_each(|text| assert!(!atomic.takes_text(text.as_bytes()), "{atomic:?} {text}"));
        }
        assert_eq!(Atomic::Double.number_of(b" 1.5e3 "), 1500.0);
        assert_eq!(Atomic::Double.number_of(b"-INF"), f64::NEG_INFINITY);
        assert!(Atomic::Decimal.number_of(b"1e3").is_nan());
    }
}
