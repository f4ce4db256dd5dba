//! XPath's functions of strings and numbers. Strings are UTF-8; positions count characters.

use std::borrow::Cow;

use crate::util::xml_chars::is_space;

/// XPath's `string()` of a number: no exponent, and no point if it is an integer.
pub fn number_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_string()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_string() } else { "-Infinity".to_string() }
    } else if number == 0.0 {
        "0".to_string()
    } else {
        number.to_string()
    }
}

/// `round()`: halves are rounded up.
pub fn round(number: f64) -> f64 {
    if number.is_nan() || number.is_infinite() || number.fract() == 0.0 {
        return number;
    }
    if (-0.5..0.0).contains(&number) {
        return -0.0;
    }
    // Adding a half first would round the largest number below a half up to 1.
    let floor = number.floor();
    if number - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// `normalize-space()`: no white space at the ends, one space elsewhere.
pub fn normalize_space(text: &[u8]) -> Cow<'_, [u8]> {
    let is_normal = !text.first().copied().is_some_and(is_space)
        && !text.last().copied().is_some_and(is_space)
        && text.windows(2).all(|pair| !is_space(pair[0]) || (pair[0] == b' ' && !is_space(pair[1])));
    if is_normal {
        return Cow::Borrowed(text);
    }
    let mut normal = Vec::with_capacity(text.len());
    for word in words(text) {
        if !normal.is_empty() {
            normal.push(b' ');
        }
        normal.extend(word);
    }
    Cow::Owned(normal)
}

/// The words between white space: `tokenize()` without a pattern.
pub fn words(text: &[u8]) -> Vec<&[u8]> {
    text.split(|&byte| is_space(byte)).filter(|word| !word.is_empty()).collect()
}

pub fn substring_before<'t>(text: &'t [u8], separator: &[u8]) -> &'t [u8] {
    memchr::memmem::find(text, separator).map_or(b"", |at| &text[..at])
}

pub fn substring_after<'t>(text: &'t [u8], separator: &[u8]) -> &'t [u8] {
    memchr::memmem::find(text, separator).map_or(b"", |at| &text[at + separator.len()..])
}

/// `substring(text, start, length)`: the characters at positions p with p ≥ round(start) and, if a length is
/// given, p < round(start) + round(length). `substring('12345', 1.5, 2.6)` is `234`.
pub fn substring(text: &[u8], start: f64, length: Option<f64>) -> &[u8] {
    let first = round(start);
    let end = length.map_or(f64::INFINITY, |length| first + round(length));
    if first.is_nan() || end.is_nan() || first >= end {
        return b"";
    }
    let skipped = (first - 1.0).max(0.0);
    let from = byte_offset(text, skipped);
    let to = byte_offset(text, (end - 1.0).max(0.0));
    &text[from..to.max(from)]
}

/// Where the character after so many characters starts.
fn byte_offset(text: &[u8], characters: f64) -> usize {
    if characters >= text.len() as f64 {
        return text.len();
    }
    let starts = text.iter().enumerate().filter(|(_, byte)| is_character_start(**byte));
    starts.map(|(at, _)| at).nth(characters as usize).unwrap_or(text.len())
}

/// `string-length()`, in characters.
pub fn length(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| is_character_start(byte)).count()
}

fn is_character_start(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// `translate(text, from, to)`: each character of `from` becomes the one at its place in `to`, or is removed.
pub fn translate(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (text, from, to) = (as_str(text), as_str(from), as_str(to));
    let mut replacements = rustc_hash::FxHashMap::default();
    let mut to = to.chars();
    for character in from.chars() {
        let replacement = to.next();
        replacements.entry(character).or_insert(replacement);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match replacements.get(&character) {
            None => out.push(character),
            Some(replacement) => out.extend(replacement),
        }
    }
    out.into_bytes()
}

/// `lower-case()`, by the full mapping of Unicode.
pub fn lower_case(text: &[u8]) -> Vec<u8> {
    as_str(text).to_lowercase().into_bytes()
}

/// `upper-case()`
pub fn upper_case(text: &[u8]) -> Vec<u8> {
    as_str(text).to_uppercase().into_bytes()
}

/// `min()` and `max()` of numbers: NaN if one of them is.
pub fn extreme(numbers: impl Iterator<Item = f64>, chosen: fn(f64, f64) -> f64) -> Option<f64> {
    numbers.reduce(|one, other| if one.is_nan() || other.is_nan() { f64::NAN } else { chosen(one, other) })
}

/// Text of a message or a query is UTF-8.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Whether `xml:lang` is the language asked for or one of its dialects, in any case.
pub fn is_language(lang: &[u8], wanted: &[u8]) -> bool {
    lang.len() >= wanted.len()
        && lang[..wanted.len()].eq_ignore_ascii_case(wanted)
        && (lang.len() == wanted.len() || lang[wanted.len()] == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_xpath_says() {
        let texts =
            [(1.0, "1"), (-0.0, "0"), (0.5, "0.5"), (-12.25, "-12.25"), (1e21, "1000000000000000000000")];
        for (number, text) in texts {
            assert_eq!(number_text(number), text);
        }
        assert_eq!(number_text(f64::NAN), "NaN");
        assert_eq!(number_text(f64::NEG_INFINITY), "-Infinity");
    }

    /// The examples of the recommendation.
    #[test]
    fn substrings_count_rounded_positions() {
        let text = b"12345";
        assert_eq!(substring(text, 2.0, Some(3.0)), b"234");
        assert_eq!(substring(text, 2.0, None), b"2345");
        assert_eq!(substring(text, 1.5, Some(2.6)), b"234");
        assert_eq!(substring(text, 0.0, Some(3.0)), b"12");
        assert_eq!(substring(text, f64::NAN, Some(3.0)), b"");
        assert_eq!(substring(text, 1.0, Some(f64::NAN)), b"");
        assert_eq!(substring(text, -42.0, Some(f64::INFINITY)), text);
        assert_eq!(substring(text, f64::NEG_INFINITY, Some(f64::INFINITY)), b"");
        assert_eq!(substring("aäöü".as_bytes(), 2.0, Some(2.0)), "äö".as_bytes());
    }

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!(round(2.5), 3.0);
        assert_eq!(round(-2.5), -2.0);
        assert!(round(-0.2).is_sign_negative());
        assert!(round(f64::NAN).is_nan());
    }

    #[test]
    fn strings_are_normalised_and_translated() {
        assert_eq!(&*normalize_space(b" a \n b "), b"a b");
        assert_eq!(&*normalize_space(b"a b"), b"a b");
        assert_eq!(&*normalize_space(b"  "), b"");
        assert_eq!(translate(b"bar", b"abc", b"AB"), b"BAr");
        assert_eq!(translate(b"--aaa--", b"abc-", b"ABC"), b"AAA");
        assert_eq!(substring_before(b"1999/04/01", b"/"), b"1999");
        assert_eq!(substring_after(b"1999/04/01", b"19"), b"99/04/01");
    }
}
