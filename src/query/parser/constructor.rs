//! Constructed elements: `<name attribute="…">…</name>`, as XQuery reads them.
//!
//! Elements are parsed by character, not by token: `Lexer::at` is the offset of the next character.

use super::Parser;
use super::flwor::attribute_path;
use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use crate::query::ast::{Axis, Name, NameTest, Node, Path, Start};
use crate::query::flwor::Content;
use crate::query::namespaces::XML_URI;
use crate::query::transformation::{Attribute, Element, PrefixedName};
use crate::util::xml_chars;

/// A constructed element.
type Constructed = Element<Content, Content>;

/// An attribute whose value is not parsed yet: that needs the namespaces of the whole tag.
struct RawAttribute<'a> {
    at: usize,
    prefix: &'a str,
    local: &'a str,
    /// The offset of its value, after the quote.
    value: usize,
    quote: u8,
}

impl<'a> RawAttribute<'a> {
    /// The prefix that it declares, if it is a namespace declaration.
    fn declared_prefix(&self) -> Option<&'a str> {
        match (self.prefix, self.local) {
            ("", "xmlns") => Some(""),
            ("xmlns", prefix) => Some(prefix),
            _ => None,
        }
    }
}

impl<'a> Parser<'a> {
    /// Whether the token is the `<` of a tag, and not a comparison.
    pub(super) fn at_constructor(&self) -> bool {
        if !matches!(self.lexer.token, Token::Compare(_)) {
            return false;
        }
        let mut characters = self.lexer.text[self.lexer.start..].chars();
        characters.next() == Some('<')
            && characters.next().is_some_and(|c| matches!(c, '!' | '?' | '/') || xml_chars::is_name_start(c))
    }

    /// Parses an element that is surrounded by tokens.
    pub(super) fn constructor(&mut self) -> Result<Constructed, Refused> {
        self.lexer.at = self.lexer.start;
        let element = self.element()?;
        self.lexer.advance()?;
        Ok(element)
    }

    /// `element = "<" name attribute* ("/>" | ">" content "</" name ">")`
    fn element(&mut self) -> Result<Constructed, Refused> {
        self.not_an_element()?;
        let start = self.lexer.at;
        self.lexer.start = start;
        self.count()?;
        self.enter()?;
        self.lexer.at += 1;
        let (prefix, local) = self.qualified_name()?;
        let (written, empty) = self.tag()?;
        let after = self.lexer.at;

        let mark = self.construction.prefixes.mark();
        self.declarations(&written)?;
        self.use_prefix(prefix, start + 1)?;
        let (attributes, names) = self.attributes(&written)?;
        let declared = self.construction.prefixes.since(mark).iter();
        let mut namespaces: Vec<_> =
            declared.map(|(prefix, uri)| (prefix.to_string(), uri.clone())).collect();
        namespaces.sort_unstable();
        self.lexer.at = after;
        self.elements += 1;
        let content = if empty { Vec::new() } else { self.content(start, names)? };
        self.elements -= 1;
        if !empty {
            self.end_tag(start, prefix, local)?;
        }
        self.construction.prefixes.leave(mark);
        self.leave();
        let name = PrefixedName { prefix: prefix.to_string(), local: local.to_string() };
        Ok(Element { name, namespaces, attributes, content })
    }

