//! Documents → value tables: a row for each element, attribute and text node, with its tag path, for joins.
//!
//! `<a><b x="7">hi</b></a>` becomes, beside columns of positions and hashes:
//!
//! ```text
//! node  kind       path        elements  text  number
//! 1     element    /a          [1]       hi
//! 2     element    /a/b        [1, 2]    hi
//! 2     attribute  /a/b/@x     [1, 2]    7     7
//! 3     text       /a/b/text() [1, 2]    hi
//! ```
//!
//! Rows repeat their path and their elements, and every element has a string-value: a message of n bytes and depth
//! d may take n × d bytes. `cost` measures that before a row is written, so that no message exceeds `Limits::outputs`.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
};
use rustc_hash::FxHashMap;

use super::error::ErrorTable;
use super::messages::Messages;
use super::tables::{Column, record_batch};
use crate::document::{Document, Reader, Span, Vocabulary};
use crate::error::{Exceeded, Position, ReadError};
use crate::ids::{ElementId, NameId, TagPathId};
use crate::limits::Limits;
use crate::query::number::number;

/// Bytes of a value that a row contains; longer ones are cut, and have a length and a hash.
pub const TEXT_BYTES: usize = 64;
/// Bytes after which a batch of rows is complete. Together with the rows of one message they stay far below
/// the 2 GiB of a column with 32-bit offsets, which is what Spark reads.
const BATCH_BYTES: usize = 64 << 20;
/// The columns of a row that have a fixed width, and the offsets of the others.
const ROW_BYTES: usize = 64;

/// The value tables of messages: batches of rows, and the messages that were refused.
pub fn read_values(messages: &Messages, limits: &Limits) -> (Vec<RecordBatch>, RecordBatch) {
    let mut reader = Reader::new();
    let mut document = Document::default();
    let mut paths = Paths::default();
    let mut positions = Positions::default();
    let mut rows = ValueTable::default();
    let (mut batches, mut bytes) = (Vec::new(), 0);
    let mut errors = ErrorTable::new("message");
    for (at, message) in messages.iter().enumerate() {
        let read = message.and_then(|message| {
            reader.read(message.bytes, limits, &mut document)?;
            paths.set_epoch(reader.vocabulary());
            cost(&document, reader.vocabulary(), &mut paths, limits.outputs)
        });
        match read {
            Ok(cost) => {
                if bytes + cost > BATCH_BYTES && bytes > 0 {
                    batches.push(std::mem::take(&mut rows).finish());
                    bytes = 0;
                }
                bytes += cost;
                rows.push(at as i32, &document, reader.vocabulary(), &mut paths, &mut positions);
            }
            Err(error) => errors.push_read(at, &error),
        }
    }
    batches.push(rows.finish());
    (batches, errors.finish())
}

/// The 64-bit hash of a path's text, the same everywhere: the first eight bytes of its BLAKE3 hash.
pub fn path_hash(text: &str) -> i64 {
    let hash = blake3::hash(text.as_bytes());
    i64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
}

/// Bytes that the rows of a document take and that are hashed for them, or an error if they exceed the limit.
fn cost(
    document: &Document,
    vocabulary: &Vocabulary,
    paths: &mut Paths,
    limit: usize,
) -> Result<usize, ReadError> {
    let mut bytes = 0;
    let mut add = |leaf, length, depth| {
        bytes += ROW_BYTES + paths.get(leaf, vocabulary).text.len() + 4 * depth as usize + length;
    };
    for (at, element) in document.elements.iter().enumerate() {
        add(Leaf::Element(element.tag_path), element.text.len(), element.depth);
        for attribute in document.attributes_of(ElementId::from(at)) {
            add(Leaf::Attribute(element.tag_path, attribute.name), attribute.value.len(), element.depth);
        }
    }
    for text in &document.texts {
        let parent = document.element(text.parent);
        add(Leaf::Text(parent.tag_path), text.content.len(), parent.depth);
    }
    if bytes <= limit {
        return Ok(bytes);
    }
    Err(ReadError {
        code: "outputs-limit",
        reason: format!("the value table of the message takes {bytes} bytes; at most {limit} are allowed"),
        position: Position { offset: 0, line: 1, column: 1 },
        exceeded: Some(Exceeded { value: bytes as u64, limit: limit as u64 }),
    })
}

