//! Start tags: names, attributes, namespaces.

use super::read_error::ReadResult;
use super::references::Reference;
use super::scan::{NAME, SPACE, is, skip, skip_name, skip_value};
use super::written_names::{PrefixId, WrittenKind, WrittenNameId};
use super::{MessageParser, Open};
use crate::document::{Attribute, Element, Span};
use crate::ids::{ElementId, NameId, TagPathId};

impl MessageParser<'_> {
    /// Reads `<name …>` or `<name …/>` at `start`; returns the offset after it.
    #[inline]
    pub fn start_tag(&mut self, start: usize) -> ReadResult<usize> {
        let text = self.text;
        let (name, name_end) = self.name(start + 1)?;
        let attributes_start = self.document.attributes.len();
        self.scratch.tag += 1;
        let mut at = name_end;
        loop {
            let byte = text[at];
            if byte == b'>' || byte == b'/' {
                break;
            }
            if !is(byte, SPACE) {
                return Err(self.unexpected("bad-tag", "white space, > or /> is expected", at));
            }
            at = skip(text, at + 1, SPACE);
            if is(text[at], NAME) {
                at = self.attribute(at)?;
                self.check_counts(start, attributes_start)?;
            }
        }
        let empty = text[at] == b'/';
        if empty && text[at + 1] != b'>' {
            return Err(self.unexpected("bad-tag", "> is expected after /", at + 1));
        }
        let after = at + if empty { 2 } else { 1 };

        let bindings = self.scratch.namespaces.mark();
        if self.declares_attributes {
            self.apply_declarations(name, start, attributes_start)?;
        }
        if !self.scratch.declared.is_empty() {
            self.declare_namespaces()?;
        }
        if !self.scratch.prefixed.is_empty() {
            self.resolve_prefixed()?;
        }
        let span = self.source_span(start, after);
        let (element, tag_path) = self.element(name, start, attributes_start, span)?;
        let (name_at, name_len) = (start as u32 + 1, (name_end - start - 1) as u32);
        self.scratch.open.push(Open { element, tag_path, name_at, name_len, bindings });
        if empty {
            self.close(after);
        }
        Ok(after)
    }

    /// Adds the element whose tag at `start` has been read and its namespaces bound.
    #[inline(always)]
    fn element(
        &mut self,
        name: WrittenNameId,
        start: usize,
        attributes_start: usize,
        span: Span,
    ) -> ReadResult<(ElementId, TagPathId)> {
        let prefix = self.scratch.names.entry(name).prefix;
        let uri = self.scratch.namespaces.uri(prefix);
        if uri.is_none() {
            return Err(self.unbound(name, start + 1));
        }
        let (depth, limit) = (self.scratch.open.len() + 1, self.limits.depth);
        if depth > limit {
            return Err(self.exceeded("depth-limit", "levels of nested elements", start, depth, limit));
        }
        let (parent, parent_path) = match self.scratch.open.last() {
            Some(open) => (open.element, open.tag_path),
            None => (ElementId::NONE, TagPathId::NONE),
        };
        let name = self.scratch.names.resolve(name, uri, self.vocabulary);
        let tag_path = self.vocabulary.tag_path(parent_path, name);
        let node = self.next_node();
        let id = ElementId::from(self.document.elements.len());
        let empty_at = |place: usize| Span { start: place as u32, end: place as u32 };
        self.document.elements.push(Element {
            name,
            parent,
            end: ElementId(id.0 + 1),
            tag_path,
            node,
            depth: depth as u32,
            attributes_start: attributes_start as u32,
            texts: empty_at(self.document.texts.len()),
            text: empty_at(self.document.text.len()),
            span,
        });
        Ok((id, tag_path))
    }

    /// The name at `at`, and the offset after it.
    #[inline(always)]
    fn name(&mut self, at: usize) -> ReadResult<(WrittenNameId, usize)> {
        let end = skip_name(self.text, at);
        Ok((self.name_between(at, end)?, end))
    }

    #[inline(always)]
    pub fn name_between(&mut self, at: usize, end: usize) -> ReadResult<WrittenNameId> {
        let len = end - at;
        if len > self.limits.name {
            return Err(self.exceeded("name-limit", "bytes in a name", at, len, self.limits.name));
        }
        match self.scratch.names.find(self.text, at, len) {
            Some(id) => Ok(id),
            None => self.new_name(at, len),
        }
    }

    #[cold]
    fn new_name(&mut self, at: usize, len: usize) -> ReadResult<WrittenNameId> {
        if len == 0 {
            return Err(self.unexpected("bad-tag", "a name is expected; write a literal < as &lt;", at));
        }
        let id = self.scratch.names.add(self.text, at, len, self.vocabulary);
        id.map_err(|reason| self.read_error("bad-name", reason, at))
    }

    /// Reads `name="value"` at `start`; returns the offset after it.
    #[inline(always)]
    fn attribute(&mut self, start: usize) -> ReadResult<usize> {
        let text = self.text;
        let (id, mut at) = self.name(start)?;
        if text[at] != b'=' {
            at = skip(text, at, SPACE);
            if text[at] != b'=' {
                return Err(self.unexpected(
                    "bad-attribute",
                    "= is expected after the name of an attribute",
                    at,
                ));
            }
        }
        at += 1;
        if is(text[at], SPACE) {
            at = skip(text, at, SPACE);
        }
        let quote = text[at];
        if quote != b'"' && quote != b'\'' {
            return Err(self.unexpected("bad-attribute", "a value in quotes is expected", at));
        }
        let value_at = at + 1;
        at = skip_value(text, value_at, quote);
        let value = if text[at] == quote {
            self.value_span(value_at, at)
        } else {
            let value;
            (value, at) = self.normalise_value(value_at, at, quote)?;
            value
        };
        if value.len() > self.limits.text {
            let (value, limit) = (value.len(), self.limits.text);
            return Err(self.exceeded("text-limit", "bytes in an attribute value", value_at, value, limit));
        }
        self.add_attribute(id, value, start)?;
        Ok(at + 1)
    }

    #[inline(always)]
    pub fn add_attribute(&mut self, id: WrittenNameId, value: Span, at: usize) -> ReadResult<()> {
        if !self.scratch.names.mark_written(id, self.scratch.tag) {
            return Err(self.duplicate(id, at));
        }
        let entry = self.scratch.names.entry(id);
        if self.declares_attributes && !matches!(entry.kind, WrittenKind::Declares(_)) {
            self.scratch.written.push(id);
        }
        match entry.kind {
            WrittenKind::Plain => self.document.attributes.push(Attribute { name: entry.plain, value }),
            WrittenKind::Prefixed => {
                self.scratch.prefixed.push((self.document.attributes.len() as u32, id, at as u32));
                self.document.attributes.push(Attribute { name: NameId::NONE, value });
            }
            WrittenKind::Declares(_) => self.scratch.declared.push((id, value, at as u32)),
        }
        Ok(())
    }

    /// Normalises the value that starts at `start` and is literal up to `stop`, where a reference, white
    /// space or an error is. Returns the value and the offset of the closing quote.
    #[cold]
    fn normalise_value(&mut self, start: usize, stop: usize, quote: u8) -> ReadResult<(Span, usize)> {
        let text = self.text;
        let value_start = self.document.values.len();
        self.document.values.extend_from_slice(&text[start..stop]);
        let mut at = stop;
        while text[at] != quote {
            match text[at] {
                // `\r\n` is one line end.
                b'\r' if text[at + 1] == b'\n' && self.reference.is_none() => at += 1,
                b'\r' | b'\n' | b'\t' => {
                    self.document.values.push(b' ');
                    at += 1;
                }
                b'&' => {
                    let (reference, after) = self.reference_at(at)?;
                    match reference {
                        Reference::Character(c) => {
                            let values = &mut self.document.values;
                            values.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        Reference::Entity { start, end } => self.expand_in_value(at, start..end, after)?,
                    }
                    at = after;
                }
                b'<' => {
                    return Err(self.read_error(
                        "less-than-in-attribute",
                        "< is not allowed in a value; write &lt;",
                        at,
                    ));
                }
                _ => return Err(self.read_error("truncated", "the attribute value does not end", at)),
            }
            let from = at;
            at = skip_value(text, at, quote);
            self.document.values.extend_from_slice(&text[from..at]);
        }
        let end = self.document.values.len() as u32;
        Ok((Span { start: value_start as u32, end }, at))
    }

    /// Refuses the tag at `start` at its first attribute or declaration past the limit.
    #[inline(always)]
    pub fn check_counts(&self, start: usize, attributes_start: usize) -> ReadResult<()> {
        let (count, limit) = (self.document.attributes.len() - attributes_start, self.limits.attributes);
        if count > limit {
            return Err(self.exceeded("attributes-limit", "attributes", start, count, limit));
        }
        let (count, limit) = (self.scratch.declared.len(), self.limits.namespaces);
        if count > limit {
            return Err(self.exceeded("namespaces-limit", "namespace declarations", start, count, limit));
        }
        Ok(())
    }

    fn declare_namespaces(&mut self) -> ReadResult<()> {
        for &(id, value, at) in &self.scratch.declared {
            let uri = value.of(&self.document.values);
            let (namespaces, names) = (&mut self.scratch.namespaces, &self.scratch.names);
            let WrittenKind::Declares(prefix) = names.entry(id).kind else {
                continue;
            };
            if let Err((code, reason)) = namespaces.declare(prefix, uri, names, self.vocabulary) {
                return Err(self.read_error(code, reason, at as usize));
            }
        }
        self.scratch.declared.clear();
        Ok(())
    }

    fn resolve_prefixed(&mut self) -> ReadResult<()> {
        for index in 0..self.scratch.prefixed.len() {
            let (place, id, at) = self.scratch.prefixed[index];
            let uri = self.scratch.namespaces.uri(self.scratch.names.entry(id).prefix);
            if uri.is_none() {
                return Err(self.unbound(id, at as usize));
            }
            let name = self.scratch.names.resolve(id, uri, self.vocabulary);
            if !self.scratch.names.mark_resolved(name, self.scratch.tag) {
                return Err(self.duplicate(id, at as usize));
            }
            self.document.attributes[place as usize].name = name;
        }
        self.scratch.prefixed.clear();
        Ok(())
    }

    #[cold]
    fn duplicate(&self, id: WrittenNameId, at: usize) -> super::read_error::BoxedReadError {
        let name = String::from_utf8_lossy(self.scratch.names.bytes(id));
        self.read_error("duplicate-attribute", format!("the element has two attributes {name}"), at)
    }

    #[cold]
    fn unbound(&self, id: WrittenNameId, at: usize) -> super::read_error::BoxedReadError {
        let prefix = self.scratch.names.entry(id).prefix;
        if prefix == PrefixId::XMLNS {
            return self.read_error("reserved-prefix", "the prefix xmlns is not allowed in a name", at);
        }
        let prefix = String::from_utf8_lossy(self.scratch.names.prefix_text(prefix));
        self.read_error(
            "unbound-prefix",
            format!("the prefix {prefix} is not bound to a namespace; declare it with xmlns:{prefix}"),
            at,
        )
    }
}