    /// Binds the namespaces that a tag declares.
    fn declarations(&mut self, written: &[RawAttribute<'a>]) -> Result<(), Refused> {
        for (place, attribute) in written.iter().enumerate() {
            let Some(prefix) = attribute.declared_prefix() else { continue };
            if written[..place].iter().any(|before| before.declared_prefix() == Some(prefix)) {
                return Err(self.duplicate(attribute.at, attribute.local));
            }
            self.declare(prefix, attribute)?;
        }
        Ok(())
    }

    /// Parses the attributes of a tag; returns them and their expanded names, which must differ.
    fn attributes(
        &mut self,
        written: &[RawAttribute<'a>],
    ) -> Result<(Vec<Attribute<Content>>, Vec<Name>), Refused> {
        let (mut attributes, mut names) = (Vec::new(), Vec::new());
        for attribute in written.iter().filter(|attribute| attribute.declared_prefix().is_none()) {
            self.lexer.start = attribute.at;
            self.count()?;
            let name = self.attribute_name(attribute)?;
            if names.contains(&name) {
                return Err(self.duplicate(attribute.at, attribute.local));
            }
            names.push(name);
            let (prefix, local) = (attribute.prefix.to_string(), attribute.local.to_string());
            let value = self.value(attribute)?;
            attributes.push(Attribute { name: PrefixedName { prefix, local }, value });
        }
        Ok((attributes, names))
    }

    /// Refuses comments, processing instructions and the like.
    fn not_an_element(&self) -> Result<(), Refused> {
        let at = self.lexer.at;
        let refusal = match self.lexer.peek(1) {
            Some(b'!') if self.starts_with("<!--") => ("constructor", hints::COMMENT),
            Some(b'!') if self.starts_with("<![CDATA[") => ("template", hints::TEXT_ALONE),
            Some(b'!') => ("constructor", hints::DECLARATION),
            Some(b'?') => ("constructor", hints::INSTRUCTION),
            Some(b'/') => ("mismatched-tag", hints::END_TAG_ALONE),
            _ => return Ok(()),
        };
        Err(self.refuse(at, refusal.0, refusal.1))
    }

    /// `prefix:local` or `local`
    fn qualified_name(&mut self) -> Result<(&'a str, &'a str), Refused> {
        let first = self.lexer.ncname()?;
        if self.peek() != Some(b':') {
            return Ok(("", first));
        }
        self.lexer.at += 1;
        Ok((first, self.lexer.ncname()?))
    }

    /// Parses the rest of a tag after its name: its raw attributes, and whether it ends with `/>`.
    fn tag(&mut self) -> Result<(Vec<RawAttribute<'a>>, bool), Refused> {
        let mut written = Vec::new();
        loop {
            let spaced = self.peek().is_some_and(xml_chars::is_space);
            self.lexer.skip_space();
            if self.starts_with("/>") {
                self.lexer.at += 2;
                return Ok((written, true));
            }
            if self.starts_with(">") {
                self.lexer.at += 1;
                return Ok((written, false));
            }
            let at = self.lexer.at;
            if !spaced || self.peek().is_none() {
                let what =
                    if self.peek().is_none() { "the query ends" } else { "another character is found" };
                let reason = format!("{what} where an attribute, `>` or `/>` is expected");
                return Err(self.refuse(at, "syntax", reason));
            }
            let (prefix, local) = self.qualified_name()?;
            self.lexer.skip_space();
            if self.peek() != Some(b'=') {
                return Err(self.refuse(self.lexer.at, "syntax", "an attribute is written `name=\"value\"`"));
            }
            self.lexer.at += 1;
            self.lexer.skip_space();
            let Some(quote @ (b'"' | b'\'')) = self.peek() else {
                return Err(self.refuse(self.lexer.at, "syntax", "an attribute value must be in quotes"));
            };
            let value = self.lexer.at + 1;
            self.lexer.at = self.value_end(value, quote)? + 1;
            written.push(RawAttribute { at, prefix, local, value, quote });
        }
    }

    /// The offset where the value that starts at `start` ends. Expressions in braces may contain quotes.
    fn value_end(&self, start: usize, quote: u8) -> Result<usize, Refused> {
        let bytes = self.lexer.text.as_bytes();
        let unclosed = |at: usize, quote: u8| {
            let reason = format!("the value that starts here is not closed by `{}`", quote as char);
            self.refuse(at, "unterminated-literal", reason)
        };
        let mut at = start;
        let mut braces = 0;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1).copied();
            match byte {
                b'{' | b'}' if braces == 0 && next == Some(byte) => at += 1,
                b'{' if braces > 0 && bytes[at - 1] == b'Q' => {
                    let length = memchr::memchr(b'}', &bytes[at..]);
                    at += length.ok_or_else(|| unclosed(at, b'}'))?;
                }
                b'{' => braces += 1,
                b'}' if braces > 0 => braces -= 1,
                b'"' | b'\'' if braces > 0 => {
                    let length = memchr::memchr(byte, &bytes[at + 1..]);
                    at += length.ok_or_else(|| unclosed(at, byte))? + 1;
                }
                _ if byte == quote && braces == 0 => match next {
                    Some(next) if next == quote => at += 1,
                    _ => return Ok(at),
                },
                _ => {}
            }
            at += 1;
        }
        Err(unclosed(start - 1, quote))
    }

