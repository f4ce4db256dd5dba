//! Documents → tables of nodes, attributes, tag paths and errors: one pass over each document, in pre-order.

use std::sync::Arc;

use arrow_array::builder::{Int8Builder, Int32Builder, LargeStringBuilder, UInt32Builder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use rustc_hash::FxHashMap;

use super::error::ErrorTable;
use super::messages::Messages;
use super::tables::{Column, record_batch};
use crate::document::{Document, OtherKind, Reader, Span, Vocabulary};
use crate::ids::{ElementId, NameId, TagPathId};
use crate::limits::Limits;

/// The tables of `tamis.Batch`.
pub struct Tables {
    pub nodes: RecordBatch,
    pub attributes: RecordBatch,
    pub tag_paths: RecordBatch,
    pub errors: RecordBatch,
}

pub fn read_batch(messages: &Messages, limits: &Limits) -> Tables {
    let mut reader = Reader::new();
    let mut document = Document::default();
    let mut nodes = NodeTable::default();
    let mut attributes = AttributeTable::default();
    let mut names = BatchNames::default();
    let mut errors = ErrorTable::new("message");
    for (number, message) in messages.iter().enumerate() {
        match message.and_then(|message| reader.read(message.bytes, limits, &mut document)) {
            Ok(()) => {
                names.set_epoch(reader.vocabulary());
                nodes.push(number as u32, &document, reader.vocabulary(), &mut names);
                attributes.push(number as u32, &document, reader.vocabulary(), &mut names);
            }
            Err(error) => errors.push_read(number, &error),
        }
    }
    Tables {
        nodes: nodes.finish(&names),
        attributes: attributes.finish(&names),
        tag_paths: names.finish_tag_paths(),
        errors: errors.finish(),
    }
}

pub fn read_all(messages: &Messages, limits: &Limits) -> u64 {
    let mut reader = Reader::new();
    let mut document = Document::default();
    let mut elements = 0;
    for message in messages.iter().flatten() {
        if reader.read(message.bytes, limits, &mut document).is_ok() {
            elements += document.elements.len() as u64;
        }
    }
    elements
}

/// The dictionary of a batch for columns of strings.
#[derive(Default)]
struct StringDictionary {
    texts: Vec<Box<str>>,
    keys: FxHashMap<Box<str>, i32>,
}

impl StringDictionary {
    fn key(&mut self, bytes: &[u8]) -> i32 {
        // The reader accepts only UTF-8.
        let text = str::from_utf8(bytes).unwrap_or_default();
        if let Some(&key) = self.keys.get(text) {
            return key;
        }
        let key = self.texts.len() as i32;
        self.texts.push(text.into());
        self.keys.insert(text.into(), key);
        key
    }

    fn column(&self, mut keys: Int32Builder) -> ArrayRef {
        let texts = Arc::new(StringArray::from_iter_values(&self.texts));
        Arc::new(
            DictionaryArray::<Int32Type>::try_new(keys.finish(), texts).expect("`key` returns valid keys"),
        )
    }
}

/// A name as keys of the string dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NameKeys {
    uri: i32,
    local: i32,
}

/// Names and tag paths of a batch. The reader's vocabulary may be cleared in the middle of a batch (a new epoch),
/// so its ids are translated to numbers of the batch, and the translation is cached for an epoch.
#[derive(Default)]
struct BatchNames {
    strings: StringDictionary,
    epoch: Option<u64>,
    names: FxHashMap<NameId, NameKeys>,
    paths: FxHashMap<TagPathId, u32>,
    path_numbers: FxHashMap<(Option<u32>, NameKeys), u32>,
    path_list: Vec<(Option<u32>, NameKeys)>,
}

impl BatchNames {
    fn set_epoch(&mut self, vocabulary: &Vocabulary) {
        if self.epoch != Some(vocabulary.epoch()) {
            self.epoch = Some(vocabulary.epoch());
            self.names.clear();
            self.paths.clear();
        }
    }

