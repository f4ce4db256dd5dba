//! XPath 1.0's `number()` of a string.

use crate::util::xml_chars::is_space;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The number a string-value stands for, NaN if none: white space, `-`, digits with at most one
/// point among them, white space. No exponent, no `+`, no `inf`.
///
/// A mantissa below 2^53 divided by an exact power of ten is correctly rounded, which covers the numbers
/// that messages contain; the standard library parses the rest.
pub fn number(bytes: &[u8]) -> f64 {
    if bytes.len() > LONG {
        return long_number(bytes);
    }
    let start = bytes.iter().position(|&byte| !is_space(byte)).unwrap_or(bytes.len());
    let text = &bytes[start..];
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut mantissa = 0u64;
    let mut count = 0usize;
    let mut point = None;
    let mut at = 0;
    while let Some(&byte) = digits.get(at) {
        match byte {
            b'0'..=b'9' => {
                // It overflows only past 19 digits, and past 15 it is not used.
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                count += 1;
            }
            b'.' if point.is_none() => point = Some(at),
            _ => break,
        }
        at += 1;
    }
    if count == 0 || !digits[at..].iter().all(|&byte| is_space(byte)) {
        return f64::NAN;
    }
    let fraction = point.map_or(0, |point| at - point - 1);
    let magnitude = if count <= 15 {
        mantissa as f64 / POWERS[fraction]
    } else {
        // Digits and one point only: always ASCII, always accepted.
        std::str::from_utf8(&digits[..at]).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    };
    if negative { -magnitude } else { magnitude }
}

/// Longer strings take another path: a message may contain megabytes of digits.
const LONG: usize = 128;
/// A whole part with more digits than this is infinite as a double.
const MOST_WHOLE: usize = 400;
/// Digits of a fraction that can matter: 324 zeros, then the 767 that decide the rounding.
const MOST_FRACTION: usize = 1200;

/// The same for a long string: a few vectorised passes, and only as many digits as affect a double.
#[cold]
fn long_number(bytes: &[u8]) -> f64 {
    let text = &bytes[run(bytes, is_space)..];
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (whole, rest) = text.split_at(run(text, |byte| byte.is_ascii_digit()));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(run(rest, |byte| byte.is_ascii_digit())),
        _ => (&rest[..0], rest),
    };
    if whole.is_empty() && fraction.is_empty() || run(rest, is_space) < rest.len() {
        return f64::NAN;
    }
    let whole = &whole[run(whole, |byte| byte == b'0')..];
    let magnitude = if whole.len() > MOST_WHOLE {
        f64::INFINITY
    } else {
        let (kept, dropped) = fraction.split_at(fraction.len().min(MOST_FRACTION));
        // The dropped digits only decide on which side of a midpoint the number lies.
        let beyond = run(dropped, |byte| byte == b'0') < dropped.len();
        let digits = [b"0", whole, b".", kept, if beyond { b"1" } else { b"0" }].concat();
        std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    };
    if negative { -magnitude } else { magnitude }
}

/// The length of the prefix whose bytes are all of a class.
fn run(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    let (blocks, _) = bytes.as_chunks::<32>();
    // No early exit inside a block, so that the compiler vectorises it.
    let whole = |block: &&[u8; 32]| block.iter().fold(true, |all, &byte| all & is(byte));
    let start = 32 * blocks.iter().take_while(whole).count();
    start + bytes[start..].iter().take_while(|&&byte| is(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn long_ones_are_numbers_too() {
        let nines = "9".repeat(300);
        let long_fraction = format!("0.5{}1", "0".repeat(5_000));
        let midpoint = format!("9007199254740993.{}", "0".repeat(5_000));
        for text in [
            format!("{nines}.{nines}"),
            format!("{}{}", "0".repeat(100_000), nines),
            format!("0.{}123{}", "0".repeat(250), nines),
            format!("0.{}1", "0".repeat(10_000)),
            long_fraction,
            format!("{midpoint}1"),
            midpoint,
        ] {
            let expected = text.parse::<f64>().unwrap();
            assert_eq!(number(text.as_bytes()).to_bits(), expected.to_bits(), "{}", &text[..40]);
            let padded = format!("{}-{text}{}", " ".repeat(200), "\n".repeat(200));
            assert_eq!(number(padded.as_bytes()), -expected);
            assert!(number(format!("{text}x").as_bytes()).is_nan());
            assert!(number(format!("{text} {text}").as_bytes()).is_nan());
        }
        assert_eq!(number("7".repeat(1 << 20).as_bytes()), f64::INFINITY);
        assert!(number(" ".repeat(1 << 20).as_bytes()).is_nan());
        assert!(number(format!("{}..", "1".repeat(200)).as_bytes()).is_nan());
    }

    #[test]
    fn accepts_what_xpath_accepts() {
        for (text, value) in [
            ("0", 0.0),
            ("011", 11.0),
            (" 11.0\n", 11.0),
            ("-3", -3.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-.5", -0.5),
            ("\t\r\n -5. ", -5.0),
            ("0.1", 0.1),
            ("123456789012345", 123456789012345.0),
            ("9007199254740993", 9007199254740992.0),
            ("0.30000000000000004", 0.30000000000000004),
            ("3.14159265358979323846264338327950288", std::f64::consts::PI),
        ] {
            assert_eq!(number(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(number("9".repeat(400).as_bytes()), f64::INFINITY);
        assert_eq!(number(format!("0.{}1", "0".repeat(400)).as_bytes()), 0.0);
    }

    #[test]
    fn the_rest_is_not_a_number() {
        for text in [
            "", " ", "-", ".", "-.", "+1", "1e3", "1E3", "inf", "Infinity", "NaN", "0x10", "1 2", "--1",
            "- 1", "1.2.3", "1,5", "abc", "5a", "\u{a0}5", "\u{665}", "\u{c}5", "1_000",
        ] {
            assert!(number(text.as_bytes()).is_nan(), "{text:?}");
        }
    }

    #[test]
    fn rounds_as_the_standard_library() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let digits = format!("{}", state >> (state >> 58));
            let point = (state >> 32) as usize % (digits.len() + 1);
            let text = format!("{}.{}", &digits[..point], &digits[point..]);
            assert_eq!(number(text.as_bytes()).to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
    }
}
