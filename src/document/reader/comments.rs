//! Comments and processing instructions.

use super::MessageParser;
use super::read_error::ReadResult;
use super::scan::{SPACE, skip};
use crate::document::{Other, OtherKind, Span};
use crate::ids::ElementId;

impl MessageParser<'_> {
    /// Reads `<!-- … -->` at `at`; returns the offset after it.
    pub fn comment(&mut self, at: usize) -> ReadResult<usize> {
        let start = at + 4;
        let Some(found) = memchr::memmem::find(&self.text[start..self.end], b"--") else {
            return Err(self.read_error("truncated", "the comment does not end", at));
        };
        let end = start + found;
        if self.text[end + 2] != b'>' {
            return Err(self.read_error("bad-comment", "-- is not allowed inside a comment", end));
        }
        let content = self.content_span(start, end)?;
        self.other(OtherKind::Comment, content, at, end + 3);
        Ok(end + 3)
    }

    /// Reads `<?target … ?>` at `at`; returns the offset after it.
    pub fn instruction(&mut self, at: usize) -> ReadResult<usize> {
        let target =
            self.plain_name(at + 2, "bad-instruction", "the name of a target is expected after <?")?;
        if self.text[at + 2..target].eq_ignore_ascii_case(b"xml") {
            let reason = "an XML declaration is allowed only at the very beginning, and xml is not allowed as a target";
            return Err(self.read_error("bad-instruction", reason, at));
        }
        let Some(found) = memchr::memmem::find(&self.text[target..self.end], b"?>") else {
            return Err(self.read_error("truncated", "the processing instruction does not end", at));
        };
        let end = target + found;
        let start = skip(self.text, target, SPACE).min(end);
        if start == target && end > target {
            return Err(self.read_error(
                "bad-instruction",
                "white space is expected after the target",
                target,
            ));
        }
        let content = self.content_span(start, end)?;
        let target = self.value_span(at + 2, target);
        self.other(OtherKind::Instruction { target }, content, at, end + 2);
        Ok(end + 2)
    }

    fn other(&mut self, kind: OtherKind, content: Span, at: usize, end: usize) {
        let parent = self.scratch.open.last().map_or(ElementId::NONE, |open| open.element);
        let (node, span) = (self.next_node(), self.source_span(at, end));
        self.document.others.push(Other { kind, parent, node, content, span });
    }

    /// The content of a comment or instruction in `Document::values`: within the limit, line ends normalised
    /// to `\n`.
    fn content_span(&mut self, start: usize, end: usize) -> ReadResult<Span> {
        let content = &self.text[start..end];
        if content.len() > self.limits.text {
            return Err(self.exceeded(
                "text-limit",
                "bytes in a comment or processing instruction",
                start,
                content.len(),
                self.limits.text,
            ));
        }
        // In an entity a carriage return comes from a character reference: it is kept.
        if self.reference.is_some() || memchr::memchr(b'\r', content).is_none() {
            return Ok(self.value_span(start, end));
        }
        let values = &mut self.document.values;
        let at = values.len() as u32;
        let mut from = 0;
        for cr in memchr::memchr_iter(b'\r', content) {
            values.extend_from_slice(&content[from..cr]);
            if content.get(cr + 1) != Some(&b'\n') {
                values.push(b'\n');
            }
            from = cr + 1;
        }
        values.extend_from_slice(&content[from..]);
        Ok(Span { start: at, end: values.len() as u32 })
    }
}