    fn name(&mut self, id: NameId, vocabulary: &Vocabulary) -> NameKeys {
        if let Some(&keys) = self.names.get(&id) {
            return keys;
        }
        let (uri, local) = vocabulary.name_parts(id);
        let keys =
            NameKeys { uri: self.strings.key(vocabulary.uri_text(uri)), local: self.strings.key(local) };
        self.names.insert(id, keys);
        keys
    }

    /// In pre-order a parent precedes its children, so the parent of a path has a number already.
    fn tag_path(&mut self, id: TagPathId, vocabulary: &Vocabulary) -> u32 {
        if let Some(&number) = self.paths.get(&id) {
            return number;
        }
        let (parent, name) = vocabulary.tag_path_parts(id);
        let parent = parent.is_some().then(|| self.paths[&parent]);
        let key = (parent, self.name(name, vocabulary));
        let next = self.path_list.len() as u32;
        let number = *self.path_numbers.entry(key).or_insert(next);
        if number == next {
            self.path_list.push(key);
        }
        self.paths.insert(id, number);
        number
    }

    fn finish_tag_paths(&self) -> RecordBatch {
        let (mut number, mut parent) = (UInt32Builder::new(), UInt32Builder::new());
        let (mut namespace, mut name) = (Int32Builder::new(), Int32Builder::new());
        for (at, (parent_number, keys)) in self.path_list.iter().enumerate() {
            number.append_value(at as u32);
            parent.append_option(*parent_number);
            namespace.append_value(keys.uri);
            name.append_value(keys.local);
        }
        let columns: [Column; 4] = [
            ("tag_path", Arc::new(number.finish()), false),
            ("parent", Arc::new(parent.finish()), true),
            ("namespace", self.strings.column(namespace), false),
            ("name", self.strings.column(name), false),
        ];
        record_batch(columns, [])
    }
}

const KINDS: [&str; 4] = ["element", "text", "comment", "instruction"];
const ELEMENT: i8 = 0;
const TEXT: i8 = 1;
const COMMENT: i8 = 2;
const INSTRUCTION: i8 = 3;

#[derive(Default)]
struct NodeTable {
    message: UInt32Builder,
    node: UInt32Builder,
    kind: Int8Builder,
    namespace: Int32Builder,
    name: Int32Builder,
    parent: UInt32Builder,
    depth: UInt32Builder,
    /// A vector, not a builder: a value is set when the sub-tree ends.
    end: Vec<u32>,
    tag_path: UInt32Builder,
    value: LargeStringBuilder,
    start: UInt32Builder,
    stop: UInt32Builder,
    /// Stack of the rows whose sub-tree has not ended, with their depths.
    open: Vec<(usize, u32)>,
}

impl NodeTable {
    /// Appends all nodes of a document except the document node, whose number is 0.
    fn push(&mut self, message: u32, document: &Document, vocabulary: &Vocabulary, names: &mut BatchNames) {
        let mut elements = document.elements.iter().peekable();
        let mut texts = document.texts.iter().peekable();
        let mut others = document.others.iter().peekable();
        let mut node = 1;
        loop {
            if let Some(element) = elements.next_if(|element| element.node.0 == node) {
                let keys = names.name(element.name, vocabulary);
                let path = names.tag_path(element.tag_path, vocabulary);
                self.push_common(message, node, ELEMENT, document, element.parent, element.span);
                self.namespace.append_value(keys.uri);
                self.name.append_value(keys.local);
                self.tag_path.append_value(path);
                self.value.append_null();
            } else if let Some(text) = texts.next_if(|text| text.node.0 == node) {
                self.push_common(message, node, TEXT, document, text.parent, text.span);
                self.push_leaf(None, text.content.of(&document.text));
            } else if let Some(other) = others.next_if(|other| other.node.0 == node) {
                let (kind, target) = match other.kind {
                    OtherKind::Comment => (COMMENT, None),
                    OtherKind::Instruction { target } => {
                        (INSTRUCTION, Some(names.strings.key(target.of(&document.values))))
                    }
                };
                self.push_common(message, node, kind, document, other.parent, other.span);
                self.push_leaf(target, other.content.of(&document.values));
            } else {
                break;
            }
            node += 1;
        }
        self.close_subtrees(0, node);
    }

