//! References: `&amp;`, `&#38;`, `&entity;`.

use super::MessageParser;
use super::read_error::ReadResult;
use crate::util::xml_chars::is_char;

/// The entities every document has. Declaring them again changes nothing.
const PREDEFINED: [(&[u8], char); 5] =
    [(b"lt;", '<'), (b"gt;", '>'), (b"amp;", '&'), (b"quot;", '"'), (b"apos;", '\'')];

/// The target of a reference.
pub(super) enum Reference {
    Character(char),
    /// An entity that is not predefined; its name is at `start..end` of the text being read.
    Entity {
        start: usize,
        end: usize,
    },
}

impl MessageParser<'_> {
    /// Reads the reference whose `&` is at `at`; returns it and the offset after it.
    pub fn reference_at(&mut self, at: usize) -> ReadResult<(Reference, usize)> {
        if self.text[at + 1] == b'#' {
            return self.character_reference(at);
        }
        let start = at + 1;
        if let Some((name, c)) = PREDEFINED.iter().find(|(name, _)| self.text[start..].starts_with(name)) {
            return Ok((Reference::Character(*c), start + name.len()));
        }
        let reason = "a name is expected after &; write a literal & as &amp;";
        let end = self.plain_name(start, "bad-reference", reason)?;
        if self.text[end] != b';' {
            return Err(self.unexpected("bad-reference", "the reference does not end with ;", end));
        }
        Ok((Reference::Entity { start, end }, end + 1))
    }

    fn character_reference(&self, at: usize) -> ReadResult<(Reference, usize)> {
        let (radix, start) = if self.text[at + 2] == b'x' { (16, at + 3) } else { (10, at + 2) };
        let mut end = start;
        let mut code = 0u32;
        while let Some(digit) = (self.text[end] as char).to_digit(radix) {
            code = code.saturating_mul(radix).saturating_add(digit);
            end += 1;
        }
        if end == start || self.text[end] != b';' {
            return Err(self.unexpected(
                "bad-reference",
                "a character reference is written &#, digits and ;",
                end,
            ));
        }
        match char::from_u32(code).filter(|&c| is_char(c)) {
            Some(c) => Ok((Reference::Character(c), end + 1)),
            None => Err(self.read_error(
                "bad-reference",
                "this refers to a character that is not allowed in XML",
                at,
            )),
        }
    }
}
