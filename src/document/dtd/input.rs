//! The text being read: a stack of entities, the tokens in it, errors with their position.

use std::ops::Deref;
use std::sync::Arc;

use crate::document::charset::{self, Charset, Stop};
use crate::error::{Exceeded, Position, ReadError};
use crate::limits::Limits;
use crate::util::xml_chars::{is_char, is_name_char, is_name_start, is_space};

/// An error without its position.
#[derive(Debug)]
pub(super) struct Problem {
    pub code: &'static str,
    pub reason: String,
    pub exceeded: Option<Exceeded>,
}

impl Problem {
    pub fn new(code: &'static str, reason: impl Into<String>) -> Problem {
        Problem { code, reason: reason.into(), exceeded: None }
    }

    pub fn limit(code: &'static str, what: &str, value: usize, limit: usize) -> Problem {
        Problem {
            code,
            reason: format!("{what}: {value} bytes where {limit} are allowed"),
            exceeded: Some(Exceeded { value: value as u64, limit: limit as u64 }),
        }
    }
}

/// Bounds the bytes that entities add to the text.
pub(super) struct Budget {
    pub spent: usize,
    limit: usize,
}

impl Budget {
    pub fn new(limits: &Limits) -> Budget {
        Budget { spent: 0, limit: limits.expansion }
    }

    /// Counts each inclusion of an entity, so the limit also bounds the work.
    pub fn spend(&mut self, bytes: usize) -> Result<(), Problem> {
        self.spent += bytes;
        if self.spent > self.limit {
            return Err(Problem::limit("expansion-limit", "entities expand too far", self.spent, self.limit));
        }
        Ok(())
    }
}

enum Text<'a> {
    Source(&'a str),
    Entity(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Source(text) => text,
            Text::Entity(text) => text,
        }
    }
}

/// One entity being read.
struct Frame<'a> {
    text: Text<'a>,
    at: usize,
    /// Its index among the parameter entities; `None` for the outermost frame.
    entity: Option<usize>,
    /// Whether this is the external subset or an external entity, where references are allowed inside
    /// declarations.
    external: bool,
}

pub(super) struct Input<'a> {
    /// The outermost text from its beginning; positions count in it.
    source: &'a [u8],
    /// The offset in `source` where the outermost frame begins.
    origin: usize,
    /// Whether the outermost frame ends before a byte that is not UTF-8.
    cut: bool,
    frames: Vec<Frame<'a>>,
    /// The offset in the outermost frame of the reference that is being expanded.
    entered: usize,
    limits: Limits,
}

impl<'a> Input<'a> {
    pub fn new(source: &'a [u8], origin: usize, external: bool, limits: &Limits) -> Input<'a> {
        let rest = source.get(origin..).unwrap_or(&[]);
        let (text, cut) = match std::str::from_utf8(rest) {
            Ok(text) => (text, false),
            Err(error) => (std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or(""), true),
        };
        let frame = Frame { text: Text::Source(text), at: 0, entity: None, external };
        Input { source, origin, cut, frames: vec![frame], entered: 0, limits: *limits }
    }

    fn top(&self) -> &Frame<'a> {
        &self.frames[self.frames.len() - 1]
    }