    /// Appends to the columns that nodes of all kinds have.
    fn push_common(
        &mut self,
        message: u32,
        node: u32,
        kind: i8,
        document: &Document,
        parent: ElementId,
        span: Span,
    ) {
        let (parent, depth) = match parent.is_some() {
            true => (document.element(parent).node.0, document.element(parent).depth + 1),
            false => (0, 1),
        };
        self.close_subtrees(depth, node);
        self.open.push((self.end.len(), depth));
        self.end.push(0);
        self.message.append_value(message);
        self.node.append_value(node);
        self.kind.append_value(kind);
        self.parent.append_value(parent);
        self.depth.append_value(depth);
        self.start.append_value(span.start);
        self.stop.append_value(span.end);
    }

    fn push_leaf(&mut self, name: Option<i32>, content: &[u8]) {
        self.namespace.append_null();
        self.name.append_option(name);
        self.tag_path.append_null();
        self.value.append_value(str::from_utf8(content).unwrap_or_default());
    }

    /// Pops the rows whose sub-tree ends before a node at `depth`, and sets their `end`.
    fn close_subtrees(&mut self, depth: u32, node: u32) {
        while let Some((row, _)) = self.open.pop_if(|(_, open)| *open >= depth) {
            self.end[row] = node;
        }
    }

    fn finish(mut self, names: &BatchNames) -> RecordBatch {
        let kinds = Arc::new(StringArray::from_iter_values(KINDS));
        let kind = DictionaryArray::<Int8Type>::try_new(self.kind.finish(), kinds).expect("four kinds");
        let columns: [Column; 12] = [
            ("message", Arc::new(self.message.finish()), false),
            ("node", Arc::new(self.node.finish()), false),
            ("kind", Arc::new(kind), false),
            ("namespace", names.strings.column(self.namespace), true),
            ("name", names.strings.column(self.name), true),
            ("parent", Arc::new(self.parent.finish()), false),
            ("depth", Arc::new(self.depth.finish()), false),
            ("end", Arc::new(arrow_array::UInt32Array::from(self.end)), false),
            ("tag_path", Arc::new(self.tag_path.finish()), true),
            ("value", Arc::new(self.value.finish()), true),
            ("span_start", Arc::new(self.start.finish()), false),
            ("span_end", Arc::new(self.stop.finish()), false),
        ];
        record_batch(columns, [])
    }
}

#[derive(Default)]
struct AttributeTable {
    message: UInt32Builder,
    node: UInt32Builder,
    namespace: Int32Builder,
    name: Int32Builder,
    value: LargeStringBuilder,
}

impl AttributeTable {
    fn push(&mut self, message: u32, document: &Document, vocabulary: &Vocabulary, names: &mut BatchNames) {
        for (at, element) in document.elements.iter().enumerate() {
            for attribute in document.attributes_of(ElementId::from(at)) {
                let keys = names.name(attribute.name, vocabulary);
                self.message.append_value(message);
                self.node.append_value(element.node.0);
                self.namespace.append_value(keys.uri);
                self.name.append_value(keys.local);
                self.value.append_value(str::from_utf8(document.value(attribute)).unwrap_or_default());
            }
        }
    }

    fn finish(mut self, names: &BatchNames) -> RecordBatch {
        let columns: [Column; 5] = [
            ("message", Arc::new(self.message.finish()), false),
            ("node", Arc::new(self.node.finish()), false),
            ("namespace", names.strings.column(self.namespace), false),
            ("name", names.strings.column(self.name), false),
            ("value", Arc::new(self.value.finish()), false),
        ];
        record_batch(columns, [])
    }
}
