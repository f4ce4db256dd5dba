//! Candidates whose anchors bound several elements, settled from what the automaton found.
//!
//! Verifying such a candidate on the document would mostly confirm it. But where each condition was
//! found is known, and a line that was found somewhere says which element of an anchor it came by:
//! as long as the elements of the anchor do not lie inside one another, the one above it; else the
//! one as far above it as the line is long. So a row holds if all its lines came by the same one.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::twigs::ancestors::{Above, ancestor};
use crate::matching::twigs::occurrences::{Found, Places};
use crate::query::decompose::Reach;
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::segment::rows::shape::Shape;
use crate::segment::rows::simple::MOST_SIMPLE;
use crate::tuning::{SETTLE_MESSAGE_READS, SETTLE_ROW_READS};
use crate::util::bitset::{Bits, ones};

/// A row to settle.
pub struct Unsettled {
    /// Conditions, that of the access test first.
    lines: [u32; 1 + MOST_SIMPLE],
    anchors: [u32; MOST_SIMPLE],
    pub query: u32,
    /// A bit per anchor that bound several elements.
    several: u32,
    shape: Shape,
    lead: Option<Lead>,
}

impl Unsettled {
    /// A simple row with N positives and N anchors.
    pub fn of<const N: usize, const W: usize>(row: &[u32; W]) -> Unsettled {
        let (mut lines, mut anchors) = ([NONE; 1 + MOST_SIMPLE], [NONE; MOST_SIMPLE]);
        lines[0] = row[2 * N];
        lines[1..=N].copy_from_slice(&row[..N]);
        anchors[..N].copy_from_slice(&row[N..2 * N]);
        Unsettled { lines, anchors, query: row[W - 1], several: 0, shape: Shape::default(), lead: None }
    }

    /// Fills in what is only known when the whole message was looked at.
    pub fn look(&mut self, view: View<'_>, twice: &Bits) {
        let several = |(at, &anchor): (usize, &u32)| ((anchor != NONE && twice.get(anchor)) as u32) << at;
        self.several = self.anchors.iter().enumerate().map(several).sum();
        self.shape = view.shape_of(self.query);
        self.lead = self.find_lead();
    }

    /// The line to begin with, if there is one anchor to look at and a line tells by its places
    /// which of the anchor's elements it came by.
    #[inline]
    fn find_lead(&self) -> Option<Lead> {
        if !self.several.is_power_of_two() || self.shape.counted().is_some() {
            return None;
        }
        let anchor = self.several.trailing_zeros();
        let (line, steps) = self.shape.lead(anchor)?;
        Some(Lead { anchor, line, steps })
    }

    /// The anchors among `several` that lie directly below one with these lines.
    fn below(&self, lines: u32) -> u32 {
        let inside = |anchor: u32, lines: u32| {
            let own = self.shape.lines_of(anchor);
            own & lines == own && own != lines
        };
        let topmost = |&anchor: &u32| {
            let above = |other| inside(other, lines) && inside(anchor, self.shape.lines_of(other));
            !ones(self.several as u64).any(above)
        };
        let below = ones(self.several as u64).filter(|&anchor| inside(anchor, lines));
        below.filter(topmost).map(|anchor| 1 << anchor).sum()
    }
}

/// A line that leads to the elements of an anchor: so many steps above its places.
#[derive(Clone, Copy)]
struct Lead {
    anchor: u32,
    line: u32,
    steps: u32,
}

/// Scratch of one segment, for one document at a time.
pub struct Settler {
    /// Places that are gone through one by one; where there are more, they are sorted.
    few: usize,
    /// Whether what follows is about the document at hand.
    conditions_ready: bool,
    anchors_ready: bool,
    conditions: Places,
    anchors: Places,
    above: Above,
    /// Anchors that were asked about, and those whose elements lie inside one another.
    asked: Bits,
    nested: Bits,
    /// Whether there were more places than could be noted: then nothing can be settled.
    too_many: bool,
    /// What is left of a row's looks, and those beyond.
    own_looks: usize,
    looks: usize,
}

impl Settler {
    pub fn new(view: View<'_>, few: usize) -> Settler {
        Settler {
            few,
            conditions_ready: false,
            anchors_ready: false,
            conditions: Places::new(view.conditions() + 1),
            anchors: Places::new(view.anchors() + 1),
            above: Above::default(),
            asked: Bits::new(view.anchors() + 1),
            nested: Bits::new(view.anchors() + 1),
            too_many: false,
            own_looks: 0,
            looks: 0,
        }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.conditions_ready = false;
        self.anchors_ready = false;
        self.too_many = false;
        self.looks = 0;
        self.conditions.reset();
        self.anchors.reset();
        self.above.reset();
        self.asked.clear();
        self.nested.clear();
    }

