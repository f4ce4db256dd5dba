//! The content of the root element: character data, CDATA sections, end tags, and the loop over them.

use super::MessageParser;
use super::read_error::ReadResult;
use super::references::Reference;
use super::scan::{SPACE, equal_bytes, skip, skip_text};
use crate::document::{Span, Text};

impl MessageParser<'_> {
    /// Reads the root element, whose `<` is at `root`; returns the offset after it.
    pub fn content(&mut self, root: usize) -> ReadResult<usize> {
        let mut at = self.start_tag(root)?;
        while !self.scratch.open.is_empty() {
            let text = self.text;
            let start = at;
            at = skip_text(text, at);
            if at > start {
                self.append_text(start, at);
            }
            at = match (text[at], text[at + 1]) {
                (b'<', b'/') => self.end_tag(at)?,
                (b'<', b'!') => self.comment_or_section(at)?,
                (b'<', b'?') => {
                    self.finish_text(at)?;
                    self.instruction(at)?
                }
                (b'<', _) => {
                    self.finish_text(at)?;
                    self.start_tag(at)?
                }
                (b'&', _) => self.reference_in_content(at)?,
                (b']', b']') if text[at + 2] == b'>' => {
                    return Err(self.read_error(
                        "section-end",
                        "]]> is not allowed in text; write ]]&gt;",
                        at,
                    ));
                }
                (b'\r', next) if self.reference.is_none() => {
                    self.append_bytes(b"\n", at);
                    at + if next == b'\n' { 2 } else { 1 }
                }
                (b']' | b'\r', _) => {
                    self.append_text(at, at + 1);
                    at + 1
                }
                _ => self.end_of_text(at)?,
            };
        }
        Ok(at)
    }

    /// Reads `</name>` at `at`; returns the offset after it.
    #[inline]
    fn end_tag(&mut self, at: usize) -> ReadResult<usize> {
        self.finish_text(at)?;
        let text = self.text;
        let open = *self.scratch.open.last().expect("the loop over content runs while one is open");
        let (name, len) = (at + 2, open.name_len as usize);
        if self.scratch.open.len() <= self.base {
            return Err(self.read_error(
                "entity-boundary",
                "an entity closes an element that it did not open",
                at,
            ));
        }
        let mut after = name + len;
        if after > self.end || !equal_bytes(text, name, open.name_at as usize, len) {
            return Err(self.mismatch(at));
        }
        if text[after] != b'>' {
            after = skip(text, after, SPACE);
            if text[after] != b'>' {
                return Err(self.mismatch(at));
            }
        }
        self.close(after + 1);
        Ok(after + 1)
    }

    /// Ends the innermost element, whose source ends at `end`.
    #[inline(always)]
    pub fn close(&mut self, end: usize) {
        let span = self.source_span(end, end);
        let document = &mut *self.document;
        let Some(open) = self.scratch.open.pop() else {
            return;
        };
        let next = document.elements.len() as u32;
        let element = &mut document.elements[open.element.index()];
        element.end.0 = next;
        element.texts.end = document.texts.len() as u32;
        element.text.end = document.text.len() as u32;
        element.span.end = span.end;
        self.scratch.namespaces.leave(open.bindings);
    }

    fn comment_or_section(&mut self, at: usize) -> ReadResult<usize> {
        const SECTION: &[u8] = b"<![CDATA[";
        if self.text[at + 2..at + 4] == *b"--" {
            self.finish_text(at)?;
            return self.comment(at);
        }
        if self.text[at..at + SECTION.len()] != *SECTION {
            return Err(self.unexpected(
                "bad-tag",
                "a comment or a CDATA section is expected after <!",
                at + 2,
            ));
        }
        let start = at + SECTION.len();
        let Some(found) = memchr::memmem::find(&self.text[start..self.end], b"]]>") else {
            return Err(self.read_error("truncated", "the CDATA section does not end", at));
        };
        let end = start + found;
        let mut from = start;
        if self.reference.is_none() {
            for cr in memchr::memchr_iter(b'\r', &self.text[start..end]).map(|cr| start + cr) {
                self.append_text(from, cr);
                if self.text[cr + 1] != b'\n' {
                    self.append_bytes(b"\n", cr);
                }
                from = cr + 1;
            }
        }
        self.append_text(from, end);
        Ok(end + 3)
    }

    /// Appends `start..end` of the text being read to the text node being collected.
    #[inline(always)]
    fn append_text(&mut self, start: usize, end: usize) {
        let text = self.text;
        self.append_bytes(&text[start..end], start);
    }

    /// Appends bytes that stand for what is at `at` to the text node being collected.
    #[inline(always)]
    pub fn append_bytes(&mut self, bytes: &[u8], at: usize) {
        if self.document.text.len() == self.run.start as usize {
            self.run.source = self.source_span(at, at).start;
        }
        self.document.text.extend_from_slice(bytes);
    }

    /// Ends the text node being collected, if there is one, because markup follows at `at`.
    #[inline(always)]
    pub fn finish_text(&mut self, at: usize) -> ReadResult<()> {
        let (start, end) = (self.run.start, self.document.text.len() as u32);
        if end == start {
            return Ok(());
        }
        if (end - start) as usize > self.limits.text {
            let at = self.run.source as usize;
            let (value, limit) = ((end - start) as usize, self.limits.text);
            return Err(super::read_error::exceeded(
                "text-limit",
                "bytes of text",
                self.source,
                at,
                value,
                limit,
            ));
        }
        let parent = self.scratch.open.last().expect("text stands in an element").element;
        let span = Span { start: self.run.source, end: self.source_span(at, at).end };
        let node = self.next_node();
        self.document.texts.push(Text { parent, node, content: Span { start, end }, span });
        self.run.start = end;
        Ok(())
    }

    fn reference_in_content(&mut self, at: usize) -> ReadResult<usize> {
        match self.reference_at(at)? {
            (Reference::Character(c), after) => {
                self.append_bytes(c.encode_utf8(&mut [0; 4]).as_bytes(), at);
                Ok(after)
            }
            (Reference::Entity { start, end }, after) => self.enter_entity(at, start..end, after),
        }
    }

    /// The text being read has ended: continues after the reference, or refuses a truncated message.
    #[cold]
    fn end_of_text(&mut self, at: usize) -> ReadResult<usize> {
        let open = self.scratch.open.len();
        if let Some(outer) = self.suspended.pop() {
            if open != self.base {
                self.suspended.push(outer);
                return Err(self.read_error(
                    "entity-boundary",
                    "an entity opens an element that it does not close",
                    at,
                ));
            }
            return Ok(self.leave_entity(outer));
        }
        let open = self.scratch.open[open - 1];
        let name = String::from_utf8_lossy(&self.text[open.name_at as usize..][..open.name_len as usize]);
        Err(self.read_error("unclosed-element", format!("the message ends before </{name}>"), at))
    }

    #[cold]
    fn mismatch(&self, at: usize) -> super::read_error::BoxedReadError {
        let open = self.scratch.open[self.scratch.open.len() - 1];
        let expected = String::from_utf8_lossy(&self.text[open.name_at as usize..][..open.name_len as usize]);
        let end = skip(self.text, at + 2, super::scan::NAME);
        let found = String::from_utf8_lossy(&self.text[at + 2..end]);
        if skip(self.text, end, SPACE) == self.end {
            return self.read_error("truncated", "the end tag does not end", at);
        }
        self.read_error("mismatched-tag", format!("</{expected}> is expected, not </{found}>"), at)
    }
}
