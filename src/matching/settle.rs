//! Candidates whose anchors bound several elements, settled from what the automaton found.
//!
//! Verifying such a candidate on the document would mostly confirm it. But as long as the elements
//! of an anchor do not lie inside one another, whatever a line through the anchor reached below
//! one of them it reached *through* it. So the lines of a row hold together at an element if the
//! conditions found in its sub-tree say so, and those are gathered once per element, for all rows.

use std::ops::Range;

use crate::document::Document;
use crate::ids::ElementId;
use crate::index::columns::View;
use crate::index::rows::SIMPLE_MOST;
use crate::matching::bits::{Bits, ones};
use crate::matching::dfa::Dfa;

/// More elements than this and candidates are verified one by one: it bounds memory.
const MOST_BLOCKS: usize = 64;
const NONE: u32 = u32::MAX;

/// A row to settle.
pub struct Unsettled<'r> {
    /// Conditions, that of the access test first.
    pub lines: [u32; 1 + SIMPLE_MOST],
    /// The lines of each anchor: bit 4 × anchor + line.
    pub under: u32,
    pub anchors: &'r [u32],
    /// A bit per anchor that bound several elements.
    pub several: u32,
}

impl Unsettled<'_> {
    /// A bit per line that passes through an anchor.
    #[inline(always)]
    fn lines_of(&self, anchor: u32) -> u32 {
        self.under >> (4 * anchor) & 0xF
    }

    /// The anchors among `several` that lie directly below one with these lines.
    fn below(&self, several: u32, lines: u32) -> u32 {
        let inside = |anchor: u32, lines: u32| {
            let own = self.lines_of(anchor);
            own & lines == own && own != lines
        };
        let below = ones(several as u64).filter(|&anchor| inside(anchor, lines));
        let topmost = |&anchor: &u32| {
            !ones(several as u64).any(|other| inside(other, lines) && inside(anchor, self.lines_of(other)))
        };
        below.filter(topmost).map(|anchor| 1 << anchor).sum()
    }
}

/// What a document is, and what was found in it.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub document: &'a Document,
    pub dfa: &'a Dfa,
}

/// The elements of an anchor: a stretch of `Settler::elements`.
#[derive(Clone, Copy)]
struct Bound {
    start: u32,
    end: u32,
    /// Some lie inside others.
    nested: bool,
}

/// Scratch of one segment, for one document at a time.
pub struct Settler {
    /// Whether what follows is about the document at hand.
    ready: bool,
    /// Elements by their accept set.
    alike: Vec<(u32, ElementId)>,
    /// Anchors that rows to settle have: only their elements are gathered.
    expected: Bits,
    /// Per anchor, a list through `links` of its stretches of `alike`; then its elements, once they
    /// were asked for.
    heads: Vec<u32>,
    links: Vec<(Range<u32>, u32)>,
    bound: Vec<Option<Bound>>,
    touched: Vec<u32>,
    elements: Vec<ElementId>,
    /// Per element, what was found in its sub-tree: a place in `found`, or `NONE`.
    blocks: Vec<u32>,
    found: Vec<Bits>,
    used: usize,
    conditions: usize,
}

impl Settler {
    pub fn new(view: View<'_>) -> Settler {
        Settler {
            ready: false,
            alike: Vec::new(),
            expected: Bits::new(view.anchors()),
            heads: vec![NONE; view.anchors()],
            links: Vec::new(),
            bound: vec![None; view.anchors()],
            touched: Vec::new(),
            elements: Vec::new(),
            blocks: Vec::new(),
            found: Vec::new(),
            used: 0,
            conditions: view.conditions() + 1,
        }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.ready = false;
        for anchor in self.touched.drain(..) {
            self.bound[anchor as usize] = None;
            self.heads[anchor as usize] = NONE;
        }
        self.links.clear();
        self.expected.clear();
        self.elements.clear();
        self.found[..self.used].iter_mut().for_each(Bits::clear);
        self.used = 0;
    }

    /// Announces an anchor of a row that will be settled.
    #[inline]
    pub fn expect(&mut self, anchor: u32) {
        self.expected.set(anchor);
        self.ready = false;
    }

    /// Whether the lines of a row hold together; `None` if only the document can tell.
    pub fn settle(&mut self, row: &Unsettled<'_>, found: Found<'_>) -> Option<bool> {
        if !self.ready {
            self.prepare(found);
        }
        let whole = ElementId(0)..ElementId::from(found.document.elements.len());
        if row.several.is_power_of_two() {
            let anchor = row.several.trailing_zeros();
            return self.some(row, anchor, row.lines_of(anchor), 0, &whole, found);
        }
        // More lines than there are: every anchor lies below.
        let top = row.below(row.several, 0x1F);
        let mut settled = true;
        for anchor in ones(top as u64) {
            settled = settled && self.tree(row, anchor, &whole, found)?;
        }
        Some(settled)
    }