    /// Announces a row; all are announced before the first is settled.
    #[inline]
    pub fn expect(&mut self, row: &Unsettled) {
        let mut lines = 0;
        for anchor in ones(row.several as u64) {
            lines |= row.shape.lines_of(anchor);
            if row.lead.is_none() || row.shape.is_unclear(anchor) {
                self.anchors.expect(row.anchors[anchor as usize]);
            }
        }
        for (line, &condition) in row.lines.iter().enumerate() {
            if lines >> line & 1 != 0 {
                self.conditions.expect(condition);
            }
        }
    }

    /// Whether the lines of a row hold together; `None` if the document itself must be asked.
    #[inline]
    pub fn settle(&mut self, row: &Unsettled, found: Found<'_>) -> Option<bool> {
        if !self.conditions_ready {
            self.find_conditions(found);
        }
        if self.too_many {
            return None;
        }
        self.own_looks = SETTLE_ROW_READS;
        self.above.trim(found.document);
        if let Some(lead) = row.lead {
            return self.led(row, lead, found);
        }
        self.unled(row, found)
    }

    /// Settles a row from the elements of its anchors.
    fn unled(&mut self, row: &Unsettled, found: Found<'_>) -> Option<bool> {
        let whole = ElementId(0)..ElementId::from(found.document.elements.len());
        // More lines than there are: every anchor lies below.
        for anchor in ones(row.below(0x1F) as u64) {
            if !self.tree(row, anchor, &whole, found)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Settles a row from the places of its leading line.
    #[inline]
    fn led(&mut self, row: &Unsettled, lead: Lead, found: Found<'_>) -> Option<bool> {
        let Lead { anchor, line, steps } = lead;
        let lines = row.shape.lines_of(anchor);
        let rarest = lines.trailing_zeros();
        let others = lines & !(1 << line);
        let mut at = self.conditions.heads[row.lines[line as usize] as usize];
        let mut last = ElementId::NONE;
        let mut few = if rarest == line { usize::MAX } else { self.few };
        while let Some(&(end, next)) = self.conditions.links.get(at as usize) {
            if few == 0 {
                return self.led_by_any(row, anchor, rarest, found);
            }
            (few, at) = (few - 1, next);
            let element = ancestor(found.document, end, steps);
            // Neighbours often have it in common.
            if element == last {
                continue;
            }
            last = element;
            if self.lines(row, anchor, others, element, found)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Settles a row from the places of a line that does not tell which of the anchor's elements it
    /// came by: from all that lie above.
    #[cold]
    fn led_by_any(&mut self, row: &Unsettled, anchor: u32, line: u32, found: Found<'_>) -> Option<bool> {
        for at in self.elements_above(row, anchor, line, found) {
            let element = self.above.get(at);
            if self.lines(row, anchor, row.shape.lines_of(anchor), element, found)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The elements of an anchor that a line can have come by.
    fn elements_above(&mut self, row: &Unsettled, anchor: u32, line: u32, found: Found<'_>) -> Range<usize> {
        let condition = row.lines[line as usize];
        match row.shape.reach(anchor, line) {
            Some(Reach::Exactly(steps)) => {
                self.above.by_steps(condition, steps, &self.conditions, found.document)
            }
            _ => self.above.by_anchor(condition, row.anchors[anchor as usize], &self.conditions, found),
        }
    }

    /// Whether some element of an anchor has all that the row asks below the anchor, with other
    /// anchors below it.
    fn tree(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        range: &Range<ElementId>,
        found: Found<'_>,
    ) -> Option<bool> {
        let lines = row.shape.lines_of(anchor);
        if ones(row.several as u64).any(|other| other != anchor && row.shape.lines_of(other) == lines) {
            return None;
        }
        let below = row.below(lines);
        if below != 0 && self.is_nested(row.anchors[anchor as usize], found)? {
            return None;
        }
        self.some(row, anchor, below, range, found)
    }

    /// Whether some element of an anchor in a range has its lines below it, and what the anchors
    /// `below` ask.
    fn some(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        below: u32,
        range: &Range<ElementId>,
        found: Found<'_>,
    ) -> Option<bool> {
        self.find_anchors(found)?;
        let counted = row.shape.counted().filter(|counted| counted.anchor == anchor);
        let counted_lines = counted.map_or(0, |counted| counted.lines) & row.shape.lines_of(anchor);
        let lines = row.shape.lines_of(anchor) & !counted_lines;
        let own = ones(below as u64).fold(lines, |own, other| own & !row.shape.lines_of(other));
        // How many were counted below each parent.
        let mut counts: FxHashMap<ElementId, u32> = FxHashMap::default();
        let mut next = self.anchors.heads[row.anchors[anchor as usize] as usize];
        let leading = if counted.is_some() { counted_lines } else { lines };
        let mut few = if leading == 0 { usize::MAX } else { self.few };
        let mut led: Option<Range<usize>> = None;
        loop {
            let element = match (&mut led, self.anchors.links.get(next as usize)) {
                (Some(above), _) => above.next().map(|at| self.above.get(at)),
                (None, Some(_)) if few == 0 => {
                    // There are many, and only those matter that the rarest line came by.
                    let above = self.elements_above(row, anchor, leading.trailing_zeros(), found);
                    led = Some(self.above.within(above, range));
                    counts.clear();
                    continue;
                }
                (None, Some(&(element, after))) => {
                    (few, next) = (few - 1, after);
                    Some(element)
                }
                (None, None) => None,
            };
            let Some(element) = element else {
                return Some(false);
            };
            if !range.contains(&element) {
                continue;
            }
            if let Some(counted) = counted {
                if !self.lines(row, anchor, counted_lines, element, found)? {
                    continue;
                }
                let count = counts.entry(found.document.element(element).parent).or_insert(0);
                *count += 1;
                if *count != counted.position {
                    continue;
                }
            }
            let mut holds = self.lines(row, anchor, own, element, found)?;
            let inside = element..found.document.element(element).end;
            for other in ones(below as u64) {
                holds = holds && self.tree(row, other, &inside, found)?;
            }
            if holds {
                return Some(true);
            }
        }
    }

    /// Whether all of some lines came by an element of an anchor.
    #[inline]
    fn lines(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        lines: u32,
        element: ElementId,
        found: Found<'_>,
    ) -> Option<bool> {
        for line in ones(lines as u64) {
            let mut reach = row.shape.reach(anchor, line)?;
            if reach == Reach::Unclear {
                if self.is_nested(row.anchors[anchor as usize], found)? {
                    return None;
                }
                reach = Reach::AtLeast(0);
            }
            if !self.came_by(row.lines[line as usize], reach, element, found.document)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether a condition was found where a line that came by an element ends.
    #[inline]
    fn came_by(
        &mut self,
        condition: u32,
        reach: Reach,
        element: ElementId,
        document: &Document,
    ) -> Option<bool> {
        let mut places = self.conditions.of(condition);
        let mut few = places.by_ref().take(self.few);
        let holds = match reach {
            Reach::Exactly(steps) => few.any(|end| ancestor(document, end, steps) == element),
            Reach::AtLeast(steps) => {
                let of = document.element(element);
                few.any(|end| {
                    let inside = element <= end && end < of.end;
                    inside && document.element(end).depth - of.depth >= steps
                })
            }
            Reach::Unclear => unreachable!("asked for elements that do not lie in one another"),
        };
        if holds || places.next().is_none() {
            return Some(holds);
        }
        drop(places);
        self.came_by_many(condition, reach, element, document)
    }

    /// The same for a condition that was found at many places.
    #[cold]
    fn came_by_many(
        &mut self,
        condition: u32,
        reach: Reach,
        element: ElementId,
        document: &Document,
    ) -> Option<bool> {
        if let Reach::Exactly(steps) = reach {
            let above = self.above.by_steps(condition, steps, &self.conditions, document);
            return Some(self.above.has(above, element));
        }
        let Reach::AtLeast(steps) = reach else {
            return None;
        };
        let of = document.element(element);
        let places = self.above.by_steps(condition, 0, &self.conditions, document);
        let (mut looks, mut holds) = (0, false);
        for at in self.above.within(places, &(element..of.end)) {
            looks += 1;
            if document.element(self.above.get(at)).depth - of.depth >= steps {
                holds = true;
                break;
            }
        }
        self.look(looks)?;
        Some(holds)
    }

    /// Counts work; `None` when it has become too much.
    fn look(&mut self, looks: usize) -> Option<()> {
        if looks <= self.own_looks {
            self.own_looks -= looks;
            return Some(());
        }
        self.looks = self.looks.saturating_add(looks);
        (self.looks <= SETTLE_MESSAGE_READS).then_some(())
    }

    /// Whether elements of an anchor lie inside one another.
    #[inline]
    fn is_nested(&mut self, anchor: u32, found: Found<'_>) -> Option<bool> {
        if !self.asked.get(anchor) {
            self.find_nested(anchor, found)?;
        }
        Some(self.nested.get(anchor))
    }

    fn find_nested(&mut self, anchor: u32, found: Found<'_>) -> Option<()> {
        self.find_anchors(found)?;
        self.asked.set(anchor);
        let mut end = ElementId(0);
        let inside = |element: ElementId| {
            let inside = element < end;
            end = found.document.element(element).end;
            inside
        };
        if self.anchors.of(anchor).any(inside) {
            self.nested.set(anchor);
        }
        Some(())
    }

    /// Finds the places of the conditions that are expected.
    fn find_conditions(&mut self, found: Found<'_>) {
        self.conditions_ready = true;
        let by_accept = self.conditions.fill_by_accept(found, |element| found.dfa.conditions_of(element));
        let fits = by_accept && self.conditions.fill(found.dfa.values_found());
        self.too_many |= !fits;
    }

    /// Finds the elements of the anchors that are expected; `None` if they are too many.
    #[inline]
    fn find_anchors(&mut self, found: Found<'_>) -> Option<()> {
        if !self.anchors_ready {
            self.anchors_ready = true;
            let fits = self.anchors.fill_by_accept(found, |element| found.dfa.anchors_of(element));
            self.too_many |= !fits;
        }
        (!self.too_many).then_some(())
    }
}