    fn top_mut(&mut self) -> &mut Frame<'a> {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn rest(&self) -> &str {
        let top = self.top();
        &top.text[top.at..]
    }

    /// The number of open texts; 1 is the outermost text alone.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    pub fn is_external(&self) -> bool {
        self.top().external
    }

    /// Whether line ends are not normalised yet; those of entities are.
    pub fn is_raw(&self) -> bool {
        self.depth() == 1
    }

    /// The offset in `source` that the outermost text has been read to.
    pub fn offset(&self) -> usize {
        self.origin + self.frames[0].at
    }

    /// Enters a parameter entity; the caller has checked that it is not open.
    pub fn enter(&mut self, entity: usize, text: Arc<str>, from_outside: bool, reference: usize) {
        if self.frames.len() == 1 {
            self.entered = reference;
        }
        let external = from_outside || self.is_external();
        self.frames.push(Frame { text: Text::Entity(text), at: 0, entity: Some(entity), external });
    }

    /// Leaves an entity at its end; returns its index among the parameter entities.
    pub fn leave(&mut self) -> Option<usize> {
        self.frames.pop().and_then(|frame| frame.entity)
    }

    /// Whether the innermost text has ended.
    pub fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub fn mark(&self) -> usize {
        self.top().at
    }

    /// Goes back to a mark in the same entity, to report an error there.
    pub fn back_to(&mut self, mark: usize) {
        self.top_mut().at = mark;
    }

    // --- tokens ---

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn starts_with(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    pub fn followed_by_space(&self, length: usize) -> bool {
        self.rest().as_bytes().get(length).is_some_and(|&byte| is_space(byte))
    }

    /// Whether a reference to a parameter entity begins here.
    pub fn at_parameter_reference(&self) -> bool {
        let mut chars = self.rest().chars();
        chars.next() == Some('%') && chars.next().is_some_and(is_name_start)
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.starts_with(token);
        if found {
            self.top_mut().at += token.len();
        }
        found
    }

    pub fn expect(&mut self, token: &str, place: &str) -> Result<(), ReadError> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}` {place}"))) }
    }

    /// White space of the innermost entity alone.
    pub fn eat_space(&mut self) -> bool {
        let count = self.rest().bytes().take_while(|&byte| is_space(byte)).count();
        self.top_mut().at += count;
        count > 0
    }

    /// The longest run of name characters, `Nmtoken`.
    pub fn nmtoken(&mut self, what: &str) -> Result<String, ReadError> {
        let rest = self.rest();
        let length = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected(what));
        }
        if length > self.limits.name {
            return Err(self.error(Problem::limit(
                "name-limit",
                "a name is too long",
                length,
                self.limits.name,
            )));
        }
        let token = rest[..length].to_owned();
        self.top_mut().at += length;
        Ok(token)
    }

    /// `Name`, and with namespaces in mind a `QName`.
    pub fn name(&mut self, what: &str) -> Result<String, ReadError> {
        if !self.peek().is_some_and(is_name_start) {
            return Err(self.unexpected(what));
        }
        let mark = self.mark();
        let name = self.nmtoken(what)?;
        let qualified = match name.split_once(':') {
            None => true,
            Some((prefix, local)) => {
                !prefix.is_empty()
                    && local.starts_with(|c| is_name_start(c) && c != ':')
                    && !local.contains(':')
            }
        };
        if !qualified {
            self.back_to(mark);
            return Err(self.error(Problem::new(
                "bad-name",
                format!("`{name}` is not a name: at most one colon, between two names"),
            )));
        }
        Ok(name)
    }

    /// `NCName`: entities, notations and targets of processing instructions have no prefix.
    pub fn plain_name(&mut self, what: &str) -> Result<String, ReadError> {
        let mark = self.mark();
        let name = self.name(what)?;
        if name.contains(':') {
            self.back_to(mark);
            return Err(
                self.error(Problem::new("bad-name", format!("`{name}`: a colon is not allowed in {what}")))
            );
        }
        Ok(name)
    }

    /// A literal in single or double quotes, which must end in the entity where they began.
    pub fn quoted(&mut self, what: &str) -> Result<String, ReadError> {
        match self.peek() {
            Some('"') => self.delimited("\"", "\"", what),
            Some('\'') => self.delimited("'", "'", what),
            _ => Err(self.unexpected(&format!("{what} in quotes"))),
        }
    }

    /// Text from `open`, which is here, to `close`; XML must allow every character in it.
    pub fn delimited(&mut self, open: &str, close: &str, what: &str) -> Result<String, ReadError> {
        let mark = self.mark();
        self.top_mut().at += open.len();
        let rest = self.rest();
        let Some(length) = rest.find(close) else {
            if self.depth() == 1 && self.cut {
                self.top_mut().at = self.top().text.len();
                return Err(self.unexpected(what));
            }
            self.back_to(mark);
            return Err(self.error(Problem::new("unclosed-declaration", format!("{what} is not closed"))));
        };
        if length > self.limits.text {
            let problem =
                Problem::limit("text-limit", &format!("{what} is too long"), length, self.limits.text);
            self.back_to(mark);
            return Err(self.error(problem));
        }
        let content = rest[..length].to_owned();
        if let Some(at) = content.find(|c| !is_char(c)) {
            self.top_mut().at += at;
            return Err(self.illegal_character());
        }
        self.top_mut().at += length + close.len();
        Ok(content)
    }

    /// Skips text of the innermost entity up to one of `stops`, and returns which of them; XML must allow
    /// every character.
    pub fn skip_to(&mut self, stops: &[&str]) -> Result<Option<usize>, ReadError> {
        loop {
            if let Some(stop) = stops.iter().position(|stop| self.starts_with(stop)) {
                return Ok(Some(stop));
            }
            match self.peek() {
                None => return Ok(None),
                Some(c) if is_char(c) => self.top_mut().at += c.len_utf8(),
                Some(_) => return Err(self.illegal_character()),
            }
        }
    }

    /// `TextDecl`, at the start of an external text.
    pub fn text_declaration(&mut self) -> Result<(), ReadError> {
        if !self.starts_with("<?xml") || !self.followed_by_space("<?xml".len()) {
            return Ok(());
        }
        self.eat("<?xml");
        self.eat_space();
        if self.eat("version") {
            let version = self.pseudo_attribute("the version")?;
            if !version
                .strip_prefix("1.")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
            {
                let reason = format!("`{version}` is not a version of XML 1");
                return Err(self.error(Problem::new("bad-version", reason)));
            }
            if !self.eat_space() {
                return Err(self.unexpected("white space and `encoding`"));
            }
        }
        self.expect("encoding", "in a text declaration")?;
        let encoding = self.pseudo_attribute("the encoding")?;
        if Charset::for_label(&encoding).is_none() {
            let reason = format!("the encoding `{encoding}` is not supported; use UTF-8");
            return Err(self.error(Problem::new("unsupported-encoding", reason)));
        }
        self.eat_space();
        self.expect("?>", "to end a text declaration")
    }

    fn pseudo_attribute(&mut self, what: &str) -> Result<String, ReadError> {
        self.eat_space();
        self.expect("=", &format!("before {what}"))?;
        self.eat_space();
        self.quoted(what)
    }

    // --- errors ---

    pub fn error(&self, problem: Problem) -> ReadError {
        let Problem { code, mut reason, exceeded } = problem;
        let offset = if self.depth() == 1 { self.frames[0].at } else { self.entered };
        if self.depth() > 1 {
            let top = self.top();
            let inside = Position::of(top.text.as_bytes(), top.at);
            reason.push_str(&format!(", at {inside} of the parameter entity this refers to"));
        }
        ReadError { code, reason, position: Position::of(self.source, self.origin + offset), exceeded }
    }

    /// An error: something else is found where `wanted` is expected.
    pub fn unexpected(&self, wanted: &str) -> ReadError {
        let problem = match self.peek() {
            Some(c) if !is_char(c) => return self.illegal_character(),
            Some(c) => Problem::new("bad-declaration", format!("`{c}` where {wanted} is expected")),
            None if self.depth() == 1 && self.cut => Problem::new("bad-utf8", "this is not UTF-8"),
            None => Problem::new("unclosed-declaration", format!("the text ends where {wanted} is expected")),
        };
        self.error(problem)
    }

    fn illegal_character(&self) -> ReadError {
        let code = self.peek().map_or(0, u32::from);
        self.error(Problem::new(
            "illegal-character",
            format!("the character U+{code:04X} is not allowed in XML"),
        ))
    }
}

/// An external entity's bytes as UTF-8: by its byte order mark, or by its text declaration.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, ReadError> {
    let error = |code, reason: String, text: &[u8], at| ReadError {
        code,
        reason,
        position: Position::of(text, at),
        exceeded: None,
    };
    if bytes.len() > limits.document {
        let exceeded = Some(Exceeded { value: bytes.len() as u64, limit: limits.document as u64 });
        let reason = format!("{} bytes where {} are allowed", bytes.len(), limits.document);
        return Err(ReadError { exceeded, ..error("document-limit", reason, bytes, 0) });
    }
    // Without a mark it is no document that begins with `<` and 0; what it is, the reader will say.
    let marked = charset::detect(bytes).ok().flatten().filter(|detected| detected.mark > 0);
    let declared = || {
        let charset = charset::declared_label(bytes).and_then(Charset::for_label);
        charset.filter(|charset| matches!(charset, Charset::Ascii | Charset::Legacy(_)))
    };
    let (text, charset) = match marked {
        Some(detected) => (&bytes[detected.mark..], detected.charset),
        None => (bytes, declared().unwrap_or(Charset::Utf8)),
    };
    if let Some(at) = text.iter().position(|byte| charset == Charset::Ascii && !byte.is_ascii()) {
        return Err(error("encoding-mismatch", "this is not ASCII, as it is declared".to_owned(), text, at));
    }
    let Some(mut decoder) = charset.decoder() else { return Ok(text.to_vec()) };
    let mut utf8 = Vec::new();
    if let (_, Stop::Undecodable) = decoder.decode(text, true, &mut utf8) {
        let (code, reason) = match charset {
            Charset::Legacy(_) => ("bad-encoding", "these bytes are not in the declared encoding"),
            _ => ("bad-utf16", "this is not UTF-16"),
        };
        return Err(error(code, reason.to_owned(), &utf8, utf8.len()));
    }
    Ok(utf8)
}

/// An external parameter entity's bytes as text, without its text declaration, line ends normalised.
pub(super) fn external_text(bytes: &[u8], limits: &Limits) -> Result<String, ReadError> {
    let decoded = decode(bytes, limits)?;
    let mut input = Input::new(&decoded, 0, true, limits);
    input.text_declaration()?;
    if input.cut {
        input.top_mut().at = input.top().text.len();
        return Err(input.unexpected("text"));
    }
    Ok(input.rest().replace("\r\n", "\n").replace('\r', "\n"))
}
