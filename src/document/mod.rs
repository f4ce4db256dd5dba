//! A message as the rest of the kernel sees it: bytes in, a flat `Document` out.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | `Document`: elements, attributes, texts and other nodes in flat arrays |
//! | `node.rs` | `NodeRef`: one node of a document, its value and its place in document order |
//! | `annex.rs` | records of local data that a message meets, as elements beside the message |
//! | `envelope.rs` | `Envelope`: the envelope of a message, as elements beside the message |
//! | `charset.rs` | `Charset`: labels of encodings, bytes → UTF-8 |
//! | `reader/` | `Reader`: bytes → `Document`, strictly well-formed or refused |
//! | `vocabulary.rs` | `Vocabulary`: names and tag paths ↔ ids, bounded |
//! | `id_table.rs` | the hash table that the vocabulary and the reader's names use |
//! | `dtd/` | `Dtd`: internal and external subsets of document type declarations |

mod annex;
pub mod charset;
pub mod dtd;
mod envelope;
mod id_table;
mod node;
mod reader;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use annex::{Annex, AnnexNames};
pub use envelope::{ENVELOPE_ROOT, Envelope, Message};
pub use node::NodeRef;
pub use reader::Reader;
pub use vocabulary::{Capacity, Vocabulary, VocabularyStats};

use crate::ids::{ElementId, NameId, NodeId, TagPathId};

/// A range of bytes or items in one of a document's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    #[inline(always)]
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }

    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// An element. Elements are stored in pre-order, so a sub-tree is a range of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    pub name: NameId,
    /// `ElementId::NONE` for the root element.
    pub parent: ElementId,
    /// One past the last element of the sub-tree; the next sibling, if there is one, has this id.
    pub end: ElementId,
    pub tag_path: TagPathId,
    /// The element's number among nodes of all kinds.
    pub node: NodeId,
    /// Root element: 1.
    pub depth: u32,
    /// Attributes `attributes_start..` up to the next element's `attributes_start`.
    pub attributes_start: u32,
    /// The text nodes of the sub-tree: a range of `Document::texts`.
    pub texts: Span,
    /// The string-value: a range of `Document::text`. That buffer holds the text nodes in document
    /// order with nothing between them, so every string-value is one slice.
    pub text: Span,
    /// From `<` of the start tag to `>` of the end tag, in `Document::source`.
    pub span: Span,
}

/// An attribute; namespace declarations are not attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attribute {
    pub name: NameId,
    /// The normalised value, in `Document::values`.
    pub value: Span,
}

/// A text node. Comments and processing instructions split text; CDATA sections do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    pub parent: ElementId,
    pub node: NodeId,
    /// The content, in `Document::text`.
    pub content: Span,
    /// Its range in `Document::source`.
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherKind {
    Comment,
    /// A processing instruction with its target, in `Document::values`.
    Instruction {
        target: Span,
    },
}

/// A comment or processing instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Other {
    pub kind: OtherKind,
    /// `ElementId::NONE` outside the root element.
    pub parent: ElementId,
    pub node: NodeId,
    /// The content, in `Document::values`.
    pub content: Span,
    pub span: Span,
}

/// One message after reading: flat arrays that are reused for the next message, with names as ids of
/// a `Vocabulary`.
///
/// `<a x="1">hi<b/></a>` becomes the elements `a` (0, sub-tree 0..2) and `b` (1, sub-tree 1..2), the
/// attribute `x` with its value as a range of `values`, one text node `hi`, and the text `hi`.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The message in UTF-8; spans are offsets into it.
    pub source: Vec<u8>,
    pub elements: Vec<Element>,
    pub attributes: Vec<Attribute>,
    pub texts: Vec<Text>,
    pub others: Vec<Other>,
    /// All character data in document order.
    pub text: Vec<u8>,
    /// Attribute values, comments, processing instructions: a copy of the source, which contains most
    /// of them literally, followed by those that normalisation changed.
    pub values: Vec<u8>,
    /// The root of the envelope, if there is one. Its nodes come after those of the message.
    pub envelope: Option<ElementId>,
    /// The root of the first records, and the number of texts before them, if there are any. They come last.
    pub annex: Option<(ElementId, u32)>,
    /// References to entities that were not read, which are left out (`Limits::skip_unread_entities`).
    pub skipped_entities: u32,
}

impl Document {
    /// One past the last element of the message.
    #[inline(always)]
    pub fn message_end(&self) -> usize {
        self.envelope.map_or_else(|| self.annex_start().0, ElementId::index)
    }

    /// One past the last element and the last text of the message and its envelope: local data may follow.
    pub fn annex_start(&self) -> (usize, usize) {
        let start = |(root, texts): (ElementId, u32)| (root.index(), texts as usize);
        self.annex.map_or((self.elements.len(), self.texts.len()), start)
    }

    /// The name of the envelope's root, if there is an envelope.
    pub fn envelope_name(&self) -> Option<NameId> {
        self.envelope.map(|root| self.element(root).name)
    }

    #[inline(always)]
    pub fn element(&self, id: ElementId) -> &Element {
        &self.elements[id.index()]
    }

    #[inline(always)]
    pub fn attributes_of(&self, id: ElementId) -> &[Attribute] {
        let start = self.elements[id.index()].attributes_start as usize;
        let end = match self.elements.get(id.index() + 1) {
            Some(next) => next.attributes_start as usize,
            None => self.attributes.len(),
        };
        &self.attributes[start..end]
    }

    /// The text nodes that are children of an element.
    pub fn texts_of(&self, id: ElementId) -> impl Iterator<Item = &Text> {
        let range = self.elements[id.index()].texts;
        self.texts[range.start as usize..range.end as usize].iter().filter(move |text| text.parent == id)
    }

    #[inline(always)]
    pub fn string_value(&self, id: ElementId) -> &[u8] {
        self.elements[id.index()].text.of(&self.text)
    }

    #[inline(always)]
    pub fn value(&self, attribute: &Attribute) -> &[u8] {
        attribute.value.of(&self.values)
    }

    /// Frees what the buffers have beyond their content, for a document that stays.
    pub fn shrink(&mut self) {
        self.source.shrink_to_fit();
        self.elements.shrink_to_fit();
        self.attributes.shrink_to_fit();
        self.texts.shrink_to_fit();
        self.others.shrink_to_fit();
        self.text.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        let bytes = self.source.capacity() + self.text.capacity() + self.values.capacity();
        let nodes = self.elements.capacity() * size_of::<Element>()
            + self.attributes.capacity() * size_of::<Attribute>()
            + self.texts.capacity() * size_of::<Text>()
            + self.others.capacity() * size_of::<Other>();
        size_of::<Document>() + bytes + nodes
    }

    /// Empties the document. Keeps its buffers for the next message, except what exceeds 4 MiB each.
    pub fn clear(&mut self) {
        clear_buffer(&mut self.source);
        clear_buffer(&mut self.elements);
        clear_buffer(&mut self.attributes);
        clear_buffer(&mut self.texts);
        clear_buffer(&mut self.others);
        clear_buffer(&mut self.text);
        clear_buffer(&mut self.values);
        self.envelope = None;
        self.annex = None;
        self.skipped_entities = 0;
    }
}

fn clear_buffer<T>(items: &mut Vec<T>) {
    const KEPT: usize = 4 << 20;
    items.clear();
    items.shrink_to(KEPT / size_of::<T>());
}
