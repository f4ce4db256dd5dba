//! Bytes in, a `Document` out: XML 1.0 (fifth edition) with Namespaces, strictly well-formed or refused.
//! One pass over the bytes after decoding, without recursion; errors carry a code and a position.
//!
//! ```text
//! <a><b>x &amp; y</b></a>
//!   start tag a     push element 0, open = [a]
//!   start tag b     push element 1, open = [a, b]
//!   x , &amp;,  y   append `x & y` to `Document::text`
//!   end tag b       text node `x & y`; element 1 ends; open = [a]
//!   end tag a       element 0 ends; open = []
//! ```
//!
//! A message is read in this order, one function each:
//! `encoding::decode` → `declaration::read` → `encoding::agree` → `encoding::transcode` → `encoding::validate` →
//! `MessageParser::prolog` → `MessageParser::content` → `MessageParser::epilog`.
//!
//! | file | what it reads |
//! |---|---|
//! | `encoding.rs`, `declaration.rs` | the byte order mark, the XML declaration, the encoding |
//! | `doctype.rs` | `<!DOCTYPE …>` |
//! | `content.rs`, `tag.rs` | the root element: text, CDATA sections, start and end tags |
//! | `comments.rs` | comments and processing instructions |
//! | `references.rs`, `entities.rs` | `&#65;`, `&lt;`, `&entity;` |
//! | `namespaces.rs` | which prefix is bound to which namespace |
//! | `written_names.rs` | names as written, each checked once |
//! | `scan.rs` | loops over byte classes |
//! | `read_error.rs` | how a message is refused |

mod comments;
mod content;
mod declaration;
mod doctype;
mod encoding;
mod entities;
mod namespaces;
mod read_error;
mod references;
pub(super) mod scan;
mod tag;
mod written_names;

use std::cell::OnceCell;

use doctype::Doctype;
use namespaces::Namespaces;
use read_error::{BoxedReadError, ReadResult, exceeded, read_error};
use scan::PADDING;
use written_names::{WrittenNameId, WrittenNames};

use super::envelope::{self, Envelope};
use super::{Document, Span, Vocabulary};
use crate::error::ReadError;
use crate::ids::{ElementId, NodeId, TagPathId};
use crate::limits::Limits;

/// Reads messages, one after the other. Between messages it keeps the vocabulary and its buffers.
pub struct Reader {
    vocabulary: Vocabulary,
    scratch: Scratch,
}

impl Reader {
    pub fn new() -> Reader {
        Reader::with_vocabulary(Vocabulary::new())
    }

    /// A reader with a vocabulary of another capacity.
    pub fn with_vocabulary(vocabulary: Vocabulary) -> Reader {
        let scratch = Scratch {
            names: WrittenNames::new(),
            namespaces: Namespaces::new(),
            open: Vec::new(),
            prefixed: Vec::new(),
            declared: Vec::new(),
            written: Vec::new(),
            tag: 0,
        };
        Reader { vocabulary, scratch }
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The vocabulary, for what is added to the message that was read last.
    pub fn vocabulary_mut(&mut self) -> &mut Vocabulary {
        &mut self.vocabulary
    }

    /// Reads one message into `document`, replacing what it held and reusing its buffers. After an error
    /// the document is empty.
    pub fn read(
        &mut self,
        message: &[u8],
        limits: &Limits,
        document: &mut Document,
    ) -> Result<(), ReadError> {
        document.clear();
        let mut source = std::mem::take(&mut document.source);
        let read = self.read_source(message, limits, &mut source, document);
        document.source = source;
        read.map_err(|error| {
            document.clear();
            *error
        })
    }

    /// Adds an envelope to the message that was just read into a document.
    pub fn add_envelope(&mut self, envelope: &Envelope<'_>, document: &mut Document) {
        envelope::add(envelope, &mut self.vocabulary, document);
    }

    fn read_source(
        &mut self,
        message: &[u8],
        limits: &Limits,
        source: &mut Vec<u8>,
        document: &mut Document,
    ) -> ReadResult<()> {
        source.reserve(message.len() + PADDING);
        let form = encoding::decode(message, limits, source)?;
        let mut end = source.len();
        source.resize(end + PADDING, 0);
        let declaration = declaration::read(&source[..end])?;
        let other = encoding::agree(form, declaration.encoding, &source[..end], declaration.encoding_at)?;
        // The declaration itself has the same bytes in every encoding that is transcoded.
        let (start, standalone) = (declaration.end, declaration.standalone);
        if let Some(other) = other {
            encoding::transcode(message, other, limits, source)?;
            end = source.len();
            source.resize(end + PADDING, 0);
        }
        encoding::validate(source, end)?;

        let epoch = self.vocabulary.epoch();
        self.vocabulary.reset_if_full();
        if self.vocabulary.epoch() != epoch || self.scratch.names.is_full(self.vocabulary.capacity()) {
            self.scratch.clear_names();
        }
        self.scratch.begin();
        self.scratch.namespaces.begin(&mut self.vocabulary);

        document.values.extend_from_slice(&source[..end]);
        let doctype = OnceCell::new();
        let mut parse = MessageParser {
            source,
            text: source,
            end,
            reference: None,
            limits,
            standalone,
            doctype: &doctype,
            vocabulary: &mut self.vocabulary,
            scratch: &mut self.scratch,
            document,
            nodes: 1,
            run: TextRun { start: 0, source: 0 },
            base: 0,
            suspended: Vec::new(),
            expanding: Vec::new(),
            expanded: 0,
            declares_attributes: false,
        };
        let at = parse.prolog(start)?;
        let at = parse.content(at)?;
        parse.epilog(at)?;
        source.truncate(end);
        Ok(())
    }
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::new()
    }
}