    /// Binds a declared prefix, unless it is bound to the same URI already.
    fn declare(&mut self, prefix: &'a str, attribute: &RawAttribute<'a>) -> Result<(), Refused> {
        self.lexer.start = attribute.at;
        self.count()?;
        let uri = match self.value(attribute)?.as_slice() {
            [] => String::new(),
            [Content::Text(uri)] => uri.clone(),
            _ => return Err(self.refuse(attribute.at, "namespace", hints::COMPUTED_NAMESPACE)),
        };
        let reserved = prefix == "xmlns"
            || (prefix == "xml") != (uri == XML_URI)
            || uri == "http://www.w3.org/2000/xmlns/";
        if reserved || (uri.is_empty() && !prefix.is_empty()) || uri.contains(['{', '}']) {
            let reason = format!("the prefix `{prefix}` cannot be bound to {uri:?}");
            return Err(self.refuse(attribute.at, "namespace", reason));
        }
        let prefixes = &mut self.construction.prefixes;
        if prefix != "xml" && !prefixes.binds(prefix, &uri) {
            prefixes.bind(prefix, uri);
        }
        Ok(())
    }

    /// Declares a prefix, unless an enclosing constructed element does.
    fn use_prefix(&mut self, prefix: &'a str, at: usize) -> Result<(), Refused> {
        if prefix.is_empty() || prefix == "xml" || self.construction.prefixes.uri(prefix).is_some() {
            return Ok(());
        }
        let uri = self.uri(prefix, at)?.to_string();
        self.charge_expansion(uri.len(), at)?;
        self.construction.prefixes.bind(prefix, uri);
        Ok(())
    }

    fn attribute_name(&mut self, attribute: &RawAttribute<'a>) -> Result<Name, Refused> {
        self.use_prefix(attribute.prefix, attribute.at)?;
        let uri = match attribute.prefix {
            "" => "",
            prefix => self.uri(prefix, attribute.at)?,
        };
        Ok(Name { uri: uri.to_string(), local: attribute.local.to_string() })
    }

    fn value(&mut self, attribute: &RawAttribute<'a>) -> Result<Vec<Content>, Refused> {
        let mut parts = Vec::new();
        let mut text = String::new();
        self.lexer.at = attribute.value;
        while let Some(byte) = self.peek() {
            match byte {
                byte if byte == attribute.quote => {
                    if self.lexer.peek(1) != Some(byte) {
                        break;
                    }
                    text.push(byte.into());
                    self.lexer.at += 2;
                }
                b'"' | b'\'' => {
                    text.push(byte.into());
                    self.lexer.at += 1;
                }
                b'{' | b'}' => match self.doubled_brace()? {
                    Some(brace) => text.push(brace),
                    None => {
                        if !text.is_empty() {
                            parts.push(Content::Text(std::mem::take(&mut text)));
                        }
                        self.lexer.at += 1;
                        parts.push(self.enclosed_part()?);
                    }
                },
                b'&' => text.push(self.reference()?),
                b'<' => {
                    let reason = "a `<` in an attribute value is written `&lt;`";
                    return Err(self.refuse(self.lexer.at, "syntax", reason));
                }
                b'\t' | b'\n' | b'\r' => {
                    self.line_end();
                    text.push(' ');
                }
                _ => self.copy_plain(&mut text, b"\"'{}&<\t\n\r")?,
            }
        }
        if !text.is_empty() {
            parts.push(Content::Text(text));
        }
        Ok(parts)
    }

