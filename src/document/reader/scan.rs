//! Byte classes and the loops that run over them.
//!
//! The scanned text is *padded*: `PADDING` zero bytes follow its last byte. Zero is in no class and in no
//! document, so every loop stops at the padding, and 8 or 16 bytes can be loaded at any offset.

use crate::util::simd::Sixteen;
pub(super) use crate::util::simd::word;

/// Zero bytes after the end of a padded text.
pub(super) const PADDING: usize = 32;

/// Bytes that may be part of a name; `xml_chars` decides on whole characters.
pub(super) const NAME: u8 = 1;
pub(super) const SPACE: u8 = 2;

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut at = 1;
    while at < 256 {
        let byte = at as u8;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.' | 0x80..) {
            class[at] |= NAME;
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            class[at] |= SPACE;
        }
        at += 1;
    }
    class
};

#[inline(always)]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// The first offset at or after `at` whose byte is not of `class`.
#[inline(always)]
pub(super) fn skip(text: &[u8], mut at: usize, class: u8) -> usize {
    while is(text[at], class) {
        at += 1;
    }
    at
}

/// The end of the name at `at`: the first byte that may follow a name in a tag, or that no name contains.
/// Other bytes count as part of the name; `written_names` checks it later.
#[inline(always)]
pub(super) fn skip_name(text: &[u8], mut at: usize) -> usize {
    loop {
        let stop = Sixteen::at(text, at).is_name_end();
        if stop != 0 {
            return at + stop.trailing_zeros() as usize;
        }
        at += 16;
    }
}

/// The end of the literal part of an attribute value: a quote, a reference, white space or `<`.
#[inline(always)]
pub(super) fn skip_value(text: &[u8], mut at: usize, quote: u8) -> usize {
    loop {
        let stop = Sixteen::at(text, at).is_value_end(quote);
        if stop != 0 {
            return at + stop.trailing_zeros() as usize;
        }
        at += 16;
    }
}

/// The end of literal character data: markup, a reference, `]` or a carriage return.
#[inline(always)]
pub(super) fn skip_text(text: &[u8], mut at: usize) -> usize {
    loop {
        let stop = Sixteen::at(text, at).is_text_end();
        if stop != 0 {
            return at + stop.trailing_zeros() as usize;
        }
        at += 16;
    }
}

/// The first control character before `end` that is not white space.
pub(super) fn find_control(text: &[u8], end: usize) -> Option<usize> {
    let found = (0..end).step_by(16).find_map(|at| {
        let stop = Sixteen::at(text, at).is_control();
        (stop != 0).then(|| at + stop.trailing_zeros() as usize)
    });
    // The padding consists of control characters.
    found.filter(|&at| at < end)
}

/// The first `len` bytes (fewer than eight) of a word, the others zero.
#[inline(always)]
pub(super) fn head(word: u64, len: usize) -> u64 {
    word & ((1 << (8 * len)) - 1)
}

/// Whether the `len` bytes at `a` and at `b` are equal.
#[inline(always)]
pub(super) fn equal_bytes(text: &[u8], mut a: usize, mut b: usize, mut len: usize) -> bool {
    while len >= 8 {
        if word(text, a) != word(text, b) {
            return false;
        }
        (a, b, len) = (a + 8, b + 8, len - 8);
    }
    head(word(text, a) ^ word(text, b), len) == 0
}