/// Scratch space that a reader keeps between messages besides the vocabulary: written names and buffers.
struct Scratch {
    pub names: WrittenNames,
    pub namespaces: Namespaces,
    /// The elements that are open, the root first.
    pub open: Vec<Open>,
    /// Attributes with a prefix, of the tag being read: index in `Document::attributes`, name, offset in
    /// the text.
    pub prefixed: Vec<(u32, WrittenNameId, u32)>,
    /// Namespace declarations of the tag being read: name, value in `Document::values`, offset in the text.
    pub declared: Vec<(WrittenNameId, Span, u32)>,
    /// The attribute names of the tag being read; used only if a DTD declares attributes.
    pub written: Vec<WrittenNameId>,
    /// The number of start tags so far, over all messages. A name that carries the number of the current
    /// tag occurs twice in it.
    pub tag: u64,
}

impl Scratch {
    /// Clears what a refused message may have left behind.
    fn begin(&mut self) {
        self.open.clear();
        self.prefixed.clear();
        self.declared.clear();
        self.written.clear();
    }

    /// Clears what refers to ids of the vocabulary, when that has a new epoch.
    fn clear_names(&mut self) {
        self.names = WrittenNames::new();
        self.namespaces = Namespaces::new();
    }
}

/// An element whose end tag has not been read yet.
#[derive(Clone, Copy)]
struct Open {
    pub element: ElementId,
    pub tag_path: TagPathId,
    /// Its name as written, in the text that is being read.
    pub name_at: u32,
    pub name_len: u32,
    /// The mark to pass to `Namespaces::leave`.
    pub bindings: u32,
}

/// The text node being collected: its start in `Document::text` and in the source.
#[derive(Clone, Copy)]
struct TextRun {
    pub start: u32,
    pub source: u32,
}

/// A text whose reading is suspended while the replacement text of an entity is read.
struct Suspended<'a> {
    pub text: &'a [u8],
    pub end: usize,
    pub at: usize,
    pub base: usize,
    /// The entity that is read in the meantime.
    pub entity: usize,
}

/// Reads one message.
struct MessageParser<'a> {
    /// The message in UTF-8, padded.
    pub source: &'a [u8],
    /// The text being read: the source, or the replacement text of an entity; padded.
    pub text: &'a [u8],
    /// Where `text` ends and its padding begins.
    pub end: usize,
    /// While an entity is read: the span of the reference in the source. Nodes that come from the entity
    /// have this span.
    pub reference: Option<Span>,
    pub limits: &'a Limits,
    pub standalone: bool,
    pub doctype: &'a OnceCell<Doctype>,
    pub vocabulary: &'a mut Vocabulary,
    pub scratch: &'a mut Scratch,
    pub document: &'a mut Document,
    /// Nodes so far; the document node is one.
    pub nodes: u32,
    pub run: TextRun,
    /// The number of elements that were open when `text` began: `text` may close only later ones.
    pub base: usize,
    pub suspended: Vec<Suspended<'a>>,
    /// By entity: whether it is being expanded. An entity that contains itself is refused.
    pub expanding: Vec<bool>,
    /// Bytes that entity references and attribute defaults have added so far.
    pub expanded: usize,
    /// Whether a DTD gives attributes defaults or types.
    pub declares_attributes: bool,
}

