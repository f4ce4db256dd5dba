//! Entities that are not predefined, and attributes that a DTD adds or changes.
//!
//! An entity is *unread* if it is external, or if it is not declared but an external part of the DTD, which is never
//! fetched, may declare it. A reference to one leaves a hole in the message, so the message is refused; with
//! `Limits::skip_unread_entities` the reference is left out and counted, as SAX's `skippedEntity` does.
//! Other references to undeclared entities, and external entities in attribute values, are not well-formed.

use std::ops::Range;

use super::doctype::EntityContent;
use super::encoding::MAX_BYTES;
use super::read_error::ReadResult;
use super::references::Reference;
use super::scan::skip_value;
use super::written_names::WrittenNameId;
use super::{MessageParser, Suspended};
use crate::document::{Span, dtd};

/// An entity that is being read.
#[derive(Clone, Copy)]
pub(super) struct OpenEntity<'a> {
    entity: usize,
    text: &'a [u8],
    end: usize,
}

impl<'a> MessageParser<'a> {
    /// A reference in content, at `at`, to the entity whose name is at `name`; reading continues at
    /// the place given, in the entity's replacement text if it has one.
    pub fn enter_entity(&mut self, at: usize, name: Range<usize>, after: usize) -> ReadResult<usize> {
        let Some(OpenEntity { entity, text, end }) = self.enter(at, name, false)? else {
            return Ok(after);
        };
        self.suspended.push(Suspended { text: self.text, end: self.end, at: after, base: self.base, entity });
        self.reference = Some(self.source_span(at, after));
        (self.text, self.end, self.base) = (text, end, self.scratch.open.len());
        Ok(0)
    }

    /// Leaves an entity: continues after the reference to it.
    pub fn leave_entity(&mut self, outer: Suspended<'a>) -> usize {
        self.expanding[outer.entity] = false;
        (self.text, self.end, self.base) = (outer.text, outer.end, outer.base);
        if self.suspended.is_empty() {
            self.reference = None;
        }
        outer.at
    }

    /// Adds the replacement text of an entity, referred to at `at..after`, to the attribute value
    /// being read.
    pub fn expand_in_value(&mut self, at: usize, name: Range<usize>, after: usize) -> ReadResult<()> {
        let before = (self.text, self.end, self.reference);
        let mut open: Vec<(OpenEntity<'a>, usize)> = Vec::new();
        open.extend(self.enter(at, name, true)?.map(|entered| (entered, 0)));
        self.reference = Some(self.source_span(at, after));
        while let Some((entered, at)) = open.last_mut() {
            (self.text, self.end) = (entered.text, entered.end);
            // Quotes mean themselves here; < never does.
            let stop = skip_value(self.text, *at, b'<');
            self.document.values.extend_from_slice(&self.text[*at..stop]);
            *at = stop + 1;
            match self.text[stop] {
                b'\t' | b'\n' | b'\r' => self.document.values.push(b' '),
                b'<' => {
                    return Err(self.read_error(
                        "less-than-in-attribute",
                        "the entity brings < into a value",
                        stop,
                    ));
                }
                b'&' => {
                    let (reference, after) = self.reference_at(stop)?;
                    *at = after;
                    match reference {
                        Reference::Character(c) => {
                            let values = &mut self.document.values;
                            values.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        Reference::Entity { start, end } => {
                            open.extend(self.enter(stop, start..end, true)?.map(|entered| (entered, 0)));
                        }
                    }
                }
                _ => {
                    self.expanding[entered.entity] = false;
                    open.pop();
                }
            }
        }
        (self.text, self.end, self.reference) = before;
        Ok(())
    }

    /// The entity whose name is at `name`, marked as being read and paid for; `None` if it is skipped.
    fn enter(&mut self, at: usize, name: Range<usize>, in_value: bool) -> ReadResult<Option<OpenEntity<'a>>> {
        let name = &self.text[name];
        let shown = || String::from_utf8_lossy(name);
        let Some(doctype) = self.doctype.get() else {
            return Err(self.read_error(
                "undeclared-entity",
                format!("the entity {} is not declared", shown()),
                at,
            ));
        };
        let must_be_declared = self.standalone || !doctype.incomplete;
        let found = doctype.entity_ids.get(name);
        let Some(&entity) = found.filter(|&&id| !(must_be_declared && doctype.entities[id].outside)) else {
            if must_be_declared || found.is_some() {
                let reason = format!("the entity {} is not declared in the document itself", shown());
                return Err(self.read_error("undeclared-entity", reason, at));
            }
            return self.skip_unread(name, at);
        };
        let (text, end) = match &doctype.entities[entity].content {
            EntityContent::Internal(text, end) => (&text[..], *end),
            EntityContent::External if in_value => {
                let reason = format!("the external entity {} may not stand in a value", shown());
                return Err(self.read_error("external-entity", reason, at));
            }
            EntityContent::External => return self.skip_unread(name, at),
            EntityContent::Unparsed => {
                let reason = format!("the entity {} is not text and cannot be referred to", shown());
                return Err(self.read_error("unparsed-entity", reason, at));
            }
        };
        if self.expanding.is_empty() {
            self.expanding.resize(doctype.entities.len(), false);
        }
        if self.expanding[entity] {
            return Err(self.read_error(
                "entity-recursion",
                format!("the entity {} contains itself", shown()),
                at,
            ));
        }
        self.charge_expansion(end, at)?;
        self.expanding[entity] = true;
        Ok(Some(OpenEntity { entity, text, end }))
    }

    /// Leaves a reference to an unread entity out, or refuses the message.
    fn skip_unread(&mut self, name: &[u8], at: usize) -> ReadResult<Option<OpenEntity<'a>>> {
        if !self.limits.skip_unread_entities {
            let name = String::from_utf8_lossy(name);
            return Err(self.read_error("unread-entity", dtd::unread_entity(&name), at));
        }
        self.document.skipped_entities += 1;
        Ok(None)
    }

