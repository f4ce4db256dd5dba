//! The characters of constructed elements: references, braces, line ends.

use super::Parser;
use super::hints;
use super::refusal::Refused;
use crate::util::xml_chars;

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.lexer.peek(0)
    }

    /// Whether these characters come next.
    pub(super) fn starts_with(&self, characters: &str) -> bool {
        self.lexer.text.as_bytes()[self.lexer.at..].starts_with(characters.as_bytes())
    }

    /// At a brace: the character that `{{` or `}}` means; `None` for a single `{`, which begins an expression.
    pub(super) fn doubled_brace(&mut self) -> Result<Option<char>, Refused> {
        let at = self.lexer.at;
        let (brace, next) = (self.lexer.peek(0), self.lexer.peek(1));
        if brace == next {
            self.lexer.at += 2;
            return Ok(brace.map(char::from));
        }
        match brace {
            Some(b'}') => Err(self.refuse(at, "syntax", "write a literal `}` as `}}`")),
            _ => Ok(None),
        }
    }

    /// Appends the characters up to the first special one.
    pub(super) fn copy_plain(&mut self, text: &mut String, special: &[u8]) -> Result<(), Refused> {
        let rest = &self.lexer.text[self.lexer.at..];
        let length = rest.bytes().position(|byte| special.contains(&byte)).unwrap_or(rest.len());
        let run = self.check_characters(&rest[..length])?;
        text.push_str(run);
        self.lexer.at += length;
        Ok(())
    }

    /// Refuses characters that XML does not allow; `run` starts at the current offset.
    pub(super) fn check_characters(&self, run: &'a str) -> Result<&'a str, Refused> {
        match run.char_indices().find(|&(_, c)| !xml_chars::is_char(c)) {
            Some((offset, c)) => {
                let reason = format!("the character {c:?} is not allowed in XML");
                Err(self.refuse(self.lexer.at + offset, "syntax", reason))
            }
            None => Ok(run),
        }
    }

    /// Skips a line end, `\r\n` or one character.
    pub(super) fn line_end(&mut self) {
        self.lexer.at += if self.starts_with("\r\n") { 2 } else { 1 };
    }

    /// Parses `&lt;`, `&#10;` or `&#xA;` at the ampersand.
    pub(super) fn reference(&mut self) -> Result<char, Refused> {
        let at = self.lexer.at;
        let rest = &self.lexer.text[at + 1..];
        let name = rest.split_once(';').map(|(name, _)| name).unwrap_or_default();
        let character = match name.as_bytes() {
            b"lt" => Some('<'),
            b"gt" => Some('>'),
            b"amp" => Some('&'),
            b"quot" => Some('"'),
            b"apos" => Some('\''),
            [b'#', b'x', digits @ ..] => character_by_number(digits, 16),
            [b'#', digits @ ..] => character_by_number(digits, 10),
            _ => None,
        };
        let Some(character) = character else {
            return Err(self.refuse(at, "bad-reference", hints::REFERENCE));
        };
        self.lexer.at = at + name.len() + 2;
        Ok(character)
    }
}

/// The character with this number, if XML allows it.
fn character_by_number(digits: &[u8], radix: u32) -> Option<char> {
    if digits.is_empty() || !digits.iter().all(|&digit| char::from(digit).is_digit(radix)) {
        return None;
    }
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    char::from_u32(number).filter(|&c| xml_chars::is_char(c))
}
