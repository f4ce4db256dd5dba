//! The envelope of a message in its document: elements after those of the message, with a root of their own.
//!
//! ```text
//! source  feed, headers  priority = high
//! becomes <envelope><source>feed</source><header name="priority">high</header></envelope>
//! ```
//!
//! The root has the name `$envelope`, which no message can write. What looks at all nodes of a message ends where it
//! begins: see `Document::message_end`. It is to queries what the document node is: it has no parent and no name.

use super::vocabulary::Vocabulary;
use super::{Attribute, Document, Element, Span, Text};
use crate::ids::{ElementId, NameId, NodeId, TagPathId, UriId};

/// The local name of the envelope's root. It is no name in XML.
pub const ENVELOPE_ROOT: &str = "$envelope";

/// Bytes to read, and the envelope that they came in if it is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message<'m> {
    pub bytes: &'m [u8],
    pub envelope: Option<Envelope<'m>>,
}

impl<'m> From<&'m [u8]> for Message<'m> {
    fn from(bytes: &'m [u8]) -> Message<'m> {
        Message { bytes, envelope: None }
    }
}

/// What queries can ask of the envelope of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Envelope<'m> {
    pub source: Option<&'m str>,
    pub topic: Option<&'m str>,
    /// A time in the form of `xs:dateTime`.
    pub received: Option<&'m str>,
    /// Names with their values.
    pub headers: Vec<(&'m str, &'m str)>,
}

/// Adds an envelope to a document.
pub(super) fn add(envelope: &Envelope<'_>, vocabulary: &mut Vocabulary, document: &mut Document) {
    let nodes = 1 + document.elements.len() + document.texts.len() + document.others.len();
    document.envelope = Some(document.elements.len().into());
    let mut writer = Writer { document, vocabulary, node: nodes as u32, tag_path: TagPathId::NONE };
    let root = writer.open(ENVELOPE_ROOT, ElementId::NONE, None);
    writer.tag_path = writer.document.element(root).tag_path;
    writer.field("source", envelope.source, root);
    writer.field("topic", envelope.topic, root);
    writer.field("received", envelope.received, root);
    for (name, value) in &envelope.headers {
        writer.element("header", Some(name), value, root);
    }
    writer.document.source.extend_from_slice(b"</envelope>");
    writer.close(root);
}

struct Writer<'a> {
    document: &'a mut Document,
    vocabulary: &'a mut Vocabulary,
    /// The number of the next node.
    node: u32,
    /// Of the root.
    tag_path: TagPathId,
}

impl Writer<'_> {
    fn field(&mut self, name: &str, value: Option<&str>, parent: ElementId) {
        if let Some(value) = value {
            self.element(name, None, value, parent);
        }
    }

    /// An element with a text, and perhaps an attribute `name`.
    fn element(&mut self, name: &str, attribute: Option<&str>, value: &str, parent: ElementId) {
        let element = self.open(name, parent, attribute);
        if !value.is_empty() {
            let start = self.document.source.len();
            self.escaped(value);
            let span = span(start, self.document.source.len());
            let start = self.document.text.len();
            self.document.text.extend_from_slice(value.as_bytes());
            let content = self::span(start, self.document.text.len());
            let node = self.next_node();
            self.document.texts.push(Text { parent: element, node, content, span });
        }
        self.document.source.extend_from_slice(b"</");
        self.document.source.extend_from_slice(name.as_bytes());
        self.document.source.push(b'>');
        self.close(element);
    }

    /// Begins an element: its start tag, and its attribute `name` if it has one.
    fn open(&mut self, name: &str, parent: ElementId, attribute: Option<&str>) -> ElementId {
        let id = ElementId::from(self.document.elements.len());
        let named = self.name(name);
        let node = self.next_node();
        let document = &mut *self.document;
        let (start, texts, text) = (document.source.len(), document.texts.len(), document.text.len());
        document.elements.push(Element {
            name: named,
            parent,
            end: id,
            tag_path: self.vocabulary.tag_path(self.tag_path, named),
            node,
            depth: 1 + parent.is_some() as u32,
            attributes_start: document.attributes.len() as u32,
            texts: span(texts, texts),
            text: span(text, text),
            span: span(start, start),
        });
        document.source.push(b'<');
        document.source.extend_from_slice(name.trim_start_matches('$').as_bytes());
        if let Some(value) = attribute {
            let name = self.name("name");
            let start = self.document.values.len();
            self.document.values.extend_from_slice(value.as_bytes());
            let value_span = span(start, self.document.values.len());
            self.document.attributes.push(Attribute { name, value: value_span });
            self.document.source.extend_from_slice(b" name=\"");
            self.escaped(value);
            self.document.source.push(b'"');
        }
        self.document.source.push(b'>');
        id
    }

    /// Ends an element after everything so far.
    fn close(&mut self, id: ElementId) {
        let document = &mut *self.document;
        let end = document.elements.len().into();
        let element = &mut document.elements[id.index()];
        element.end = end;
        element.texts.end = document.texts.len() as u32;
        element.text.end = document.text.len() as u32;
        element.span.end = document.source.len() as u32;
    }

    fn name(&mut self, local: &str) -> NameId {
        self.vocabulary.name(UriId(0), local.as_bytes())
    }

    fn next_node(&mut self) -> NodeId {
        self.node += 1;
        NodeId(self.node - 1)
    }

    /// Appends text to the source, as it can stand in content and in attributes.
    fn escaped(&mut self, text: &str) {
        let source = &mut self.document.source;
        for &byte in text.as_bytes() {
            match byte {
                b'&' => source.extend_from_slice(b"&amp;"),
                b'<' => source.extend_from_slice(b"&lt;"),
                b'>' => source.extend_from_slice(b"&gt;"),
                b'"' => source.extend_from_slice(b"&quot;"),
                byte => source.push(byte),
            }
        }
    }
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}