impl<'a> MessageParser<'a> {
    /// Reads everything before the root element; returns the offset of its `<`.
    fn prolog(&mut self, start: usize) -> ReadResult<usize> {
        let mut at = start;
        loop {
            at = scan::skip(self.text, at, scan::SPACE);
            at = match &self.text[at..at + 9] {
                [b'<', b'!', b'-', b'-', ..] => self.comment(at)?,
                [b'<', b'?', ..] => self.instruction(at)?,
                b"<!DOCTYPE" if self.doctype.get().is_none() => self.doctype(at)?,
                b"<!DOCTYPE" => return Err(self.read_error("bad-doctype", "a second DOCTYPE", at)),
                [b'<', ..] => return Ok(at),
                _ if at == self.end => {
                    return Err(self.read_error("no-root", "there is no root element", at));
                }
                _ => return Err(self.read_error("text-outside-root", "text before the root element", at)),
            }
        }
    }

    /// Reads everything after the root element.
    fn epilog(&mut self, start: usize) -> ReadResult<()> {
        let mut at = start;
        loop {
            at = scan::skip(self.text, at, scan::SPACE);
            at = match &self.text[at..at + 4] {
                _ if at == self.end => return Ok(()),
                b"<!--" => self.comment(at)?,
                [b'<', b'?', ..] => self.instruction(at)?,
                [b'<', b'!' | b'/', ..] => {
                    return Err(self.read_error(
                        "bad-tag",
                        "only comments and instructions follow the root element",
                        at,
                    ));
                }
                [b'<', ..] => return Err(self.read_error("two-roots", "a second root element", at)),
                _ => return Err(self.read_error("text-outside-root", "text after the root element", at)),
            }
        }
    }

    /// The span of `start..end` of `text` in `Document::values`. That buffer begins with the source, so only
    /// text from an entity is copied.
    pub fn value_span(&mut self, start: usize, end: usize) -> Span {
        if self.reference.is_none() {
            return Span { start: start as u32, end: end as u32 };
        }
        let values = &mut self.document.values;
        let at = values.len() as u32;
        values.extend_from_slice(&self.text[start..end]);
        Span { start: at, end: values.len() as u32 }
    }

    /// Reads a name without a colon (a target, an entity) at `at`; returns the offset after it.
    pub fn plain_name(&mut self, at: usize, code: &'static str, reason: &str) -> ReadResult<usize> {
        let end = scan::skip(self.text, at, scan::NAME);
        let name = &self.text[at..end];
        if name.len() > self.limits.name {
            return Err(self.exceeded("name-limit", "bytes in a name", at, name.len(), self.limits.name));
        }
        if !written_names::is_name(name) {
            return Err(self.unexpected(code, reason, at));
        }
        if name.contains(&b':') {
            return Err(self.read_error(code, "a colon may not stand in this name", at));
        }
        Ok(end)
    }

    #[inline(always)]
    pub fn next_node(&mut self) -> NodeId {
        let node = NodeId(self.nodes);
        self.nodes += 1;
        node
    }

    /// The span in the source of `start..end` of `text`.
    #[inline(always)]
    pub fn source_span(&self, start: usize, end: usize) -> Span {
        self.reference.unwrap_or(Span { start: start as u32, end: end as u32 })
    }

    #[cold]
    pub fn read_error(&self, code: &'static str, reason: impl Into<String>, at: usize) -> BoxedReadError {
        read_error(code, reason, self.source, self.source_span(at, at).start as usize)
    }

    /// An error where something else was expected; `truncated` if the text ends there.
    #[cold]
    pub fn unexpected(&self, code: &'static str, reason: &str, at: usize) -> BoxedReadError {
        self.read_error(if at == self.end { "truncated" } else { code }, reason, at)
    }

    #[cold]
    pub fn exceeded(
        &self,
        code: &'static str,
        what: &str,
        at: usize,
        value: usize,
        limit: usize,
    ) -> BoxedReadError {
        exceeded(code, what, self.source, self.source_span(at, at).start as usize, value, limit)
    }
}
