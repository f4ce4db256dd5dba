//! The elements that places of a condition lie below, sorted and each once: for conditions that were
//! found at more places than should be gone through whenever somebody asks.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::twigs::occurrences::{Found, Places};
use crate::tuning::{ANCESTORS, ANCESTORS_PER_ELEMENT};

/// Lists of one document, made when somebody first asks.
#[derive(Default)]
pub struct Above {
    lists: FxHashMap<(u32, How), (u32, u32)>,
    elements: Vec<ElementId>,
    scratch: Vec<ElementId>,
}

/// How far above the places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum How {
    Steps(u32),
    /// As many steps as there are to an element that binds this anchor.
    Anchor(u32),
}

impl Above {
    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.lists.clear();
        self.elements.clear();
    }

    /// Forgets lists if they have become too many.
    #[inline]
    pub fn trim(&mut self, document: &Document) {
        if self.elements.len() > ANCESTORS + ANCESTORS_PER_ELEMENT * document.elements.len() {
            self.reset();
        }
    }

    /// The element at a place of a list.
    pub fn get(&self, at: usize) -> ElementId {
        self.elements[at]
    }

    pub fn has(&self, list: Range<usize>, element: ElementId) -> bool {
        self.elements[list].binary_search(&element).is_ok()
    }

    /// The part of a list that lies in a range.
    pub fn within(&self, list: Range<usize>, range: &Range<ElementId>) -> Range<usize> {
        let elements = &self.elements[list.clone()];
        let before = |bound: ElementId| list.start + elements.partition_point(|&element| element < bound);
        before(range.start)..before(range.end)
    }

    /// The elements so many steps above the places of a condition.
    pub fn by_steps(
        &mut self,
        condition: u32,
        steps: u32,
        places: &Places,
        document: &Document,
    ) -> Range<usize> {
        self.list((condition, How::Steps(steps)), |elements| {
            elements.extend(places.of(condition).map(|place| ancestor(document, place, steps)));
        })
    }

    /// The elements that bind an anchor, at the places of a condition and anywhere above them.
    pub fn by_anchor(
        &mut self,
        condition: u32,
        anchor: u32,
        places: &Places,
        Found { document, dfa }: Found<'_>,
    ) -> Range<usize> {
        self.list((condition, How::Anchor(anchor)), |elements| {
            for place in places.of(condition) {
                let mut at = place;
                while at.is_some() {
                    if dfa.binds_anchor(at, anchor) {
                        elements.push(at);
                    }
                    at = document.element(at).parent;
                }
                // In a deep document most places have most of them in common.
                if elements.len() > ANCESTORS + 2 * document.elements.len() {
                    elements.sort_unstable();
                    elements.dedup();
                }
            }
        })
    }

    fn list(&mut self, key: (u32, How), make: impl FnOnce(&mut Vec<ElementId>)) -> Range<usize> {
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