/// The node that a row's path leads to, by the tag path of its element.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Leaf {
    Element(TagPathId),
    Attribute(TagPathId, NameId),
    Text(TagPathId),
}

struct TagPath {
    text: String,
    hash: i64,
}

/// Paths as text, cached for an epoch of the vocabulary.
#[derive(Default)]
struct Paths {
    epoch: Option<u64>,
    places: FxHashMap<Leaf, usize>,
    paths: Vec<TagPath>,
}

impl Paths {
    fn set_epoch(&mut self, vocabulary: &Vocabulary) {
        if self.epoch != Some(vocabulary.epoch()) {
            *self = Paths { epoch: Some(vocabulary.epoch()), ..Paths::default() };
        }
    }

    fn get(&mut self, leaf: Leaf, vocabulary: &Vocabulary) -> &TagPath {
        let place = match self.places.get(&leaf) {
            Some(&place) => place,
            None => self.insert(leaf, vocabulary),
        };
        &self.paths[place]
    }

    fn insert(&mut self, leaf: Leaf, vocabulary: &Vocabulary) -> usize {
        let mut text = String::new();
        match leaf {
            Leaf::Element(path) => {
                let (parent, name) = vocabulary.tag_path_parts(path);
                if parent.is_some() {
                    text.push_str(&self.get(Leaf::Element(parent), vocabulary).text);
                }
                text.push('/');
                push_name(name, vocabulary, &mut text);
            }
            Leaf::Attribute(path, name) => {
                text.push_str(&self.get(Leaf::Element(path), vocabulary).text);
                text.push_str("/@");
                push_name(name, vocabulary, &mut text);
            }
            Leaf::Text(path) => {
                text.push_str(&self.get(Leaf::Element(path), vocabulary).text);
                text.push_str("/text()");
            }
        }
        let place = self.paths.len();
        self.paths.push(TagPath { hash: path_hash(&text), text });
        self.places.insert(leaf, place);
        place
    }
}

/// Appends an expanded name as canonical queries write it.
fn push_name(name: NameId, vocabulary: &Vocabulary, text: &mut String) {
    let (uri, local) = vocabulary.name_parts(name);
    let uri = utf8(vocabulary.uri_text(uri));
    if !uri.is_empty() {
        text.push_str("Q{");
        // Braces would make the paths of other names equal; no message contains the characters in their place.
        text.extend(uri.chars().map(|character| match character {
            '}' => '\u{1}',
            '{' => '\u{2}',
            other => other,
        }));
        text.push('}');
    }
    text.push_str(utf8(local));
}

/// The reader accepts only UTF-8.
fn utf8(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_default()
}

/// Positions among siblings, counted while a document is walked in document order.
#[derive(Default)]
struct Positions {
    by_name: FxHashMap<(ElementId, NameId), i32>,
    elements: FxHashMap<ElementId, i32>,
    texts: FxHashMap<ElementId, i32>,
}

impl Positions {
    fn clear(&mut self) {
        self.by_name.clear();
        self.elements.clear();
        self.texts.clear();
    }
}

fn next<K: Eq + std::hash::Hash>(counts: &mut FxHashMap<K, i32>, key: K) -> i32 {
    let count = counts.entry(key).or_insert(0);
    *count += 1;
    *count
}

/// The columns of a value table, in types that Spark reads.
#[derive(Default)]
struct ValueTable {
    message: Int32Builder,
    node: Int32Builder,
    kind: StringBuilder,
    path: StringBuilder,
    path_hash: Int64Builder,
    elements: ListBuilder<Int32Builder>,
    position: Int32Builder,
    element_position: Int32Builder,
    text: StringBuilder,
    length: Int64Builder,
    hash: BinaryBuilder,
    number: Float64Builder,
    /// The nodes from the root element down to the current one.
    open: Vec<i32>,
    /// The last hash of a long string-value: nested elements often have the same one.
    hashed: Option<(Span, [u8; 16])>,
}

