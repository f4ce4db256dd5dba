//! The elements above the occurrences of a condition, sorted and without duplicates: for conditions with so many
//! occurrences that scanning them for each row would be slow. A list is made once per message.
//!
//! Example: `//item/tag = 'sale'` at the elements 4 and 7, one step above: 2 and 5, the items. Whether an item has such
//! a tag is then a binary search.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::{AnchorId, ConditionId, ElementId};
use crate::matching::twigs::occurrences::{Occurrences, TracedDocument};
use crate::tuning::{ANCESTORS, ANCESTORS_PER_ELEMENT};

/// The lists of one document, each made when it is first needed.
#[derive(Default)]
pub struct AncestorLists {
    lists: FxHashMap<(ConditionId, Distance), (u32, u32)>,
    elements: Vec<ElementId>,
    scratch: Vec<ElementId>,
}

/// The distance from the occurrences up to the elements of a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Distance {
    Steps(u32),
    /// Up to each element that binds this anchor.
    Anchor(AnchorId),
}

impl AncestorLists {
    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.lists.clear();
        self.elements.clear();
    }

    /// Drops the lists if they have become too large.
    #[inline]
    pub fn trim(&mut self, document: &Document) {
        if self.elements.len() > ANCESTORS + ANCESTORS_PER_ELEMENT * document.elements.len() {
            self.reset();
        }
    }

    /// The element at a position of the lists.
    pub fn get(&self, at: usize) -> ElementId {
        self.elements[at]
    }

    /// Whether an element is in a list.
    pub fn contains(&self, list: Range<usize>, element: ElementId) -> bool {
        self.elements[list].binary_search(&element).is_ok()
    }

    /// The part of a list that lies in a range.
    pub fn within(&self, list: Range<usize>, range: &Range<ElementId>) -> Range<usize> {
        let elements = &self.elements[list.clone()];
        let before = |bound: ElementId| list.start + elements.partition_point(|&element| element < bound);
        before(range.start)..before(range.end)
    }

    /// The elements so many steps above the occurrences of a condition.
    pub fn by_steps(
        &mut self,
        condition: ConditionId,
        steps: u32,
        occurrences: &Occurrences<ConditionId>,
        document: &Document,
    ) -> Range<usize> {
        self.list((condition, Distance::Steps(steps)), |elements| {
            elements.extend(occurrences.of(condition).map(|element| ancestor(document, element, steps)));
        })
    }

    /// The elements that bind an anchor, at the occurrences of a condition and anywhere above them.
    pub fn by_anchor(
        &mut self,
        condition: ConditionId,
        anchor: AnchorId,
        occurrences: &Occurrences<ConditionId>,
        TracedDocument { document, trace }: TracedDocument<'_>,
    ) -> Range<usize> {
        self.list((condition, Distance::Anchor(anchor)), |elements| {
            for element in occurrences.of(condition) {
                let mut at = element;
                while at.is_some() {
                    if trace.binds_anchor(at, anchor) {
                        elements.push(at);
                    }
                    at = document.element(at).parent;
                }
                // In a deep document most occurrences have most ancestors in common.
                if elements.len() > ANCESTORS + 2 * document.elements.len() {
                    elements.sort_unstable();
                    elements.dedup();
                }
            }
        })
    }

    fn list(&mut self, key: (ConditionId, Distance), make: impl FnOnce(&mut Vec<ElementId>)) -> Range<usize> {
        if let Some(&(start, end)) = self.lists.get(&key) {
            return start as usize..end as usize;
        }
        self.scratch.clear();
        make(&mut self.scratch);
        if !self.scratch.is_sorted() {
            self.scratch.sort_unstable();
        }
        self.scratch.dedup();
        let start = self.elements.len();
        self.elements.append(&mut self.scratch);
        self.lists.insert(key, (start as u32, self.elements.len() as u32));
        start..self.elements.len()
    }
}

/// The element so many steps above another.
#[inline]
pub fn ancestor(document: &Document, element: ElementId, steps: u32) -> ElementId {
    let mut at = element;
    for _ in 0..steps {
        if at.is_none() {
            break;
        }
        at = document.element(at).parent;
    }
    at
}