    /// Counts bytes that were not in the message: a few references can expand to many bytes.
    fn charge_expansion(&mut self, bytes: usize, at: usize) -> ReadResult<()> {
        self.expanded += bytes;
        let (value, limit) = (self.expanded, self.limits.expansion.min(MAX_BYTES));
        if value > limit {
            return Err(self.exceeded(
                "expansion-limit",
                "bytes from entities and defaults",
                at,
                value,
                limit,
            ));
        }
        Ok(())
    }

    /// Gives the tag at `start`, of an element called `name`, the defaults of its attributes, and
    /// makes tokens of the values that are declared to be.
    #[cold]
    pub fn apply_declarations(
        &mut self,
        name: WrittenNameId,
        start: usize,
        attributes: usize,
    ) -> ReadResult<()> {
        let Some(doctype) = self.doctype.get() else {
            return Ok(());
        };
        for (index, &id) in self.scratch.written.iter().enumerate() {
            if doctype.tokenised.contains(&(name, id)) {
                let value = &mut self.document.attributes[attributes + index].value;
                *value = collapse_spaces(*value, &mut self.document.values);
            }
        }
        for (id, value, _) in &mut self.scratch.declared {
            if doctype.tokenised.contains(&(name, *id)) {
                *value = collapse_spaces(*value, &mut self.document.values);
            }
        }
        for &(id, value) in doctype.defaults.get(&name).map_or(&[][..], |defaults| defaults) {
            if !self.scratch.names.was_written(id, self.scratch.tag) {
                self.charge_expansion(self.scratch.names.bytes(id).len() + value.len(), start)?;
                self.add_attribute(id, value, start)?;
                self.check_counts(start, attributes)?;
            }
        }
        self.scratch.written.clear();
        Ok(())
    }
}

/// A value without spaces at its ends, and with single ones between tokens. Only spaces: other white
/// space in a normalised value was asked for by character reference.
fn collapse_spaces(value: Span, values: &mut Vec<u8>) -> Span {
    let bytes = value.of(values);
    let is_collapsed =
        !bytes.starts_with(b" ") && !bytes.ends_with(b" ") && !bytes.windows(2).any(|w| w == b"  ");
    if is_collapsed {
        return value;
    }
    let start = values.len();
    for at in value.start as usize..value.end as usize {
        if values[at] != b' ' || values.len() > start && values[values.len() - 1] != b' ' {
            values.push(values[at]);
        }
    }
    if values.len() > start && values[values.len() - 1] == b' ' {
        values.pop();
    }
    Span { start: start as u32, end: values.len() as u32 }
}
