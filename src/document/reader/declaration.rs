//! `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`

use super::read_error::{BoxedReadError, ReadResult, read_error};
use crate::util::xml_chars::is_space;

/// The content of an XML declaration; the default is that of a message without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Declaration<'a> {
    pub encoding: Option<&'a str>,
    pub standalone: bool,
    /// The offset of the encoding's name, for errors about it.
    pub encoding_at: usize,
    /// The offset after the declaration.
    pub end: usize,
}

/// Reads the XML declaration at the start of `source`, if there is one.
///
/// `source` may be in any encoding that extends ASCII: a declaration is ASCII.
pub(super) fn read(source: &[u8]) -> ReadResult<Declaration<'_>> {
    if !source.starts_with(b"<?xml") || !source.get(5).copied().is_some_and(is_space) {
        return Ok(Declaration::default());
    }
    let mut cursor = Cursor { source, at: 5 };
    let mut declaration = Declaration::default();
    let mut space = cursor.space();
    if !(space && cursor.take(b"version")) {
        return Err(cursor.read_error("an XML declaration must begin with version"));
    }
    let version = cursor.value()?;
    if !version.strip_prefix("1.").is_some_and(|minor| !minor.is_empty() && is_all(minor, u8::is_ascii_digit))
    {
        return Err(cursor.read_error("the version must be 1.0"));
    }
    space = cursor.space();
    if space && cursor.take(b"encoding") {
        declaration.encoding_at = cursor.at;
        let name = cursor.value()?;
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !is_all(name, is_name) {
            return Err(cursor.read_error("this is not the name of an encoding"));
        }
        declaration.encoding = Some(name);
        space = cursor.space();
    }
    if space && cursor.take(b"standalone") {
        declaration.standalone = match cursor.value()? {
            "yes" => true,
            "no" => false,
            _ => return Err(cursor.read_error("standalone must be yes or no")),
        };
        cursor.space();
    }
    if !cursor.take(b"?>") {
        return Err(cursor
            .read_error("an XML declaration consists of version, encoding and standalone, in this order"));
    }
    Ok(Declaration { end: cursor.at, ..declaration })
}

fn is_all(text: &str, is_it: impl Fn(&u8) -> bool) -> bool {
    text.as_bytes().iter().all(is_it)
}

struct Cursor<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    fn take(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn space(&mut self) -> bool {
        let count = self.rest().iter().take_while(|&&b| is_space(b)).count();
        self.at += count;
        count > 0
    }

    /// `= "value"`
    fn value(&mut self) -> ReadResult<&'a str> {
        self.space();
        if !self.take(b"=") {
            return Err(self.read_error("= is expected"));
        }
        self.space();
        let Some(&quote @ (b'"' | b'\'')) = self.rest().first() else {
            return Err(self.read_error("a value in quotes is expected"));
        };
        self.at += 1;
        // Real values are short. Without this bound an unclosed quote would cost a pass over the message.
        let length = self.rest().iter().take(64).position(|&b| b == quote);
        let value = length.and_then(|length| std::str::from_utf8(&self.rest()[..length]).ok());
        let value = value.ok_or_else(|| self.read_error("the value does not end"))?;
        self.at += value.len() + 1;
        Ok(value)
    }

    fn read_error(&self, reason: &str) -> BoxedReadError {
        read_error("bad-declaration", reason, self.source, self.at)
    }
}
