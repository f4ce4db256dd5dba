//! `&amp;`, `&#38;` and what else an ampersand begins.

use super::chars::is_char;
use super::fault::Read;
use super::reader::Parse;

/// What a reference refers to.
pub(super) enum Reference {
    Character(char),
    /// An entity that is not predefined; its name is at `start..end` of the text being read.
    Entity {
        start: usize,
        end: usize,
    },
}

impl Parse<'_> {
    /// The reference whose `&` is at `at`, and the place after it.
    pub fn reference_at(&mut self, at: usize) -> Read<(Reference, usize)> {
        if self.text[at + 1] == b'#' {
            return self.character_reference(at);
        }
        let start = at + 1;
        let end = self.plain_name(
            start,
            "bad-reference",
            "a name expected after &; a plain & is written &amp;",
        )?;
        if self.text[end] != b';' {
            return Err(self.unexpected("bad-reference", "the reference does not end with ;", end));
        }
        let reference = match &self.text[start..end] {
            b"amp" => Reference::Character('&'),
            b"lt" => Reference::Character('<'),
            b"gt" => Reference::Character('>'),
            b"quot" => Reference::Character('"'),
            b"apos" => Reference::Character('\''),
            _ => Reference::Entity { start, end },
        };
        Ok((reference, end + 1))
    }

    fn character_reference(&self, at: usize) -> Read<(Reference, usize)> {
        let (radix, start) = if self.text[at + 2] == b'x' {
            (16, at + 3)
        } else {
            (10, at + 2)
        };
        let mut end = start;
        let mut code = 0u32;
        while let Some(digit) = (self.text[end] as char).to_digit(radix) {
            code = code.saturating_mul(radix).saturating_add(digit);
            end += 1;
        }
        if end == start || self.text[end] != b';' {
            return Err(self.unexpected("bad-reference", "a character reference is &#, digits and ;", end));
        }
        match char::from_u32(code).filter(|&c| is_char(c)) {
            Some(c) => Ok((Reference::Character(c), end + 1)),
            None => Err(self.fault(
                "bad-reference",
                "this refers to a character that is not allowed in XML",
                at,
            )),
        }
    }
}
