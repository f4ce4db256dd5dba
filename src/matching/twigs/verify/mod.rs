//! Whether a query matches, decided on the document itself: the compiled twig, walked from the
//! document node.
//!
//! Costs at most steps × elements × depth, whatever the query and the message: from one context a step
//! is tried once on an element, for `//` steps keep where they were tried, and an element has as many
//! contexts around it as it is deep. For one way after the other, that much for each.
//!
//! From context to context, a message's walks remember what led nowhere and what predicates said. That
//! takes room for each element, and not for each step: past `MEMO_PER_ELEMENT` it is forgotten and begins anew, which
//! costs time again where one query asks more than a hundred predicates of the same elements.

pub mod by_value;
mod descend;
mod memo;
mod select;
pub mod substring_cache;
mod tried;
mod valued;

use crate::document::{Document, NodeRef, Span};
use crate::ids::{ElementId, NameId};
use crate::matching::automaton::names::Names;
use crate::matching::twigs::by_name::ByName;
use crate::query::number::number;
use crate::segment::twig::*;
use crate::tuning::{MEMO, MEMO_PER_ELEMENT};

pub use memo::Memo;
use tried::Tried;

/// Where a walk leads.
enum Sink<'s> {
    /// To some node that passes the test.
    Test(u32),
    /// To the first node in document order.
    First { visits: Visits, first: Option<NodeRef> },
    /// To all nodes that pass the test, each visited once.
    Nodes { test: u32, visits: Visits, nodes: &'s mut Vec<NodeRef> },
    /// To all ways there, one node per step.
    Tuples { end: End, failed: Tried, way: Vec<NodeRef>, tuples: &'s mut Vec<Vec<NodeRef>>, limit: usize },
}

/// Where a walk was that goes everywhere once.
#[derive(Default)]
struct Visits {
    /// What was tried in this walk, whatever came of it.
    tried: Tried,
    /// How often it came to where it leads, or passed by what it did not need to look at.
    met: usize,
}

/// What a way leads to.
#[derive(Clone, Copy)]
enum End {
    /// Each node that passes the test.
    Test(u32),
    Node(NodeRef),
}

impl Sink<'_> {
    /// What leads nowhere: in any walk, but for ways to one node.
    fn failed<'t>(&'t mut self, memo: &'t mut Memo) -> &'t mut Tried {
        if let Sink::Tuples { failed, .. } = self { failed } else { &mut memo.failed }
    }

    fn visits(&mut self) -> Option<&mut Visits> {
        match self {
            Sink::First { visits, .. } | Sink::Nodes { visits, .. } => Some(visits),
            Sink::Test(_) | Sink::Tuples { .. } => None,
        }
    }

    /// Grows unless a part of the walk surely led nowhere.
    #[inline]
    fn met(&self) -> usize {
        match self {
            Sink::Test(_) => 0,
            Sink::First { visits, .. } | Sink::Nodes { visits, .. } => visits.met,
            Sink::Tuples { tuples, .. } => tuples.len(),
        }
    }
}

/// Walks twigs of one segment over one document.
pub struct Verifier<'a> {
    words: &'a [u32],
    document: &'a Document,
    names: &'a Names,
    by_name: &'a mut ByName,
    memo: &'a mut Memo,
}

/// A path, decoded: where its test and its first step stand.
#[derive(Clone, Copy)]
struct Path {
    test: u32,
    step: u32,
    steps: u32,
}

/// One step of a path, decoded.
#[derive(Clone, Copy)]
struct Step {
    at: u32,
    kind: u32,
    descendant: bool,
    memo: bool,
    label: u32,
    predicates: u32,
}

impl Step {
    fn next(self) -> u32 {
        self.at + 2 + self.predicates
    }
}

