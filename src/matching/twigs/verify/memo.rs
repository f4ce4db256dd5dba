//! What verification remembers of a message: each result is computed once, however many queries need it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Verifier;
use super::tried::TriedRanges;
use super::value::{AxisCounts, NodeTable, NodesByValue, Once, Patterns};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::matching::budget::Decided;
use crate::matching::twigs::verify::by_value::ElementsByValue;
use crate::matching::twigs::verify::substring_cache::SubstringCache;
use crate::segment::twig::VARYING;
use crate::tuning::{MEMO, MEMO_PER_ELEMENT, MEMO_SPARE_PAGES};

/// Results that do not depend on the query: every query with the same step or predicate shares them. They are kept
/// for one message.
pub struct Memo {
    pub(super) by_value: ElementsByValue,
    /// Steps and the elements below which they failed.
    pub(super) failed: TriedRanges,
    pub(super) predicates: Verdicts,
    /// Absolute paths in predicates: the same wherever they are asked from.
    pub(super) absolute: FxHashMap<u32, bool>,
    /// The occurrences of literals in the text, by test.
    pub(super) substrings: FxHashMap<u32, SubstringCache>,
    /// All nodes of the message, once a value needs them.
    pub(super) nodes: Option<NodeTable>,
    /// Values that do not depend on the context.
    pub(super) once: Once,
    /// How many nodes are on the axes from each node.
    pub(super) axis_counts: AxisCounts,
    /// Tables of joins.
    pub(super) joins: FxHashMap<u32, Arc<NodesByValue>>,
    /// Regular expressions, of all messages.
    pub(super) patterns: Patterns,
}

impl Memo {
    /// Up to `scan_elements` elements are tried one by one; more are looked up by value if that is possible.
    pub fn new(scan_elements: usize) -> Memo {
        Memo {
            by_value: ElementsByValue::new(scan_elements),
            failed: TriedRanges::default(),
            predicates: Verdicts::default(),
            absolute: FxHashMap::default(),
            substrings: FxHashMap::default(),
            nodes: None,
            once: Once::default(),
            axis_counts: AxisCounts::default(),
            joins: FxHashMap::default(),
            patterns: Patterns::default(),
        }
    }

    /// Frees all memory.
    pub fn free(&mut self) {
        *self = Memo::new(self.by_value.scan_elements);
    }

    /// How often elements were looked up by value since the last `clear`.
    pub fn lookups(&self) -> u64 {
        self.by_value.lookups
    }

    /// Memory in bytes, approximately.
    pub fn bytes(&self) -> usize {
        self.by_value.bytes()
            + self.predicates.pages.capacity() * size_of::<((u32, u32), Page)>()
            + self.failed.bytes()
            + self.absolute.capacity() * size_of::<(u32, bool)>()
            + self.substrings.capacity() * size_of::<(u32, SubstringCache)>()
            + self.once.bytes()
            + self.axis_counts.bytes()
            + self.joins.values().map(|table| table.bytes()).sum::<usize>()
    }

    pub fn clear(&mut self) {
        self.by_value.reset();
        self.failed.clear();
        self.predicates.clear();
        self.absolute.clear();
        self.substrings.clear();
        self.nodes = None;
        self.once.clear();
        self.axis_counts.clear();
        self.joins.clear();
    }
}

impl Verifier<'_> {
    /// Whether a condition holds of an element, evaluated once per message.
    pub(super) fn remembered(&mut self, predicate: u32, element: ElementId) -> Decided {
        self.remember(predicate, element, |verifier| verifier.expr(predicate, NodeRef::Element(element)))
    }

    /// Whether a computed condition holds, evaluated once per message and element: many queries have the same.
    pub(super) fn remembered_value(&mut self, offset: u32, context: NodeRef) -> Decided {
        let (word, value) = (self.words[offset as usize], self.words[offset as usize + 1]);
        match context {
            NodeRef::Element(element) if word & VARYING == 0 => {
                self.remember(offset, element, |verifier| verifier.computed(value, context))
            }
            _ => self.computed(value, context),
        }
    }

    #[inline]
    fn remember(
        &mut self,
        predicate: u32,
        element: ElementId,
        evaluate: impl FnOnce(&mut Self) -> Decided,
    ) -> Decided {
        // What is remembered is of the message.
        if self.in_record() {
            return evaluate(self);
        }
        if let Some(known) = self.memo.predicates.get(predicate, element) {
            return Ok(known);
        }
        let holds = evaluate(self)?;
        self.memo.predicates.insert(predicate, element, holds, self.most_kept());
        Ok(holds)
    }

    /// How much of a kind is remembered at most.
    pub(super) fn most_kept(&self) -> usize {
        MEMO_PER_ELEMENT * self.document.elements.len() + MEMO
    }
}

/// Which elements pass which predicates.
#[derive(Default)]
pub struct Verdicts {
    /// By predicate and 32 elements side by side.
    pages: FxHashMap<(u32, u32), Page>,
}

#[derive(Clone, Copy, Default)]
struct Page {
    known: u32,
    held: u32,
}

impl Verdicts {
    fn clear(&mut self) {
        if self.pages.capacity() > MEMO_SPARE_PAGES {
            self.pages = FxHashMap::default();
        }
        self.pages.clear();
    }

    #[inline]
    pub fn get(&self, predicate: u32, element: ElementId) -> Option<bool> {
        let (page, bit) = place(element);
        let page = self.pages.get(&(predicate, page))?;
        (page.known & bit != 0).then_some(page.held & bit != 0)
    }

    /// Remembers a verdict. If there are more than `most` pages, the others are forgotten.
    #[inline]
    pub fn insert(&mut self, predicate: u32, element: ElementId, holds: bool, most: usize) {
        if self.pages.len() > most {
            self.pages.clear();
        }
        let (page, bit) = place(element);
        let page = self.pages.entry((predicate, page)).or_default();
        page.known |= bit;
        page.held |= if holds { bit } else { 0 };
    }
}

/// An element's page, and its bit there.
#[inline]
fn place(element: ElementId) -> (u32, u32) {
    (element.0 / 32, 1 << (element.0 % 32))
}
