//! A node of a document that queries can see.

use crate::document::{Document, Span};
use crate::ids::{ElementId, NodeId};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeRef {
    Document,
    Element(ElementId),
    /// Its element, and its index in `Document::attributes`.
    Attribute(ElementId, u32),
    /// Its index in `Document::texts`.
    Text(u32),
    /// A comment or processing instruction: its index in `Document::others`.
    Other(u32),
}

impl Document {
    /// A node's string-value.
    pub fn value_of(&self, node: NodeRef) -> &[u8] {
        match node {
            NodeRef::Document => self.document_text().of(&self.text),
            NodeRef::Element(element) => self.string_value(element),
            NodeRef::Attribute(_, place) => self.value(&self.attributes[place as usize]),
            NodeRef::Text(place) => self.texts[place as usize].content.of(&self.text),
            NodeRef::Other(place) => self.others[place as usize].content.of(&self.values),
        }
    }

    /// The range of a node's string-value in `Document::text`; `None` for nodes whose value is not part of it.
    pub fn text_span(&self, node: NodeRef) -> Option<Span> {
        match node {
            NodeRef::Document => Some(self.document_text()),
            NodeRef::Element(element) => Some(self.element(element).text),
            NodeRef::Attribute(..) | NodeRef::Other(_) => None,
            NodeRef::Text(place) => Some(self.texts[place as usize].content),
        }
    }

    /// The string-value of the document node: that of the root element.
    fn document_text(&self) -> Span {
        self.elements.first().map_or(Span::default(), |root| root.text)
    }

    /// Whether a node belongs to the envelope, and not to the message.
    pub fn is_of_envelope(&self, node: NodeRef) -> bool {
        self.envelope.is_some_and(|root| self.node_id(node) >= self.element(root).node)
    }

    /// A node's number in pre-order; an attribute has that of its element.
    pub fn node_id(&self, node: NodeRef) -> NodeId {
        match node {
            NodeRef::Document => NodeId(0),
            NodeRef::Element(element) | NodeRef::Attribute(element, _) => self.element(element).node,
            NodeRef::Text(place) => self.texts[place as usize].node,
            NodeRef::Other(place) => self.others[place as usize].node,
        }
    }

    /// A key that sorts nodes in document order: attributes follow their element.
    pub fn order(&self, node: NodeRef) -> (NodeId, u32) {
        let within = if let NodeRef::Attribute(_, place) = node { place + 1 } else { 0 };
        (self.node_id(node), within)
    }

    /// The element itself, or the one that a node belongs to.
    pub fn element_around(&self, node: NodeRef) -> Option<ElementId> {
        let element = match node {
            NodeRef::Document => ElementId::NONE,
            NodeRef::Element(element) | NodeRef::Attribute(element, _) => element,
            NodeRef::Text(place) => self.texts[place as usize].parent,
            NodeRef::Other(place) => self.others[place as usize].parent,
        };
        element.is_some().then_some(element)
    }

    /// The name of an element or attribute as the message writes it, with its prefix. `None` for other nodes,
    /// and for an attribute that a DTD adds.
    pub fn qualified_name(&self, node: NodeRef) -> Option<&[u8]> {
        let element = match node {
            NodeRef::Element(element) if self.envelope == Some(element) => return None,
            NodeRef::Element(element) | NodeRef::Attribute(element, _) => element,
            _ => return None,
        };
        let tag = &self.element(element).span.of(&self.source)[1..];
        let (name, mut rest) = split_name(tag);
        let NodeRef::Attribute(_, place) = node else { return Some(name) };
        let mut skipped = place - self.element(element).attributes_start;
        loop {
            rest = rest.trim_ascii_start();
            let (name, after) = split_name(rest);
            if name.is_empty() {
                return None;
            }
            let quote = after.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
            let value = &after[quote + 1..];
            rest = &value[memchr::memchr(after[quote], value)? + 1..];
            let is_declaration = name == b"xmlns" || name.starts_with(b"xmlns:");
            match (is_declaration, skipped) {
                (true, _) => {}
                (false, 0) => return Some(name),
                (false, _) => skipped -= 1,
            }
        }
    }
}

/// The name at the start of markup, and what follows it.
fn split_name(markup: &[u8]) -> (&[u8], &[u8]) {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
    markup.split_at(markup.iter().position(is_end).unwrap_or(markup.len()))
}