    /// Parses the content up to the end tag. `start` is the offset of the start tag.
    fn content(&mut self, start: usize, mut names: Vec<Name>) -> Result<Vec<Content>, Refused> {
        let mut content = Vec::new();
        let mut text = Text::default();
        let mut attributes = 0;
        loop {
            match self.peek() {
                None => return Err(self.refuse(start, "unclosed-element", hints::UNCLOSED)),
                Some(b'<') if self.starts_with("<![CDATA[") => self.section(&mut text)?,
                Some(b'<') => {
                    text.finish(&mut content);
                    if self.starts_with("</") {
                        return Ok(content);
                    }
                    content.push(Content::Element(Box::new(self.element()?)));
                }
                Some(b'{' | b'}') => match self.doubled_brace()? {
                    Some(brace) => text.push(brace),
                    None => {
                        text.finish(&mut content);
                        let at = self.lexer.at;
                        self.lexer.at += 1;
                        let item = self.enclosed()?;
                        if let Some(path) = attribute_path(&item) {
                            if content.len() > attributes {
                                return Err(self.refuse(at, "attribute-place", hints::LATE_ATTRIBUTE));
                            }
                            self.new_attribute(path, &mut names, at)?;
                            attributes += 1;
                        }
                        content.push(item);
                    }
                },
                Some(b'&') => text.push(self.reference()?),
                Some(b'\r') => {
                    self.line_end();
                    text.characters.push('\n');
                }
                Some(_) => self.copy_plain(&mut text.characters, b"<{}&\r")?,
            }
        }
    }

    /// `<![CDATA[…]]>`
    fn section(&mut self, text: &mut Text) -> Result<(), Refused> {
        let start = self.lexer.at;
        self.lexer.at += "<![CDATA[".len();
        let Some(length) = self.lexer.text[self.lexer.at..].find("]]>") else {
            return Err(self.refuse(start, "syntax", "the CDATA section is not closed by `]]>`"));
        };
        let section = self.check_characters(&self.lexer.text[self.lexer.at..][..length])?;
        text.characters.push_str(&section.replace("\r\n", "\n").replace('\r', "\n"));
        text.kept = true;
        self.lexer.at += length + "]]>".len();
        Ok(())
    }

    /// Refuses an attribute of the bound element if the constructed element already has it.
    fn new_attribute(&self, path: &Path, names: &mut Vec<Name>, at: usize) -> Result<(), Refused> {
        let ([step], Start::Variable(_)) = (path.steps.as_slice(), path.start) else { return Ok(()) };
        let (Axis::Child, Node::Attribute(NameTest::Name(name))) = (step.axis, &step.node) else {
            return Ok(());
        };
        if names.contains(name) {
            return Err(self.duplicate(at, &name.local));
        }
        names.push(name.clone());
        Ok(())
    }

    /// Parses `</name>`, which must have the name of the start tag at `start`.
    fn end_tag(&mut self, start: usize, prefix: &str, local: &str) -> Result<(), Refused> {
        let at = self.lexer.at;
        self.lexer.at += 2;
        if self.qualified_name()? != (prefix, local) {
            let colon = if prefix.is_empty() { "" } else { ":" };
            let line = 1 + self.lexer.text[..start].matches('\n').count();
            let reason =
                format!("`</{prefix}{colon}{local}>` is expected here; its start tag is in line {line}");
            return Err(self.refuse(at, "mismatched-tag", reason));
        }
        self.lexer.skip_space();
        if self.peek() != Some(b'>') {
            return Err(self.refuse(self.lexer.at, "syntax", "`>` is expected here"));
        }
        self.lexer.at += 1;
        Ok(())
    }

    #[cold]
    fn duplicate(&self, at: usize, name: &str) -> Refused {
        self.refuse(at, "duplicate-attribute", format!("the element has two attributes `{name}`"))
    }
}

/// Text between tags and braces. Text of white space only is dropped, unless it contains a reference or a
/// CDATA section.
#[derive(Default)]
struct Text {
    characters: String,
    kept: bool,
}

impl Text {
    fn push(&mut self, character: char) {
        self.characters.push(character);
        self.kept = true;
    }

    fn finish(&mut self, content: &mut Vec<Content>) {
        let Text { characters, kept } = std::mem::take(self);
        if !characters.is_empty() && (kept || !characters.bytes().all(xml_chars::is_space)) {
            content.push(Content::Text(characters));
        }
    }
}
