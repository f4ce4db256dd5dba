//! The findings of the automaton for one segment: conditions that hold, bound anchors, numbers of slots.

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::{AnchorId, ElementId, LabelId, NameId};
use crate::matching::automaton::names::Names;
use crate::segment::format::columns::View;
use crate::util::bitset::Bits;

/// Conditions that hold, anchors that bound elements, and the numbers of slots.
pub struct Findings {
    pub conditions: Bits,
    /// Anchors that bound an element, and those that bound a second one.
    pub bound: Bits,
    pub bound_twice: Bits,
    /// Per slot, its largest number and the negative of its smallest: the two sides that ranges compare. NaN if there
    /// is no number, which exceeds nothing.
    sides: Vec<f64>,
    slots_with_numbers: Vec<u32>,
    always: u32,
}

impl Findings {
    pub fn new(view: View<'_>) -> Findings {
        Findings {
            // One more of each, for unused fields of rows.
            conditions: Bits::new(view.conditions() + 1),
            bound: Bits::new(view.anchors() + 1),
            bound_twice: Bits::new(view.anchors() + 1),
            sides: vec![f64::NAN; view.slots() * 2],
            slots_with_numbers: Vec::new(),
            always: view.conditions() as u32,
        }
    }

    #[inline(always)]
    pub fn side(&self, side: usize) -> f64 {
        self.sides[side]
    }

    /// All sides of all slots.
    #[inline(always)]
    pub fn sides(&self) -> &[f64] {
        &self.sides
    }

    /// Adds a number of a slot's subject.
    #[inline]
    pub fn add_number(&mut self, slot: u32, number: f64) {
        if number.is_nan() {
            return;
        }
        let sides = &mut self.sides[slot as usize * 2..slot as usize * 2 + 2];
        if sides[0].is_nan() {
            self.slots_with_numbers.push(slot);
        }
        // `max` prefers a number to NaN.
        sides[0] = sides[0].max(number);
        sides[1] = sides[1].max(-number);
    }

    pub fn slots_with_numbers(&self) -> &[u32] {
        &self.slots_with_numbers
    }

    /// Sets the condition that unused fields of rows refer to. Last, because it is not a finding.
    pub fn set_always(&mut self) {
        self.conditions.set(self.always);
    }

    pub fn bind_anchor(&mut self, anchor: AnchorId) {
        if self.bound.get(anchor.0) {
            self.bound_twice.set(anchor.0);
        }
        self.bound.set(anchor.0);
    }

    pub fn clear(&mut self) {
        self.conditions.clear();
        self.bound.clear();
        self.bound_twice.clear();
        for slot in self.slots_with_numbers.drain(..) {
            self.sides[slot as usize * 2..slot as usize * 2 + 2].fill(f64::NAN);
        }
    }
}

/// Where a segment has a label for them: among siblings of the same local name, and of the same namespace.
#[derive(Clone, Copy)]
pub struct LabelledRank {
    pub local: u32,
    pub namespace: u32,
}

/// The places of a document's elements among their siblings, counted from 1.
#[derive(Default)]
pub struct Ranks {
    ready: bool,
    ranks: Vec<Rank>,
    counts: FxHashMap<(ElementId, NameId), u32>,
    children: Vec<u32>,
    /// Whether `labelled` is that of the document and of the segment that is matched.
    is_labelled: bool,
    labelled: Vec<LabelledRank>,
    label_counts: FxHashMap<(ElementId, LabelId), u32>,
}

#[derive(Clone, Copy)]
pub struct Rank {
    /// Among siblings of the same name.
    pub named: u32,
    /// Among all sibling elements.
    pub any: u32,
}

impl Ranks {
    /// Forgets the last document; the next one is counted when a rank is first needed.
    pub fn reset(&mut self) {
        self.ready = false;
    }

    /// Forgets the labels of the last segment.
    pub fn enter_segment(&mut self) {
        self.is_labelled = false;
    }

    pub fn of_labels(&mut self, document: &Document, names: &Names, element: ElementId) -> LabelledRank {
        if !self.is_labelled {
            self.count_labels(document, names);
        }
        self.labelled[element.index()]
    }

    fn count_labels(&mut self, document: &Document, names: &Names) {
        self.is_labelled = true;
        self.labelled.clear();
        self.label_counts.clear();
        for element in &document.elements {
            let labels = names.of(element.name);
            let [local, namespace] = [labels.local, labels.namespace].map(|label| {
                if label.is_none() {
                    return 0;
                }
                let count = self.label_counts.entry((element.parent, label)).or_insert(0);
                *count += 1;
                *count
            });
            self.labelled.push(LabelledRank { local, namespace });
        }
    }

    pub fn of(&mut self, document: &Document, element: ElementId) -> Rank {
        if !self.ready {
            self.count(document);
        }
        self.ranks[element.index()]
    }

    fn count(&mut self, document: &Document) {
        self.ready = true;
        self.ranks.clear();
        self.counts.clear();
        self.children.clear();
        self.children.resize(document.elements.len(), 0);
        for element in &document.elements {
            let named = self.counts.entry((element.parent, element.name)).or_insert(0);
            *named += 1;
            let any = match element.parent.is_some() {
                true => {
                    let any = &mut self.children[element.parent.index()];
                    *any += 1;
                    *any
                }
                false => 1,
            };
            self.ranks.push(Rank { named: *named, any });
        }
    }
}
