//! A document in one line: names with their namespace in braces, values and text in brackets.

use crate::document::{Document, OtherKind, Vocabulary};
use crate::ids::{ElementId, NameId};

enum Node<'a> {
    Start(ElementId),
    Leaf(&'a str, &'a [u8], &'a [u8], &'a str),
}

pub fn document(document: &Document, vocabulary: &Vocabulary) -> String {
    let mut nodes: Vec<(u32, Node)> = Vec::new();
    for (index, element) in document.elements.iter().enumerate() {
        nodes.push((element.node.0, Node::Start(ElementId::from(index))));
    }
    for text in &document.texts {
        nodes.push((text.node.0, Node::Leaf("[", text.content.of(&document.text), b"", "]")));
    }
    for other in &document.others {
        let content = other.content.of(&document.values);
        nodes.push(match other.kind {
            OtherKind::Comment => (other.node.0, Node::Leaf("<!--", content, b"", "-->")),
            OtherKind::Instruction { target } => {
                (other.node.0, Node::Leaf("<?", target.of(&document.values), content, "?>"))
            }
        });
    }
    nodes.sort_by_key(|node| node.0);
    let mut shown = String::new();
    // The ends of elements come from the last node inside them.
    let mut open: Vec<ElementId> = Vec::new();
    for (number, node) in &nodes {
        while open.last().is_some_and(|&id| !holds(document, id, *number)) {
            let id = open.pop().unwrap();
            shown += &format!("</{}>", name(vocabulary, document.element(id).name));
        }
        match *node {
            Node::Start(id) => {
                shown += &format!("<{}", name(vocabulary, document.element(id).name));
                for attribute in document.attributes_of(id) {
                    let value = String::from_utf8_lossy(document.value(attribute));
                    shown += &format!(" {}=[{value}]", name(vocabulary, attribute.name));
                }
                shown.push('>');
                open.push(id);
            }
            Node::Leaf(before, first, second, after) => {
                shown += before;
                shown += &String::from_utf8_lossy(first);
                if before == "<?" {
                    shown.push(' ');
                }
                shown += &String::from_utf8_lossy(second);
                shown += after;
            }
        }
    }
    while let Some(id) = open.pop() {
        shown += &format!("</{}>", name(vocabulary, document.element(id).name));
    }
    shown
}

/// Whether node `number` is inside an element, found from parents alone.
fn holds(document: &Document, ancestor: ElementId, number: u32) -> bool {
    let texts = document.texts.iter().map(|text| (text.node, text.parent));
    let others = document.others.iter().map(|other| (other.node, other.parent));
    let elements = document.elements.iter().map(|element| (element.node, element.parent));
    let mut all = texts.chain(others).chain(elements);
    let Some((_, mut parent)) = all.find(|(node, _)| node.0 == number) else {
        return false;
    };
    while parent.is_some() {
        if parent == ancestor {
            return true;
        }
        parent = document.element(parent).parent;
    }
    false
}

fn name(vocabulary: &Vocabulary, id: NameId) -> String {
    let (uri, local) = vocabulary.name_parts(id);
    let (uri, local) = (String::from_utf8_lossy(vocabulary.uri_text(uri)), String::from_utf8_lossy(local));
    if uri.is_empty() { local.into_owned() } else { format!("{{{uri}}}{local}") }
}
