//! Verification: evaluates a query on the document, by walking its compiled twig from the document node.
//!
//! Every element, attribute and text that is tried is counted (`Budget`), so that one query cannot take forever. A
//! walk takes at most steps × elements × depth: from one context a step is tried once on an element, because `//`
//! steps remember which ranges they tried, and an element lies in as many contexts as it is deep.
//!
//! All walks of a message share a `Memo` of what failed and of which elements pass which predicates. Its size is
//! bounded by the elements of the message (`MEMO_PER_ELEMENT`). With more, it is dropped and filled again, which costs
//! time if one query has more than a hundred predicates on the same elements.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | booleans and paths |
//! | `descend` | steps with `//` |
//! | `below` | nodes directly below a node |
//! | `tried` | ranges that `//` steps were tried on |
//! | `valued`, `by_value` | elements looked up by value |
//! | `memo` | results shared by all queries of a message |
//! | `sink` | what a walk looks for, what it visited |
//! | `select` | nodes and bindings |
//! | `substring_cache` | substring search in string-values |
//! | `tree` | the message, and records of local data |
//! | `value/` | computed values |

mod below;
pub mod by_value;
mod descend;
mod memo;
mod select;
mod sink;
pub mod substring_cache;
mod tree;
mod tried;
mod value;
mod valued;

use crate::data::{Node, TreeId};
use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::{ElementId, LabelId, NameId};
use crate::matching::automaton::names::Names;
use crate::matching::budget::{Budget, Decided, all, any};
use crate::matching::twigs::by_name::ElementsByName;
use crate::query::functions::normalize_space;
use crate::query::number::number;
use crate::segment::twig::*;

use below::{children, leaf_count, leaves};
pub use memo::Memo;
use sink::{End, Sink, Visits};
pub use tree::Trees;
pub use value::{Evaluated, Item};
use value::{Focus, NodeTable, Variables};