impl ValueTable {
    fn push(
        &mut self,
        message: i32,
        document: &Document,
        vocabulary: &Vocabulary,
        paths: &mut Paths,
        positions: &mut Positions,
    ) {
        positions.clear();
        self.open.clear();
        self.hashed = None;
        let mut texts = document.texts.iter().peekable();
        for (at, element) in document.elements.iter().enumerate() {
            while let Some(text) = texts.next_if(|text| text.node < element.node) {
                self.push_text(message, text, document, vocabulary, paths, positions);
            }
            let node = element.node.0 as i32;
            self.open.truncate(element.depth as usize - 1);
            self.open.push(node);
            self.push_row(message, node, "element", paths.get(Leaf::Element(element.tag_path), vocabulary));
            self.position.append_value(next(&mut positions.by_name, (element.parent, element.name)));
            self.element_position.append_value(next(&mut positions.elements, element.parent));
            let id = ElementId::from(at);
            let hash = self.long_hash(element.text, document);
            self.push_value(document.string_value(id), hash);
            for attribute in document.attributes_of(id) {
                let path = paths.get(Leaf::Attribute(element.tag_path, attribute.name), vocabulary);
                self.push_row(message, node, "attribute", path);
                self.position.append_null();
                self.element_position.append_null();
                self.push_value(document.value(attribute), None);
            }
        }
        for text in texts {
            self.push_text(message, text, document, vocabulary, paths, positions);
        }
    }

    fn push_text(
        &mut self,
        message: i32,
        text: &crate::document::Text,
        document: &Document,
        vocabulary: &Vocabulary,
        paths: &mut Paths,
        positions: &mut Positions,
    ) {
        let parent = document.element(text.parent);
        self.open.truncate(parent.depth as usize);
        let path = paths.get(Leaf::Text(parent.tag_path), vocabulary);
        self.push_row(message, text.node.0 as i32, "text", path);
        self.position.append_value(next(&mut positions.texts, text.parent));
        self.element_position.append_null();
        self.push_value(text.content.of(&document.text), None);
    }

    fn push_row(&mut self, message: i32, node: i32, kind: &str, path: &TagPath) {
        self.message.append_value(message);
        self.node.append_value(node);
        self.kind.append_value(kind);
        self.path.append_value(&path.text);
        self.path_hash.append_value(path.hash);
        self.elements.append_value(self.open.iter().copied().map(Some));
    }

    /// The hash of an element's string-value, if it is long.
    fn long_hash(&mut self, span: Span, document: &Document) -> Option<[u8; 16]> {
        if span.len() <= TEXT_BYTES {
            return None;
        }
        match self.hashed {
            Some((known, hash)) if known == span => Some(hash),
            _ => {
                let hash = hash128(span.of(&document.text));
                self.hashed = Some((span, hash));
                Some(hash)
            }
        }
    }

    /// Appends a value; `hash` is its hash where that is known.
    fn push_value(&mut self, value: &[u8], hash: Option<[u8; 16]>) {
        let number = number(value);
        self.number.append_option((!number.is_nan()).then_some(number));
        let value = utf8(value);
        if value.len() <= TEXT_BYTES {
            self.text.append_value(value);
            self.length.append_null();
            self.hash.append_null();
        } else {
            let end = (0..=TEXT_BYTES).rev().find(|&at| value.is_char_boundary(at)).unwrap_or_default();
            self.text.append_value(&value[..end]);
            self.length.append_value(value.len() as i64);
            self.hash.append_value(hash.unwrap_or_else(|| hash128(value.as_bytes())));
        }
    }

    fn finish(mut self) -> RecordBatch {
        let columns: [Column; 12] = [
            ("message", Arc::new(self.message.finish()), false),
            ("node", Arc::new(self.node.finish()), false),
            ("kind", Arc::new(self.kind.finish()), false),
            ("path", Arc::new(self.path.finish()), false),
            ("path_hash", Arc::new(self.path_hash.finish()), false),
            ("elements", Arc::new(self.elements.finish()), false),
            ("position", Arc::new(self.position.finish()), true),
            ("element_position", Arc::new(self.element_position.finish()), true),
            ("text", Arc::new(self.text.finish()), false),
            ("length", Arc::new(self.length.finish()), true),
            ("hash", Arc::new(self.hash.finish()), true),
            ("number", Arc::new(self.number.finish()), true),
        ];
        record_batch(columns, [])
    }
}

/// The first 128 bits of the BLAKE3 hash.
pub fn hash128(bytes: &[u8]) -> [u8; 16] {
    let hash = blake3::hash(bytes);
    std::array::from_fn(|at| hash.as_bytes()[at])
}
