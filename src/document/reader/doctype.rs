//! `<!DOCTYPE name SYSTEM "…" [ … ]>`. An external subset is never fetched; an internal subset is refused
//! unless `Limits::internal_subset` allows it.

use std::collections::{HashMap, HashSet};

use super::MessageParser;
use super::read_error::ReadResult;
use super::scan::{NAME, PADDING, SPACE, is, skip};
use super::written_names::WrittenNameId;
use crate::document::Span;
use crate::document::dtd::{self, AttributeDeclaration, Dtd, EntityKind};

/// A document type declaration: the parts that the rest of the document needs.
#[derive(Default)]
pub(super) struct Doctype {
    /// Whether there are declarations that were not read: an entity may be declared in them.
    pub incomplete: bool,
    pub entities: Vec<Entity>,
    pub entity_ids: HashMap<Box<[u8]>, usize>,
    /// By element: its attributes that have a default, and the default in `Document::values`.
    pub defaults: HashMap<WrittenNameId, Vec<(WrittenNameId, Span)>>,
    /// The pairs of element and attribute whose values are tokens.
    pub tokenised: HashSet<(WrittenNameId, WrittenNameId)>,
}

pub(super) struct Entity {
    pub content: EntityContent,
    /// Declared in a parameter entity: a standalone document may not refer to it.
    pub outside: bool,
}

pub(super) enum EntityContent {
    /// The replacement text, padded, and its length without the padding.
    Internal(Vec<u8>, usize),
    External,
    Unparsed,
}

impl MessageParser<'_> {
    /// Reads the declaration at `start`; returns the offset after it.
    pub fn doctype(&mut self, start: usize) -> ReadResult<usize> {
        let mut doctype = Doctype::default();
        let mut at = self.require_space(start + "<!DOCTYPE".len())?;
        let name_end = skip(self.text, at, NAME);
        if name_end == at {
            return Err(self.unexpected("bad-doctype", "the name of the root element is expected", at));
        }
        self.name_between(at, name_end)?;
        at = skip(self.text, name_end, SPACE);
        let keyword = &self.text[at..at + 6];
        if keyword == b"SYSTEM" || keyword == b"PUBLIC" {
            if at == name_end {
                return Err(self.read_error("bad-doctype", "white space is expected", at));
            }
            doctype.incomplete = true;
            let mut after = self.require_space(at + 6)?;
            if keyword == b"PUBLIC" {
                let end = self.literal(after)?;
                let is_public = |b: &u8| b.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(b);
                if !self.text[after + 1..end - 1].iter().all(is_public) {
                    let reason = "this character is not allowed in a public identifier";
                    return Err(self.read_error("bad-doctype", reason, after));
                }
                after = self.require_space(end)?;
            }
            at = skip(self.text, self.literal(after)?, SPACE);
        }
        if self.text[at] == b'[' {
            if !self.limits.internal_subset {
                return Err(self.read_error(
                    "internal-subset",
                    "an internal DTD subset is not allowed; switch internal_subset on to read it",
                    at,
                ));
            }
            let prolog = dtd::Prolog { standalone: self.standalone, external: doctype.incomplete };
            let (dtd, end) = dtd::read_internal(&self.source[..self.end], at + 1, prolog, self.limits)?;
            self.keep_declarations(&mut doctype, dtd, at)?;
            at = skip(self.text, end + 1, SPACE);
        }
        if self.text[at] != b'>' {
            return Err(self.unexpected(
                "bad-doctype",
                "> is expected at the end of the document type declaration",
                at,
            ));
        }
        let _ = self.doctype.set(doctype);
        Ok(at + 1)
    }

    /// Keeps the entities and attribute declarations of a DTD, with names as the reader knows them.
    fn keep_declarations(&mut self, doctype: &mut Doctype, dtd: Dtd, at: usize) -> ReadResult<()> {
        doctype.incomplete |= dtd.has_parameter_references;
        self.expanded = dtd.expanded;
        self.document.skipped_entities += dtd.skipped_entities;
        for (name, entity) in dtd.entities.iter() {
            let content = match &entity.kind {
                EntityKind::Internal(text) => {
                    let mut padded = Vec::with_capacity(text.len() + PADDING);
                    padded.extend_from_slice(text.as_bytes());
                    padded.resize(text.len() + PADDING, 0);
                    EntityContent::Internal(padded, text.len())
                }
                EntityKind::External(_) => EntityContent::External,
                EntityKind::Unparsed(..) => EntityContent::Unparsed,
            };
            doctype.entity_ids.insert(name.as_bytes().into(), doctype.entities.len());
            doctype.entities.push(Entity { content, outside: entity.outside });
        }
        for (element, attributes) in dtd.attributes.iter() {
            let element = self.declared_name(element, at)?;
            for AttributeDeclaration { name, kind, default } in attributes {
                let attribute = self.declared_name(name, at)?;
                if kind.is_tokenized() {
                    doctype.tokenised.insert((element, attribute));
                }
                if let Some(value) = default.value() {
                    let start = self.document.values.len() as u32;
                    self.document.values.extend_from_slice(value.as_bytes());
                    let span = Span { start, end: self.document.values.len() as u32 };
                    doctype.defaults.entry(element).or_default().push((attribute, span));
                }
            }
        }
        self.declares_attributes = !(doctype.defaults.is_empty() && doctype.tokenised.is_empty());
        Ok(())
    }

    fn declared_name(&mut self, name: &str, at: usize) -> ReadResult<WrittenNameId> {
        let id = self.scratch.names.add_bytes(name.as_bytes(), self.vocabulary);
        id.map_err(|reason| self.read_error("bad-name", format!("{name}: {reason}"), at))
    }

    fn require_space(&self, at: usize) -> ReadResult<usize> {
        if is(self.text[at], SPACE) {
            return Ok(skip(self.text, at, SPACE));
        }
        Err(self.unexpected("bad-doctype", "white space is expected", at))
    }

    /// Reads a literal in quotes at `at`; returns the offset after it.
    fn literal(&self, at: usize) -> ReadResult<usize> {
        let quote = self.text[at];
        if quote != b'"' && quote != b'\'' {
            return Err(self.unexpected("bad-doctype", "an identifier in quotes is expected", at));
        }
        match memchr::memchr(quote, &self.text[at + 1..self.end]) {
            Some(length) => Ok(at + length + 2),
            None => Err(self.read_error("truncated", "the identifier does not end", at)),
        }
    }
}
