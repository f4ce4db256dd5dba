//! A line of a decomposition as an absolute path, and how far below a branch point it ends.

use crate::query::ast::{Axis, NameTest, Node, Path, Step};
use crate::query::decompose::{DOCUMENT, Decomposition, LinearPath, Subject, TwigNode};

/// How many levels below an anchor's element a line through the anchor ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Exactly(u32),
    /// Only the first step below the anchor is `//`.
    AtLeast(u32),
    /// A later step is `//`: the level does not tell whether the elements between match.
    Unclear,
}

impl Decomposition<'_> {
    /// The steps of a twig node's path, from the root down.
    pub fn steps_to(&self, node: TwigNode) -> Vec<TwigNode> {
        let mut steps = Vec::new();
        let mut at = node;
        while at != DOCUMENT {
            steps.push(at);
            at = self.nodes[at as usize].parent;
        }
        steps.reverse();
        steps
    }

    /// The path of a line, without its test.
    pub fn path_of(&self, line: &LinearPath<'_>) -> Path {
        let step = |axis, node| Step { axis, node, predicates: Vec::new() };
        let twig = self.steps_to(line.node);
        let mut steps: Vec<Step> = twig
            .iter()
            .map(|&at| &self.nodes[at as usize])
            .map(|node| step(node.axis, Node::Element(node.test.clone())))
            .collect();
        match line.subject {
            Subject::Attribute(name) => {
                steps.push(step(line.axis, Node::Attribute(NameTest::clone(name))));
            }
            Subject::Text => steps.push(step(line.axis, Node::Text)),
            Subject::Element | Subject::Value | Subject::Position(_) => {}
        }
        Path { steps, ..Path::DOCUMENT }
    }

    /// How far below `anchor` the path to `node` ends; `None` if the path does not pass through `anchor`.
    pub fn reach(&self, node: TwigNode, anchor: TwigNode) -> Option<Reach> {
        let (mut at, mut steps, mut deep, mut clear) = (node, 0, false, true);
        while at != anchor {
            if at == DOCUMENT {
                return None;
            }
            let step = &self.nodes[at as usize];
            clear &= !deep;
            deep = step.axis == Axis::Descendant;
            steps += 1;
            at = step.parent;
        }
        Some(match (clear, deep) {
            (false, _) => Reach::Unclear,
            (true, true) => Reach::AtLeast(steps),
            (true, false) => Reach::Exactly(steps),
        })
    }
}
