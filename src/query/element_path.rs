//! Paths of element steps without predicates: what the shared automaton matches.

use super::ast::{Axis, NameTest, Node, Path, Start};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ElementStep {
    pub axis: Axis,
    pub test: NameTest,
}

/// Element steps without predicates, from the document node or from a bound element.
pub type ElementPath = Vec<ElementStep>;

/// The nodes that a path selects at the elements where its element path ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Leaf {
    Element,
    Attribute(NameTest),
    Text,
}

/// A relative path as an element path and a leaf. `None` if the automaton cannot match it: it has
/// predicates, or selects attributes or text at every depth.
pub fn streamed(path: &Path) -> Option<(ElementPath, Leaf)> {
    if path.start != Start::Context {
        return None;
    }
    let mut line = ElementPath::with_capacity(path.steps.len());
    let mut leaf = Leaf::Element;
    for step in &path.steps {
        if !step.predicates.is_empty() {
            return None;
        }
        match (&step.node, step.axis) {
            (Node::Element(test), axis) => line.push(ElementStep { axis, test: test.clone() }),
            (Node::Attribute(test), Axis::Child) => leaf = Leaf::Attribute(test.clone()),
            (Node::Text, Axis::Child) => leaf = Leaf::Text,
            (_, Axis::Descendant) => return None,
        }
    }
    Some((line, leaf))
}

/// The element steps of a path, without their predicates, up to the first other step.
pub fn skeleton(path: &Path) -> ElementPath {
    path.steps
        .iter()
        .map_while(|step| match &step.node {
            Node::Element(test) => Some(ElementStep { axis: step.axis, test: test.clone() }),
            Node::Attribute(_) | Node::Text => None,
        })
        .collect()
}