impl<'a> Verifier<'a> {
    pub fn new(
        words: &'a [u32],
        document: &'a Document,
        names: &'a Names,
        by_name: &'a mut ByName,
        memo: &'a mut Memo,
    ) -> Verifier<'a> {
        Verifier { words, document, names, by_name, memo }
    }

    /// Whether the query whose twig starts at `offset` matches.
    pub fn matches(&mut self, offset: u32) -> bool {
        self.expr(offset, NodeRef::Document)
    }

    fn expr(&mut self, offset: u32, context: NodeRef) -> bool {
        let word = self.words[offset as usize];
        match word & 0xFF {
            AND => (1..=word >> 8).all(|at| self.expr(self.words[(offset + at) as usize], context)),
            OR => (1..=word >> 8).any(|at| self.expr(self.words[(offset + at) as usize], context)),
            NOT => !self.expr(self.words[offset as usize + 1], context),
            _ => self.path(offset, context),
        }
    }

    fn decode(&self, path: u32) -> Path {
        let test = self.words[path as usize + 1];
        let literal = match test & 0xFF {
            TEST_EXISTS => 0,
            TEST_NUMBER => 2,
            _ => (test >> 16).div_ceil(4),
        };
        Path { test: path + 1, step: path + 2 + literal, steps: self.words[path as usize] >> 16 }
    }

    fn path(&mut self, offset: u32, context: NodeRef) -> bool {
        let absolute = self.words[offset as usize] >> 8 & ABSOLUTE != 0;
        if !absolute || context == NodeRef::Document {
            return self.path_from(offset, context);
        }
        if let Some(&known) = self.memo.absolute.get(&offset) {
            return known;
        }
        let holds = self.path_from(offset, NodeRef::Document);
        self.memo.absolute.insert(offset, holds);
        holds
    }

    fn path_from(&mut self, offset: u32, context: NodeRef) -> bool {
        let Path { test, step, steps } = self.decode(offset);
        match self.words[test as usize] & 0xFF {
            kind @ (TEST_CONTAINS | TEST_STARTS_WITH) => {
                // A node set stands for its first node, an empty one for the empty string.
                let first = self.first(offset, context);
                let literal = self.literal(test);
                match (kind, first) {
                    (TEST_CONTAINS, Some(node)) => self.contains(test, node, literal),
                    (_, Some(node)) => self.document.value_of(node).starts_with(literal),
                    (_, None) => literal.is_empty(),
                }
            }
            _ => self.walk(step, steps, context, &mut Sink::Test(test)),
        }
    }

    /// Whether the literal of a test is in a node's string-value.
    fn contains(&mut self, test: u32, node: NodeRef, literal: &[u8]) -> bool {
        let document = self.document;
        match document.text_span(node) {
            Some(span) => self.memo.sought.entry(test).or_default().is_in(&document.text, span, literal),
            None => memchr::memmem::find(document.value_of(node), literal).is_some(),
        }
    }

    /// Whether a test looks at the first node only.
    fn looks_at_first(&self, test: u32) -> bool {
        matches!(self.words[test as usize] & 0xFF, TEST_CONTAINS | TEST_STARTS_WITH)
    }

    fn literal(&self, test: u32) -> &'a [u8] {
        let words: &'a [u32] = self.words;
        let bytes: &'a [u8] = bytemuck::cast_slice(&words[test as usize + 1..]);
        &bytes[..(words[test as usize] >> 16) as usize]
    }

    /// The number that a test compares with.
    fn constant(&self, test: u32) -> f64 {
        let words = &self.words[test as usize + 1..];
        f64::from_bits(words[0] as u64 | (words[1] as u64) << 32)
    }

    /// Whether a node passes a test.
    fn test(&self, test: u32, node: NodeRef) -> bool {
        let word = self.words[test as usize];
        let operator = word >> 8 & 0xFF;
        match word & 0xFF {
            TEST_TEXT => {
                let equal = self.document.value_of(node) == self.literal(test);
                equal == (operator == 0)
            }
            TEST_NUMBER => {
                let (value, constant) = (number(self.document.value_of(node)), self.constant(test));
                match operator {
                    0 => value == constant,
                    1 => value != constant,
                    2 => value < constant,
                    3 => value <= constant,
                    4 => value > constant,
                    _ => value >= constant,
                }
            }
            _ => true,
        }
    }

    fn step(&self, at: u32) -> Step {
        let word = self.words[at as usize];
        Step {
            at,
            kind: word & 0xF,
            descendant: word & STEP_DESCENDANT != 0,
            memo: word & STEP_MEMO != 0,
            label: self.words[at as usize + 1],
            predicates: word >> 8,
        }
    }

    /// Walks the remaining steps from a context node. True ends the walk.
    fn walk(&mut self, at: u32, steps: u32, context: NodeRef, sink: &mut Sink<'_>) -> bool {
        if steps == 0 {
            return self.arrive(context, sink);
        }
        let step = self.step(at);
        if step.descendant {
            return self.descend(step, steps, context, sink);
        }
        if self.has_positions(step) {
            return self.counted(step, steps, context, sink);
        }
        match (step.kind, context) {
            (STEP_NAME | STEP_ANY | STEP_NAMESPACE, _) => self.enter_children(step, steps, context, sink),
            (_, NodeRef::Element(parent)) => self.enter_leaves(step, steps, parent, sink),
            _ => false,
        }
    }

    fn has_positions(&self, step: Step) -> bool {
        (0..step.predicates).any(|predicate| self.predicate(step, predicate) & POSITION != 0)
    }

    fn enter_leaves(&mut self, step: Step, steps: u32, parent: ElementId, sink: &mut Sink<'_>) -> bool {
        leaves(self.document, step.kind, parent)
            .any(|leaf| self.admits_leaf(step, leaf) && self.enter(step, steps, leaf, sink))
    }

    /// A step with positions, from one parent: predicates count what the ones before them left.
    fn counted(&mut self, step: Step, steps: u32, parent: NodeRef, sink: &mut Sink<'_>) -> bool {
        let mut nodes: Vec<NodeRef> = match (step.kind, parent) {
            (STEP_NAME | STEP_ANY | STEP_NAMESPACE, parent) => children(self.document, parent)
                .filter(|&element| self.admits(step, element))
                .map(NodeRef::Element)
                .collect(),
            (kind, NodeRef::Element(parent)) => {
                leaves(self.document, kind, parent).filter(|&leaf| self.admits_leaf(step, leaf)).collect()
            }
            _ => Vec::new(),
        };
        for predicate in 0..step.predicates {
            let predicate = self.predicate(step, predicate);
            if predicate & POSITION != 0 {
                let place = (predicate & !POSITION) as usize;
                nodes = nodes.get(place.wrapping_sub(1)).copied().into_iter().collect();
            } else {
                nodes.retain(|&node| self.holds(step, predicate, node));
            }
        }
        nodes.into_iter().any(|node| self.onward(step, steps, node, sink))
    }

    fn predicate(&self, step: Step, predicate: u32) -> u32 {
        self.words[(step.at + 2 + predicate) as usize]
    }

    /// A node that passes the step's name test: its predicates, then the rest of the path.
    #[inline]
    fn enter(&mut self, step: Step, steps: u32, node: NodeRef, sink: &mut Sink<'_>) -> bool {
        if let Sink::First { first: Some(first), visits } = sink
            && self.document.order(node) >= self.document.order(*first)
        {
            visits.met += 1;
            return false;
        }
        for predicate in 0..step.predicates {
            if !self.holds(step, self.predicate(step, predicate), node) {
                return false;
            }
        }
        self.onward(step, steps, node, sink)
    }

    /// Whether a predicate that is not a position holds of a node.
    #[inline]
    fn holds(&mut self, step: Step, predicate: u32, node: NodeRef) -> bool {
        let NodeRef::Element(element) = node else {
            return self.expr(predicate, node);
        };
        if !step.memo {
            return self.expr(predicate, node);
        }
        if let Some(known) = self.memo.predicates.get(predicate, element) {
            return known;
        }
        let holds = self.expr(predicate, node);
        self.memo.predicates.insert(predicate, element, holds, self.most_kept());
        holds
    }

    /// How much of a kind is remembered at most.
    fn most_kept(&self) -> usize {
        MEMO_PER_ELEMENT * self.document.elements.len() + MEMO
    }

    /// The rest of the path from a node that passed its step.
    fn onward(&mut self, step: Step, steps: u32, node: NodeRef, sink: &mut Sink<'_>) -> bool {
        if let Sink::Tuples { way, .. } = sink {
            way.push(node);
        }
        let over = self.walk(step.next(), steps - 1, node, sink);
        if let Sink::Tuples { way, .. } = sink {
            way.pop();
        }
        over
    }

    fn arrive(&mut self, node: NodeRef, sink: &mut Sink<'_>) -> bool {
        match sink {
            Sink::Test(test) => self.test(*test, node),
            Sink::First { first, visits } => {
                visits.met += 1;
                if first.is_none_or(|first| self.document.order(node) < self.document.order(first)) {
                    *first = Some(node);
                }
                false
            }
            Sink::Nodes { test, nodes, visits } => {
                if self.test(*test, node) {
                    visits.met += 1;
                    nodes.push(node);
                }
                false
            }
            Sink::Tuples { end, way, tuples, limit, .. } => {
                let ends = match *end {
                    End::Test(test) => self.test(test, node),
                    End::Node(end) => node == end,
                };
                if ends {
                    tuples.push(way.clone());
                }
                tuples.len() >= *limit
            }
        }
    }

    /// Whether an element passes a step's name test.
    #[inline(always)]
    fn admits(&self, step: Step, element: ElementId) -> bool {
        self.admits_name(step.kind, step.label, self.document.element(element).name)
    }

    fn admits_leaf(&self, step: Step, leaf: NodeRef) -> bool {
        match leaf {
            NodeRef::Attribute(_, place) => {
                let name = self.document.attributes[place as usize].name;
                self.admits_name(step.kind - STEP_ATTRIBUTE_NAME, step.label, name)
            }
            _ => true,
        }
    }

    #[inline(always)]
    fn admits_name(&self, kind: u32, label: u32, name: NameId) -> bool {
        match kind {
            STEP_NAME => self.names.name_of(label) == name,
            STEP_ANY => true,
            _ => self.names.of(name).namespace == label,
        }
    }

    /// The elements below a node, as a range.
    fn range_below(&self, context: NodeRef) -> (u32, u32) {
        match context {
            NodeRef::Document => (0, self.document.elements.len() as u32),
            NodeRef::Element(element) => (element.0 + 1, self.document.element(element).end.0),
            _ => (0, 0),
        }
    }
}

/// The child elements of a node.
fn children(document: &Document, context: NodeRef) -> impl Iterator<Item = ElementId> {
    let (mut next, end) = match context {
        NodeRef::Document => (0, document.elements.len() as u32),
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

/// The attributes or text nodes of an element.
fn leaves(document: &Document, kind: u32, parent: ElementId) -> impl Iterator<Item = NodeRef> {
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
