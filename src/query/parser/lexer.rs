//! Query text → tokens, one at a time, straight from the bytes.
//!
//! `//p:b[@n = 2]` becomes `DoubleSlash`, a prefixed name (`p`, `b`), `[`, `At`, the name `n`, `=`, the number 2, `]`.

use super::refusal::{Refused, refuse, refuse_limit};
use crate::limits::QUERY_LITERAL_LIMIT;
use crate::query::ast::Operator;
use crate::util::xml_chars;

/// A kind of token. Its text is in the lexer's `word` and `local`, so that a token is one small value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token {
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
    /// Ends an expression inside a constructed element.
    CloseBrace,
    Comma,
    Pipe,
    Plus,
    Minus,
    DoubleColon,
    Question,
    /// `:=`
    Assign,
    Compare(Operator),
    /// `word` is a name without prefix: an element, an axis, a function, `and` or `or`. The parser
    /// decides which by the context.
    Name,
    /// `word:local` or `word:*`
    Prefixed,
    /// `Q{word}local` or `Q{word}*`
    Expanded,
    /// `*:word`
    AnyPrefix,
    /// `word` is the digits.
    Number,
    /// `word` is the string without its quotes.
    Text,
    /// `$word`
    Variable,
}

/// The current token of a text.
pub struct Lexer<'a> {
    pub text: &'a str,
    pub token: Token,
    /// The offset where the token starts.
    pub start: usize,
    pub word: &'a str,
    /// None for `*`.
    pub local: Option<&'a str>,
    /// The offset where the token ends. Constructed elements are read from here by character.
    pub at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer before the first token; call `advance`.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, token: Token::End, start: 0, word: "", local: None, at: 0 }
    }

    /// Advances to the next token.
    #[inline]
    pub fn advance(&mut self) -> Result<(), Refused> {
        self.skip_space();
        let start = self.at;
        self.start = start;
        let Some(first) = self.peek(0) else {
            self.token = Token::End;
            return Ok(());
        };
        self.token = match (first, self.peek(1)) {
            (b'/', Some(b'/')) => self.symbol(2, Token::DoubleSlash),
            (b'/', _) => self.symbol(1, Token::Slash),
            (b'Q', Some(b'{')) => self.expanded()?,
            (b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.., _) => self.name()?,
            (b'@', _) => self.symbol(1, Token::At),
            (b'*', Some(b':')) if self.peek(2) != Some(b':') => self.any_prefix()?,
            (b'*', _) => self.symbol(1, Token::Star),
            (b'0'..=b'9', _) | (b'.', Some(b'0'..=b'9')) => self.number(),
            (b'.', Some(b'.')) => self.symbol(2, Token::DotDot),
            (b'.', _) => self.symbol(1, Token::Dot),
            (b'(', Some(b':')) => return Err(self.comment()),
            (b'(', _) => self.symbol(1, Token::OpenParen),
            (b')', _) => self.symbol(1, Token::CloseParen),
            (b'[', _) => self.symbol(1, Token::OpenBracket),
            (b']', _) => self.symbol(1, Token::CloseBracket),
            (b'}', _) => self.symbol(1, Token::CloseBrace),
            (b',', _) => self.symbol(1, Token::Comma),
            (b'|', Some(b'|')) => return Err(self.not_xpath("||", "or")),
            (b'|', _) => self.symbol(1, Token::Pipe),
            (b'+', _) => self.symbol(1, Token::Plus),
            (b'-', _) => self.symbol(1, Token::Minus),
            (b'?', _) => self.symbol(1, Token::Question),
            (b':', Some(b':')) => self.symbol(2, Token::DoubleColon),
            (b':', Some(b'=')) => self.symbol(2, Token::Assign),
            (b'=', Some(b'=')) => return Err(self.not_xpath("==", "=")),
            (b'=', _) => self.symbol(1, Token::Compare(Operator::Equal)),
            (b'!', Some(b'=')) => self.symbol(2, Token::Compare(Operator::NotEqual)),
            (b'<', Some(b'=')) => self.symbol(2, Token::Compare(Operator::LessOrEqual)),
            (b'<', Some(b'>')) => return Err(self.not_xpath("<>", "!=")),
            (b'<', _) => self.symbol(1, Token::Compare(Operator::Less)),
            (b'>', Some(b'=')) => self.symbol(2, Token::Compare(Operator::GreaterOrEqual)),
            (b'>', _) => self.symbol(1, Token::Compare(Operator::Greater)),
            (b'\'' | b'"', _) => self.literal(first)?,
            (b'$', _) => self.variable()?,
            (b'&', Some(b'&')) => return Err(self.not_xpath("&&", "and")),
            (b'!', _) => return Err(self.not_xpath("!", "not(…)")),
            _ => return Err(self.stray_character()),
        };
        Ok(())
    }

    /// Whether the token is this name.
    #[inline(always)]
    pub fn is(&self, name: &str) -> bool {
        self.token == Token::Name && self.word == name
    }

    /// The next byte after the token that is not white space.
    pub fn follower(&self) -> Option<u8> {
        self.text.as_bytes()[self.at..].iter().copied().find(|&byte| !xml_chars::is_space(byte))
    }

    /// Whether the token is a name before `(`.
    #[inline(always)]
    pub fn at_call(&self) -> bool {
        matches!(self.token, Token::Name | Token::Prefixed)
            && matches!(self.peek(0), Some(b'(' | b' ' | b'\t' | b'\n' | b'\r'))
            && {
                let rest = self.text[self.at..].trim_ascii_start().as_bytes();
                rest.first() == Some(&b'(') && rest.get(1) != Some(&b':')
            }
    }

    #[inline(always)]
    pub fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    #[inline(always)]
    pub fn skip_space(&mut self) {
        while self.peek(0).is_some_and(xml_chars::is_space) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn symbol(&mut self, length: usize, token: Token) -> Token {
        self.at += length;
        token
    }

    /// `name`, `p:name` or `p:*`. In `axis::name` the name ends before the colons.
    #[inline]
    fn name(&mut self) -> Result<Token, Refused> {
        self.word = self.ncname()?;
        if self.peek(0) != Some(b':') || matches!(self.peek(1), Some(b':' | b'=')) {
            return Ok(Token::Name);
        }
        self.at += 1;
        self.local()?;
        Ok(Token::Prefixed)
    }

    /// `Q{uri}name` or `Q{uri}*`, as in XPath 3.1.
    fn expanded(&mut self) -> Result<Token, Refused> {
        let start = self.at + 2;
        let Some(length) = memchr::memchr(b'}', &self.text.as_bytes()[start..]) else {
            return Err(refuse(self.text, self.at, "syntax", "`Q{` is not closed by `}`"));
        };
        self.word = &self.text[start..start + length];
        if let Some(brace) = self.word.find('{') {
            return Err(refuse(self.text, start + brace, "syntax", "a namespace URI cannot contain `{`"));
        }
        self.at = start + length + 1;
        self.local()?;
        Ok(Token::Expanded)
    }

    /// `*:name`, as in XPath 2.0.
    fn any_prefix(&mut self) -> Result<Token, Refused> {
        self.at += 2;
        if self.peek(0) == Some(b'*') {
            return Err(refuse(self.text, self.at, "syntax", "write `*` for every name of every namespace"));
        }
        self.word = self.ncname()?;
        Ok(Token::AnyPrefix)
    }

    fn local(&mut self) -> Result<(), Refused> {
        self.local = if self.peek(0) == Some(b'*') {
            self.at += 1;
            None
        } else {
            Some(self.ncname()?)
        };
        Ok(())
    }

    /// A name without colon.
    #[inline]
    pub fn ncname(&mut self) -> Result<&'a str, Refused> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        match bytes.get(start) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.at += 1,
            Some(0x80..) => {
                let first = self.text[start..].chars().next().unwrap_or_default();
                if !xml_chars::is_name_start(first) {
                    return Err(self.stray_character());
                }
                self.at += first.len_utf8();
            }
            _ => return Err(refuse(self.text, start, "syntax", "a name is expected here")),
        }
        loop {
            match bytes.get(self.at) {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.') => self.at += 1,
                Some(0x80..) => {
                    let next = self.text[self.at..].chars().next().unwrap_or_default();
                    if !xml_chars::is_name_char(next) {
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
    fn number(&mut self) -> Token {
        let start = self.at;
        self.digits();
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        self.word = &self.text[start..self.at];
        Token::Number
    }

    fn digits(&mut self) {
        while matches!(self.peek(0), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// A string literal: XPath 1.0 has no escapes, a quote ends it.
    fn literal(&mut self, quote: u8) -> Result<Token, Refused> {
        let start = self.at + 1;
        let Some(length) = memchr::memchr(quote, &self.text.as_bytes()[start..]) else {
            return Err(refuse(
                self.text,
                self.at,
                "unterminated-literal",
                format!("the string that starts here is not closed by `{}`", quote as char),
            ));
        };
        if length > QUERY_LITERAL_LIMIT {
            let what = "the string that starts here is too long";
            return Err(refuse_limit(self.text, self.at, "literal-limit", what, length, QUERY_LITERAL_LIMIT));
        }
        self.at = start + length + 1;
        self.word = &self.text[start..start + length];
        Ok(Token::Text)
    }

    fn variable(&mut self) -> Result<Token, Refused> {
        self.at += 1;
        let start = self.at;
        self.name()?;
        self.word = &self.text[start..self.at];
        Ok(Token::Variable)
    }

    #[cold]
    fn not_xpath(&self, written: &str, meant: &str) -> Refused {
        refuse(self.text, self.at, "syntax", format!("`{written}` is not XPath; write `{meant}`"))
    }

    #[cold]
    fn comment(&self) -> Refused {
        refuse(self.text, self.at, "syntax", "comments `(: … :)` are not supported")
    }

    #[cold]
    fn stray_character(&self) -> Refused {
        let reason = match self.text[self.at..].chars().next() {
            Some('&') => "`&` is not allowed here; if the query is XML-escaped, unescape it".to_string(),
            Some('{') => "`{` is not allowed here; an expanded name is written `Q{uri}name`".to_string(),
            Some(c) => format!("the character {c:?} is not allowed here"),
            None => "the query is incomplete".to_string(),
        };
        refuse(self.text, self.at, "syntax", reason)
    }
}