/// Walks twigs of one segment over one document.
pub struct Verifier<'a> {
    words: &'a [u32],
    /// The message and the records.
    trees: Trees<'a>,
    /// The one of them where the context node is, with its names.
    tree: TreeId,
    document: &'a Document,
    vocabulary: &'a Vocabulary,
    names: &'a Names,
    by_name: &'a mut ElementsByName,
    memo: &'a mut Memo,
    budget: &'a mut Budget,
    /// The context position and size of the predicate that is evaluated.
    focus: Focus,
    /// The variables in scope.
    variables: Variables<'a>,
    /// The nodes of the record that was walked last.
    record_nodes: Option<(TreeId, NodeTable)>,
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
    label: LabelId,
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
        trees: Trees<'a>,
        by_name: &'a mut ElementsByName,
        memo: &'a mut Memo,
        budget: &'a mut Budget,
    ) -> Verifier<'a> {
        let (document, vocabulary, names) = trees.at(TreeId::MESSAGE);
        Verifier {
            words,
            trees,
            tree: TreeId::MESSAGE,
            document,
            vocabulary,
            names,
            by_name,
            memo,
            budget,
            focus: Focus::SINGLE,
            variables: Variables::default(),
            record_nodes: None,
        }
    }

    /// Whether the query whose twig starts at `offset` matches.
    pub fn matches(&mut self, offset: u32) -> Decided {
        self.budget.restart();
        self.expr(offset, NodeRef::Document)
    }

    fn expr(&mut self, offset: u32, context: NodeRef) -> Decided {
        self.budget.enter();
        let word = self.words[offset as usize];
        let decided = match word & 0xFF {
            AND => all(1..=word >> 8, |at| self.expr(self.words[(offset + at) as usize], context)),
            OR => any(1..=word >> 8, |at| self.expr(self.words[(offset + at) as usize], context)),
            NOT => self.expr(self.words[offset as usize + 1], context).map(|holds| !holds),
            COMPUTED => self.remembered_value(offset, context),
            _ => self.path(offset, context),
        };
        self.budget.leave();
        decided
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

    fn path(&mut self, offset: u32, context: NodeRef) -> Decided {
        match self.words[offset as usize] >> 8 & 0xFF {
            FROM_CONTEXT => return self.path_from(offset, context),
            FROM_DOCUMENT if context == NodeRef::Document => return self.path_from(offset, context),
            FROM_DOCUMENT if self.in_record() => return self.path_from(offset, NodeRef::Document),
            FROM_DOCUMENT => {}
            FROM_MESSAGE => {
                return self
                    .within(TreeId::MESSAGE, |verifier| verifier.path_from(offset, NodeRef::Document));
            }
            from => return self.path_from_variable(offset, from - FROM_VARIABLE),
        }
        if let Some(&known) = self.memo.absolute.get(&offset) {
            return Ok(known);
        }
        let holds = self.path_from(offset, NodeRef::Document)?;
        self.memo.absolute.insert(offset, holds);
        Ok(holds)
    }

    fn path_from_variable(&mut self, offset: u32, level: u32) -> Decided {
        let Path { test, .. } = self.decode(offset);
        match self.variables.nodes(level) {
            &[Node { tree, node }] => self.within(tree, |verifier| verifier.path_from(offset, node)),
            nodes if self.looks_at_first(test) => {
                let (nodes, mut first) = (nodes.to_vec(), None);
                for Node { tree, node } in nodes {
                    let next = self.within(tree, |verifier| verifier.first(offset, node))?;
                    let next = next.map(|node| Node { tree, node });
                    first = [first, next].into_iter().flatten().min_by_key(|&node| self.trees.order(node));
                }
                match first {
                    Some(Node { tree, node }) => {
                        self.within(tree, |verifier| verifier.first_passes(test, Some(node)))
                    }
                    None => self.first_passes(test, None),
                }
            }
            nodes => any(nodes.to_vec(), |Node { tree, node }| {
                self.within(tree, |verifier| verifier.path_from(offset, node))
            }),
        }
    }

    /// Whether a test holds of the first node of a set. An empty one stands for the empty string.
    fn first_passes(&mut self, test: u32, first: Option<NodeRef>) -> Decided {
        let literal = self.literal(test);
        match (self.words[test as usize] & 0xFF, first) {
            (TEST_CONTAINS, Some(node)) => self.contains(test, node, literal),
            (_, Some(node)) => Ok(self.document.value_of(node).starts_with(literal)),
            (_, None) => Ok(literal.is_empty()),
        }
    }

    fn path_from(&mut self, offset: u32, context: NodeRef) -> Decided {
        let Path { test, step, steps } = self.decode(offset);
        match self.words[test as usize] & 0xFF {
            TEST_CONTAINS | TEST_STARTS_WITH => {
                let first = self.first(offset, context)?;
                self.first_passes(test, first)
            }
            _ => self.walk(step, steps, context, &mut Sink::Test(test)),
        }
    }

    /// Whether the literal of a test is in a node's string-value.
    fn contains(&mut self, test: u32, node: NodeRef, literal: &[u8]) -> Decided {
        let document = self.document;
        match document.text_span(node) {
            Some(span) if !self.in_record() => {
                let substrings = self.memo.substrings.entry(test).or_default();
                substrings.is_in(&document.text, span, literal, self.budget)
            }
            _ => {
                let value = document.value_of(node);
                self.budget.spend_bytes(value.len())?;
                Ok(memchr::memmem::find(value, literal).is_some())
            }
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
    fn test(&mut self, test: u32, node: NodeRef) -> Decided {
        let word = self.words[test as usize];
        let operator = word >> 8 & 0xFF;
        match word & 0xFF {
            TEST_TEXT => {
                let equal = self.document.value_of(node) == self.literal(test);
                Ok(equal == (operator == 0))
            }
            TEST_NORMALIZED => {
                let value = self.document.value_of(node);
                self.budget.spend_bytes(value.len())?;
                Ok(*normalize_space(value) == *self.literal(test))
            }
            TEST_NUMBER => {
                let value = self.document.value_of(node);
                self.budget.spend_bytes(value.len())?;
                let (value, constant) = (number(value), self.constant(test));
                Ok(match operator {
                    0 => value == constant,
                    1 => value != constant,
                    2 => value < constant,
                    3 => value <= constant,
                    4 => value > constant,
                    _ => value >= constant,
                })
            }
            _ => Ok(true),
        }
    }

    fn step(&self, at: u32) -> Step {
        let word = self.words[at as usize];
        Step {
            at,
            kind: word & 0xF,
            descendant: word & STEP_DESCENDANT != 0,
            memo: word & STEP_MEMO != 0,
            label: LabelId(self.words[at as usize + 1]),
            predicates: word >> 8,
        }
    }

    /// Walks the remaining steps from a context node. True ends the walk.
    fn walk(&mut self, at: u32, steps: u32, context: NodeRef, sink: &mut Sink<'_>) -> Decided {
        if steps == 0 {
            return self.arrive(context, sink);
        }
        let step = self.step(at);
        if step.descendant {
            return self.descend(step, steps, context, sink);
        }
        if let Some(root) = self.envelope(step, context) {
            return self.enter(step, steps, NodeRef::Element(root), sink);
        }
        if self.has_positions(step) {
            return self.counted(step, steps, context, sink);
        }
        match (step.kind, context) {
            (STEP_NAME | STEP_ANY | STEP_WILDCARD, _) => self.enter_children(step, steps, context, sink),
            (_, NodeRef::Element(parent)) => self.enter_leaves(step, steps, parent, sink),
            _ => Ok(false),
        }
    }

    /// The root of the envelope, if that is what a step from the document node leads to.
    #[inline]
    fn envelope(&self, step: Step, context: NodeRef) -> Option<ElementId> {
        if context != NodeRef::Document {
            return None;
        }
        let root = self.document.envelope?;
        (step.kind == STEP_NAME && self.admits(step, root)).then_some(root)
    }

    fn has_positions(&self, step: Step) -> bool {
        (0..step.predicates).any(|predicate| self.predicate(step, predicate) & POSITION != 0)
    }

    fn enter_leaves(&mut self, step: Step, steps: u32, parent: ElementId, sink: &mut Sink<'_>) -> Decided {
        let document = self.document;
        self.budget.spend(1 + leaf_count(document, step.kind, parent))?;
        any(leaves(document, step.kind, parent), |leaf| {
            Ok(self.admits_leaf(step, leaf) && self.enter(step, steps, leaf, sink)?)
        })
    }

    /// A step with positions, from one parent: predicates count what the ones before them left.
    fn counted(&mut self, step: Step, steps: u32, parent: NodeRef, sink: &mut Sink<'_>) -> Decided {
        let mut nodes: Vec<NodeRef> = match (step.kind, parent) {
            (STEP_NAME | STEP_ANY | STEP_WILDCARD, parent) => {
                let mut nodes = Vec::new();
                for element in children(self.document, parent) {
                    self.budget.spend(1)?;
                    if self.admits(step, element) {
                        nodes.push(NodeRef::Element(element));
                    }
                }
                nodes
            }
            (kind, NodeRef::Element(parent)) => {
                self.budget.spend(1 + leaf_count(self.document, kind, parent))?;
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
                let mut passing = Vec::with_capacity(nodes.len());
                for node in nodes {
                    if self.holds(step, predicate, node)? {
                        passing.push(node);
                    }
                }
                nodes = passing;
            }
        }
        any(nodes, |node| self.onward(step, steps, node, sink))
    }

    fn predicate(&self, step: Step, predicate: u32) -> u32 {
        self.words[(step.at + 2 + predicate) as usize]
    }

    /// A node that passes the step's name test: its predicates, then the rest of the path.
    #[inline]
    fn enter(&mut self, step: Step, steps: u32, node: NodeRef, sink: &mut Sink<'_>) -> Decided {
        if let Sink::First { first: Some(first), visits } = sink
            && self.document.order(node) >= self.document.order(*first)
        {
            visits.reached += 1;
            return Ok(false);
        }
        for predicate in 0..step.predicates {
            if !self.holds(step, self.predicate(step, predicate), node)? {
                return Ok(false);
            }
        }
        self.onward(step, steps, node, sink)
    }

    /// Whether a predicate that is not a position holds of a node.
    #[inline]
    fn holds(&mut self, step: Step, predicate: u32, node: NodeRef) -> Decided {
        self.budget.spend(1)?;
        let NodeRef::Element(element) = node else {
            return self.expr(predicate, node);
        };
        if !step.memo || self.in_record() {
            return self.expr(predicate, node);
        }
        self.remembered(predicate, element)
    }

    /// The rest of the path from a node that passed its step.
    fn onward(&mut self, step: Step, steps: u32, node: NodeRef, sink: &mut Sink<'_>) -> Decided {
        if let Sink::Tuples { way, .. } = sink {
            way.push(node);
        }
        let over = self.walk(step.next(), steps - 1, node, sink);
        if let Sink::Tuples { way, .. } = sink {
            way.pop();
        }
        over
    }

    fn arrive(&mut self, node: NodeRef, sink: &mut Sink<'_>) -> Decided {
        match sink {
            Sink::Test(test) => self.test(*test, node),
            Sink::First { first, visits } => {
                visits.reached += 1;
                if first.is_none_or(|first| self.document.order(node) < self.document.order(first)) {
                    *first = Some(node);
                }
                Ok(false)
            }
            Sink::Nodes { test, nodes, visits } => {
                if self.test(*test, node)? {
                    visits.reached += 1;
                    nodes.push(node);
                }
                Ok(false)
            }
            Sink::Tuples { end, way, tuples, limit, .. } => {
                let ends = match *end {
                    End::Test(test) => self.test(test, node)?,
                    End::Node(end) => node == end,
                };
                if ends {
                    tuples.push(way.clone());
                }
                Ok(tuples.len() >= *limit)
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
    fn admits_name(&self, kind: u32, label: LabelId, name: NameId) -> bool {
        match kind {
            STEP_NAME => self.names.name_of(label) == name,
            STEP_ANY => true,
            _ => self.names.of(name).pass_wildcard(label),
        }
    }

    /// The elements below a node, as a range.
    fn range_below(&self, context: NodeRef) -> (u32, u32) {
        match context {
            NodeRef::Document => (0, self.document.message_end() as u32),
            NodeRef::Element(element) => (element.0 + 1, self.document.element(element).end.0),
            _ => (0, 0),
        }
    }
}
