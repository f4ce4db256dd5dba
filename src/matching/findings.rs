//! What a message was found to contain, in the terms of one segment.

use crate::document::Document;
use crate::ids::ElementId;
use crate::segment::format::columns::View;
use crate::util::bitset::Bits;

/// Conditions that hold, anchors that bound elements, numbers that slots gathered.
pub struct Findings {
    pub conditions: Bits,
    /// Anchors that bound an element, and those that bound a second one.
    pub once: Bits,
    pub twice: Bits,
    /// Per slot, its largest number and the negative of its smallest: the two sides that ranges
    /// look at. NaN if there is no number, which exceeds nothing.
    sides: Vec<f64>,
    touched: Vec<u32>,
    always: u32,
}

impl Findings {
    pub fn new(view: View<'_>) -> Findings {
        Findings {
            // One more of each, for rows that have nothing to ask there.
            conditions: Bits::new(view.conditions() + 1),
            once: Bits::new(view.anchors() + 1),
            twice: Bits::new(view.anchors() + 1),
            sides: vec![f64::NAN; view.slots() * 2],
            touched: Vec::new(),
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

    #[inline]
    pub fn gather(&mut self, slot: u32, number: f64) {
        if number.is_nan() {
            return;
        }
        let sides = &mut self.sides[slot as usize * 2..slot as usize * 2 + 2];
        if sides[0].is_nan() {
            self.touched.push(slot);
        }
        // `max` prefers a number to NaN.
        sides[0] = sides[0].max(number);
        sides[1] = sides[1].max(-number);
    }

    /// The slots that gathered a number.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// Sets the condition that rows are filled up with. Last, so that nobody takes it for a finding.
    pub fn hold_always(&mut self) {
        self.conditions.set(self.always);
    }

    pub fn bind_anchor(&mut self, anchor: u32) {
        if self.once.get(anchor) {
            self.twice.set(anchor);
        }
        self.once.set(anchor);
    }

    pub fn clear(&mut self) {
        self.conditions.clear();
        self.once.clear();
        self.twice.clear();
        for slot in self.touched.drain(..) {
            self.sides[slot as usize * 2..slot as usize * 2 + 2].fill(f64::NAN);
        }
    }
}

/// The places of a document's elements among their siblings, counted from 1.
#[derive(Default)]
pub struct Ranks {
    ready: bool,
    ranks: Vec<Rank>,
    counts: rustc_hash::FxHashMap<(ElementId, crate::ids::NameId), u32>,
    children: Vec<u32>,
}

#[derive(Clone, Copy)]
pub struct Rank {
    /// Among siblings of the same name.
    pub named: u32,
    /// Among all sibling elements.
    pub any: u32,
}

impl Ranks {
    /// Forgets the last document; counting waits until somebody asks.
    pub fn reset(&mut self) {
        self.ready = false;
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
