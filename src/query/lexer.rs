//! Query text → tokens, one at a time, straight from the bytes.

use super::ast::Operator;
use super::refusal::{Refused, refuse, refuse_limit};
use crate::document::chars;

/// Bytes of one string literal.
pub const LITERAL_LIMIT: usize = 16 << 10;

/// The name test behind a prefix or a namespace: a local name, or `*`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Local<'a> {
    Any,
    Name(&'a str),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Token<'a> {
    End,
    Slash,
    DoubleSlash,
    At,
    Star,
    Dot,
    DotDot,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    Comma,
    Pipe,
    Plus,
    Minus,
    DoubleColon,
    Compare(Operator),
    /// A name without prefix: an element, an axis, a function, `and`, `or`; the parser tells by place.
    Name(&'a str),
    /// `p:name` or `p:*`
    Prefixed(&'a str, Local<'a>),
    /// `Q{uri}name` or `Q{uri}*`
    Expanded(&'a str, Local<'a>),
    Number(&'a str),
    Text(&'a str),
    /// `$name`
    Variable(&'a str),
}

pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The next token and where it starts.
    #[inline]
    pub fn next(&mut self) -> Result<(Token<'a>, usize), Refused> {
        self.skip_space();
        let start = self.at;
        let Some(first) = self.peek(0) else { return Ok((Token::End, start)) };
        let token = match first {
            b'/' if self.peek(1) == Some(b'/') => self.symbol(2, Token::DoubleSlash),
            b'/' => self.symbol(1, Token::Slash),
            b'Q' if self.peek(1) == Some(b'{') => self.expanded()?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.name()?,
            b'@' => self.symbol(1, Token::At),
            b'*' => self.symbol(1, Token::Star),
            b'.' if matches!(self.peek(1), Some(b'0'..=b'9')) => self.number(),
            b'.' if self.peek(1) == Some(b'.') => self.symbol(2, Token::DotDot),
            b'.' => self.symbol(1, Token::Dot),
            b'(' => self.symbol(1, Token::OpenParen),
            b')' => self.symbol(1, Token::CloseParen),
            b'[' => self.symbol(1, Token::OpenBracket),
            b']' => self.symbol(1, Token::CloseBracket),
            b',' => self.symbol(1, Token::Comma),
            b'|' if self.peek(1) == Some(b'|') => {
                return Err(refuse(self.text, start, "syntax", "`||` is not XPath; write `or`"));
            }
            b'|' => self.symbol(1, Token::Pipe),
            b'+' => self.symbol(1, Token::Plus),
            b'-' => self.symbol(1, Token::Minus),
            b':' if self.peek(1) == Some(b':') => self.symbol(2, Token::DoubleColon),
            b'=' if self.peek(1) == Some(b'=') => {
                return Err(refuse(self.text, start, "syntax", "`==` is not XPath; write `=`"));
            }
            b'=' => self.symbol(1, Token::Compare(Operator::Equal)),
            b'!' if self.peek(1) == Some(b'=') => self.symbol(2, Token::Compare(Operator::NotEqual)),
            b'<' if self.peek(1) == Some(b'=') => self.symbol(2, Token::Compare(Operator::LessOrEqual)),
            b'<' if self.peek(1) == Some(b'>') => {
                return Err(refuse(self.text, start, "syntax", "`<>` is not XPath; write `!=`"));
            }
            b'<' => self.symbol(1, Token::Compare(Operator::Less)),
            b'>' if self.peek(1) == Some(b'=') => self.symbol(2, Token::Compare(Operator::GreaterOrEqual)),
            b'>' => self.symbol(1, Token::Compare(Operator::Greater)),
            b'0'..=b'9' => self.number(),
            b'\'' | b'"' => self.literal(first)?,
            b'$' => self.variable()?,
            _ => return Err(self.stray_character()),
        };
        Ok((token, start))
    }

    /// The next byte that is not white space, without taking it.
    pub fn peek_past_space(&self) -> Option<u8> {
        self.text.as_bytes()[self.at..].iter().copied().find(|&byte| !chars::is_space(byte))
    }

    #[inline(always)]
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        while self.peek(0).is_some_and(chars::is_space) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn symbol(&mut self, length: usize, token: Token<'a>) -> Token<'a> {
        self.at += length;
        token
    }

    /// `name`, `p:name` or `p:*`. In `axis::name` the name ends before the colons.
    #[inline]
    fn name(&mut self) -> Result<Token<'a>, Refused> {
        let name = self.ncname()?;
        if self.peek(0) != Some(b':') || self.peek(1) == Some(b':') {
            return Ok(Token::Name(name));
        }
        self.at += 1;
        Ok(Token::Prefixed(name, self.local()?))
    }

    /// `Q{uri}name` or `Q{uri}*`, as in XPath 3.1.
    fn expanded(&mut self) -> Result<Token<'a>, Refused> {
        let start = self.at + 2;
        let Some(length) = memchr::memchr(b'}', &self.text.as_bytes()[start..]) else {
            return Err(refuse(self.text, self.at, "syntax", "`Q{` is not closed by `}`"));
        };
        let uri = &self.text[start..start + length];
        if let Some(brace) = uri.find('{') {
            return Err(refuse(self.text, start + brace, "syntax", "a namespace URI holds no `{`"));
        }
        self.at = start + length + 1;
        Ok(Token::Expanded(uri, self.local()?))
    }

    fn local(&mut self) -> Result<Local<'a>, Refused> {
        if self.peek(0) == Some(b'*') {
            self.at += 1;
            return Ok(Local::Any);
        }
        Ok(Local::Name(self.ncname()?))
    }

    /// A name without colon.
    #[inline]
    fn ncname(&mut self) -> Result<&'a str, Refused> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        match bytes.get(start) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.at += 1,
            Some(0x80..) => {
                let first = self.text[start..].chars().next().unwrap_or_default();
                if !chars::is_name_start(first) {
                    return Err(self.stray_character());
                }
                self.at += first.len_utf8();
            }
            _ => return Err(refuse(self.text, start, "syntax", "a name is missing here")),
        }
        loop {
            match bytes.get(self.at) {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.') => self.at += 1,
                Some(0x80..) => {
                    let next = self.text[self.at..].chars().next().unwrap_or_default();
                    if !chars::is_name_char(next) {
                        break;
                    }
                    self.at += next.len_utf8();
                }
                _ => break,
            }
        }
        Ok(&self.text[start..self.at])
    }

    /// `Digits ('.' Digits?)? | '.' Digits`
    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        self.digits();
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        Token::Number(&self.text[start..self.at])
    }

    fn digits(&mut self) {
        while matches!(self.peek(0), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// A string literal: XPath 1.0 has no escapes, a quote ends it.
    fn literal(&mut self, quote: u8) -> Result<Token<'a>, Refused> {
        let start = self.at + 1;
        let Some(length) = memchr::memchr(quote, &self.text.as_bytes()[start..]) else {
            return Err(refuse(
                self.text,
                self.at,
                "unterminated-literal",
                format!("the string that starts here is not closed by `{}`", quote as char),
            ));
        };
        if length > LITERAL_LIMIT {
            let what = "the string that starts here is too long";
            return Err(refuse_limit(self.text, self.at, "literal-limit", what, length, LITERAL_LIMIT));
        }
        self.at = start + length + 1;
        Ok(Token::Text(&self.text[start..start + length]))
    }

    fn variable(&mut self) -> Result<Token<'a>, Refused> {
        self.at += 1;
        self.skip_space();
        let start = self.at;
        self.name()?;
        Ok(Token::Variable(&self.text[start..self.at]))
    }

    #[cold]
    fn stray_character(&self) -> Refused {
        let rest = &self.text[self.at..];
        let reason = match rest.chars().next() {
            Some('&') if rest.starts_with("&&") => "`&&` is not XPath; write `and`".to_string(),
            Some('&') => "`&` has no meaning here; is the query XML-escaped?".to_string(),
            Some('!') => "`!` is not XPath; write `not(…)`".to_string(),
            Some('{') => "`{` has no meaning here; an expanded name is written `Q{uri}name`".to_string(),
            Some(c) => format!("the character {c:?} has no meaning here"),
            None => "the query ends where it should go on".to_string(),
        };
        refuse(self.text, self.at, "syntax", reason)
    }
}
