//! The nodes directly below a node: child elements, attributes, texts.

use crate::document::{Document, NodeRef, Span};
use crate::ids::ElementId;
use crate::segment::twig::STEP_TEXT;

/// The child elements of a node. The envelope is none of the document node's.
pub fn children(document: &Document, context: NodeRef) -> impl Iterator<Item = ElementId> + use<'_> {
    let (mut next, end) = match context {
        NodeRef::Document => (0, document.message_end() as u32),
        NodeRef::Element(element) => (element.0 + 1, document.element(element).end.0),
        _ => (0, 0),
    };
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let child = ElementId(next);
        next = document.element(child).end.0;
        Some(child)
    })
}

/// How many attributes or text nodes `leaves` reads at most.
pub fn leaf_count(document: &Document, kind: u32, parent: ElementId) -> usize {
    match kind {
        STEP_TEXT => {
            let within = document.element(parent).texts;
            (within.end - within.start) as usize
        }
        _ => document.attributes_of(parent).len(),
    }
}

/// The attributes or text nodes of an element.
pub fn leaves(document: &Document, kind: u32, parent: ElementId) -> impl Iterator<Item = NodeRef> {
    let (mut attributes, mut texts) = (0..0, Span::default());
    if kind == STEP_TEXT {
        texts = document.element(parent).texts;
    } else {
        let start = document.element(parent).attributes_start;
        attributes = start..start + document.attributes_of(parent).len() as u32;
    }
    let attributes = attributes.map(move |place| NodeRef::Attribute(parent, place));
    let texts = (texts.start..texts.end)
        .filter(move |&text| document.texts[text as usize].parent == parent)
        .map(NodeRef::Text);
    attributes.chain(texts)
}
