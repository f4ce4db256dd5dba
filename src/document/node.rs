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
}

impl Document {
    /// A node's string-value.
    pub fn value_of(&self, node: NodeRef) -> &[u8] {
        match node {
            NodeRef::Document => &self.text,
            NodeRef::Element(element) => self.string_value(element),
            NodeRef::Attribute(_, place) => self.value(&self.attributes[place as usize]),
            NodeRef::Text(place) => self.texts[place as usize].content.of(&self.text),
        }
    }

    /// The range of a node's string-value in `Document::text`; `None` for an attribute.
    pub fn text_span(&self, node: NodeRef) -> Option<Span> {
        match node {
            NodeRef::Document => Some(Span { start: 0, end: self.text.len() as u32 }),
            NodeRef::Element(element) => Some(self.element(element).text),
            NodeRef::Attribute(..) => None,
            NodeRef::Text(place) => Some(self.texts[place as usize].content),
        }
    }

    /// A node's number in pre-order; an attribute has that of its element.
    pub fn node_id(&self, node: NodeRef) -> NodeId {
        match node {
            NodeRef::Document => NodeId(0),
            NodeRef::Element(element) | NodeRef::Attribute(element, _) => self.element(element).node,
            NodeRef::Text(place) => self.texts[place as usize].node,
        }
    }

    /// A key that sorts nodes in document order: attributes follow their element.
    pub fn order(&self, node: NodeRef) -> (NodeId, u32) {
        let within = if let NodeRef::Attribute(_, place) = node { place + 1 } else { 0 };
        (self.node_id(node), within)
    }
}
