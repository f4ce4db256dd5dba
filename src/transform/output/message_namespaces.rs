//! The namespace declarations of a message, and the elements that have them.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use rustc_hash::FxHashSet;

use crate::document::Document;
use crate::ids::ElementId;
use crate::util::xml_chars as chars;

/// `xmlns:prefix="uri"`; the prefix is empty in `xmlns="uri"`.
pub struct Declaration<'a> {
    pub prefix: &'a [u8],
    pub uri: Cow<'a, [u8]>,
}

/// The declarations of one message, by element. Most messages have none, or all of them at the root.
pub struct MessageNamespaces<'a> {
    document: &'a Document,
    /// In document order.
    elements: Vec<(ElementId, Range<usize>)>,
    all: Vec<Declaration<'a>>,
}

impl<'a> MessageNamespaces<'a> {
    /// Finds the declarations by searching the source for `xmlns`.
    pub fn of(document: &'a Document) -> MessageNamespaces<'a> {
        let mut found = MessageNamespaces { document, elements: Vec::new(), all: Vec::new() };
        let mut last = ElementId::NONE;
        let end = document
            .envelope
            .map_or(document.source.len(), |root| document.element(root).span.start as usize);
        for place in memmem::find_iter(&document.source[..end], b"xmlns") {
            let after = document.elements.partition_point(|element| (element.span.start as usize) < place);
            let Some(element) = after.checked_sub(1).map(ElementId::from) else { continue };
            if element != last {
                found.read(element);
            }
            last = element;
        }
        found
    }

    fn read(&mut self, element: ElementId) {
        let start = self.all.len();
        for (name, value) in attributes(self.document, element) {
            if let Some(prefix) = declared_prefix(name)
                && prefix != b"xml"
                && let Some(uri) = read_value(value)
            {
                self.all.push(Declaration { prefix, uri });
            }
        }
        if self.all.len() > start {
            self.elements.push((element, start..self.all.len()));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The declarations of an element itself.
    pub fn own(&self, element: ElementId) -> &[Declaration<'a>] {
        match self.elements.binary_search_by_key(&element, |(declaring, _)| *declaring) {
            Ok(place) => &self.all[self.elements[place].1.clone()],
            Err(_) => &[],
        }
    }

    /// The declarations in scope at an element that its ancestors have.
    pub fn inherited(&self, element: ElementId) -> Vec<&Declaration<'a>> {
        let mut inherited = Vec::new();
        if self.is_empty() {
            return inherited;
        }
        let mut hidden: FxHashSet<&[u8]> =
            self.own(element).iter().map(|declaration| declaration.prefix).collect();
        let mut ancestor = self.document.element(element).parent;
        while ancestor.is_some() {
            inherited
                .extend(self.own(ancestor).iter().filter(|declaration| hidden.insert(declaration.prefix)));
            ancestor = self.document.element(ancestor).parent;
        }
        inherited
    }
}

/// The attributes in an element's start tag as they are written: name and value. Empty if the element comes from an
/// entity and not from the source.
pub fn attributes(document: &Document, element: ElementId) -> impl Iterator<Item = (&[u8], &[u8])> {
    let tag = name_in_source(document, element).map(|name| name.end);
    let source = document.source.as_slice();
    let mut at = tag.unwrap_or(source.len());
    std::iter::from_fn(move || {
        at += source[at..].iter().position(|&byte| !chars::is_space(byte))?;
        if matches!(source[at], b'/' | b'>') {
            return None;
        }
        let name = at..at + source[at..].iter().position(|&byte| byte == b'=' || chars::is_space(byte))?;
        let quote = name.end + source[name.end..].iter().position(|byte| matches!(byte, b'"' | b'\''))?;
        let value = quote + 1..quote + 1 + memchr::memchr(source[quote], &source[quote + 1..])?;
        at = value.end + 1;
        Some((&source[name], &source[value]))
    })
}

/// The range of an element's name in the source. `None` if the element comes from an entity.
pub fn name_in_source(document: &Document, element: ElementId) -> Option<Range<usize>> {
    let start = document.element(element).span.start as usize;
    let (b'<', tag) = document.source[start..].split_first()? else { return None };
    let ends = |byte: &u8| matches!(byte, b'/' | b'>') || chars::is_space(*byte);
    Some(start + 1..start + 1 + tag.iter().position(ends)?)
}

/// The prefix that an attribute of this name declares, if it is a namespace declaration.
pub fn declared_prefix(name: &[u8]) -> Option<&[u8]> {
    match name.strip_prefix(b"xmlns")? {
        [] => Some(b""),
        [b':', prefix @ ..] => Some(prefix),
        _ => None,
    }
}

/// The prefix of a name; empty if there is none.
pub fn prefix(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(b"", |colon| &name[..colon])
}

/// The value of an attribute as written: resolves references and normalises white space. `None` if it refers to an
/// entity of a DTD.
fn read_value(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !value.iter().any(|byte| matches!(byte, b'&' | b'\t' | b'\n' | b'\r')) {
        return Some(Cow::Borrowed(value));
    }
    let mut read = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'&' => {
                let end = memchr::memchr(b';', after)?;
                let character = referenced(&after[..end])?;
                read.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &after[end + 1..];
            }
            b'\r' if after.starts_with(b"\n") => {}
            b'\t' | b'\n' | b'\r' => read.push(b' '),
            byte => read.push(byte),
        }
    }
    Some(Cow::Owned(read))
}

/// The character of a character reference or predefined entity.
fn referenced(name: &[u8]) -> Option<char> {
    let number = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok()?;
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)
    };
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    }
}