    /// Whether some element of an anchor has all that the row asks below the anchor, with other
    /// anchors below it.
    fn tree(
        &mut self,
        row: &Unsettled<'_>,
        anchor: u32,
        range: &Range<ElementId>,
        found: Found<'_>,
    ) -> Option<bool> {
        let lines = row.lines_of(anchor);
        if ones(row.several as u64).any(|other| other != anchor && row.lines_of(other) == lines) {
            return None;
        }
        let below = row.below(row.several, lines);
        let own = ones(below as u64).fold(lines, |own, other| own & !row.lines_of(other));
        self.some(row, anchor, own, below, range, found)
    }

    /// Whether some element of an anchor in a range has the lines `own` below it, and what the
    /// anchors `below` ask.
    fn some(
        &mut self,
        row: &Unsettled<'_>,
        anchor: u32,
        own: u32,
        below: u32,
        range: &Range<ElementId>,
        found: Found<'_>,
    ) -> Option<bool> {
        let bound = self.bound(row.anchors[anchor as usize], found);
        if bound.nested {
            return None;
        }
        for at in bound.start..bound.end {
            let element = self.elements[at as usize];
            if !range.contains(&element) {
                continue;
            }
            let block = self.block(element, found)?;
            let below_it = &self.found[block];
            let mut holds = ones(own as u64).all(|line| below_it.get(row.lines[line as usize]));
            if below != 0 {
                let inside = element..found.document.element(element).end;
                for other in ones(below as u64) {
                    holds = holds && self.tree(row, other, &inside, found)?;
                }
            }
            if holds {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The elements of an anchor, in document order.
    fn bound(&mut self, anchor: u32, found: Found<'_>) -> Bound {
        if let Some(bound) = self.bound[anchor as usize] {
            return bound;
        }
        let start = self.elements.len();
        let mut at = self.heads[anchor as usize];
        while at != NONE {
            let (alike, next) = self.links[at as usize].clone();
            let alike = &self.alike[alike.start as usize..alike.end as usize];
            self.elements.extend(alike.iter().map(|(_, element)| element));
            at = next;
        }
        self.elements[start..].sort_unstable();
        let elements = &self.elements[start..];
        let nested = elements.windows(2).any(|pair| pair[1] < found.document.element(pair[0]).end);
        let bound = Bound { start: start as u32, end: self.elements.len() as u32, nested };
        self.bound[anchor as usize] = Some(bound);
        bound
    }

    /// What was found in an element's sub-tree.
    fn block(&mut self, element: ElementId, found: Found<'_>) -> Option<usize> {
        let known = self.blocks[element.index()];
        if known != NONE {
            return Some(known as usize);
        }
        if self.used == MOST_BLOCKS {
            return None;
        }
        if self.used == self.found.len() {
            self.found.push(Bits::new(self.conditions));
        }
        let end = found.document.element(element).end;
        found.dfa.found_below(element, end, &mut self.found[self.used]);
        self.blocks[element.index()] = self.used as u32;
        self.used += 1;
        Some(self.used - 1)
    }

    /// Sorts the document's elements by what they bind, for most are like another, and lists those
    /// of the anchors that are expected.
    fn prepare(&mut self, Found { document, dfa }: Found<'_>) {
        self.ready = true;
        self.blocks.clear();
        self.blocks.resize(document.elements.len(), NONE);
        self.alike.clear();
        let elements = (0..document.elements.len()).map(ElementId::from);
        self.alike.extend(elements.map(|element| (dfa.accept_of(element), element)));
        self.alike.sort_unstable();
        let mut start = 0;
        for alike in self.alike.chunk_by(|a, b| a.0 == b.0) {
            let stretch = start..start + alike.len() as u32;
            start = stretch.end;
            let masks = dfa.anchors_of(alike[0].0);
            for (&word, &mask) in masks.words.iter().zip(masks.masks) {
                for bit in ones(mask & self.expected.word(word)) {
                    let head = &mut self.heads[(word * 64 + bit) as usize];
                    if *head == NONE {
                        self.touched.push(word * 64 + bit);
                    }
                    self.links.push((stretch.clone(), *head));
                    *head = self.links.len() as u32 - 1;
                }
            }
        }
    }
}
