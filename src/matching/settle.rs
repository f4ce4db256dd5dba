//! Candidates whose anchors bound several elements, settled from what the automaton found.
//!
//! Verifying such a candidate on the document would mostly confirm it. But where each condition was
//! found is known, and a line that was found somewhere says which element of an anchor it came by:
//! as long as the elements of the anchor do not lie inside one another, the one above it; else the
//! one as far above it as the line is long. So a row holds if all its lines came by the same one.

use std::ops::Range;

use crate::document::Document;
use crate::ids::ElementId;
use crate::index::columns::View;
use crate::index::shape::{MOST_SIMPLE, Shape};
use crate::index::trie::NONE;
use crate::matching::bits::{Bits, ones};
use crate::matching::places::{Found, Places};
use crate::query::decompose::Reach;

/// Past so many elements looked at for a message, or too many places, candidates are verified one by
/// one instead: it bounds the time.
const MOST_LOOKS: usize = 1 << 16;

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
    /// Whether what follows is about the document at hand.
    conditions_ready: bool,
    anchors_ready: bool,
    conditions: Places,
    anchors: Places,
    looks: usize,
}

impl Settler {
    pub fn new(view: View<'_>) -> Settler {
        Settler {
            conditions_ready: false,
            anchors_ready: false,
            conditions: Places::new(view.conditions() + 1),
            anchors: Places::new(view.anchors() + 1),
            looks: 0,
        }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.conditions_ready = false;
        self.anchors_ready = false;
        self.looks = 0;
        self.conditions.reset();
        self.anchors.reset();
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
        self.look(1)?;
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
        let others = row.shape.lines_of(anchor) & !(1 << line);
        let mut at = self.conditions.heads[row.lines[line as usize] as usize];
        while let Some(&(end, next)) = self.conditions.links.get(at as usize) {
            at = next;
            let element = ancestor(found.document, end, steps);
            if self.lines(row, anchor, others, element, found)? {
                return Some(true);
            }
        }
        Some(false)
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
        if !self.anchors_ready {
            self.find_anchors(found);
        }
        let counted = row.shape.counted().filter(|counted| counted.anchor == anchor);
        let counted_lines = counted.map_or(0, |counted| counted.lines) & row.shape.lines_of(anchor);
        let lines = row.shape.lines_of(anchor) & !counted_lines;
        let own = ones(below as u64).fold(lines, |own, other| own & !row.shape.lines_of(other));
        // How many were counted below each parent.
        let mut counts: Vec<(ElementId, u32)> = Vec::new();
        let mut at = self.anchors.heads[row.anchors[anchor as usize] as usize];
        while let Some(&(element, next)) = self.anchors.links.get(at as usize) {
            at = next;
            self.look(1)?;
            if !range.contains(&element) {
                continue;
            }
            if let Some(counted) = counted {
                if !self.lines(row, anchor, counted_lines, element, found)? {
                    continue;
                }
                let parent = found.document.element(element).parent;
                let place = counts.iter().position(|(of, _)| *of == parent).unwrap_or_else(|| {
                    counts.push((parent, 0));
                    counts.len() - 1
                });
                self.look(counts.len())?;
                counts[place].1 += 1;
                if counts[place].1 != counted.position {
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
        Some(false)
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
        let mut looks = 0;
        let holds = match reach {
            Reach::Exactly(steps) => self.conditions.of(condition).any(|end| {
                looks += 1;
                ancestor(document, end, steps) == element
            }),
            Reach::AtLeast(steps) => {
                let of = document.element(element);
                self.conditions.of(condition).any(|end| {
                    looks += 1;
                    let inside = element <= end && end < of.end;
                    inside && document.element(end).depth - of.depth >= steps
                })
            }
            Reach::Unclear => unreachable!("asked for elements that do not lie in one another"),
        };
        self.look(looks)?;
        Some(holds)
    }

    /// Counts work; `None` when it has become too much.
    #[inline]
    fn look(&mut self, looks: usize) -> Option<()> {
        self.looks = self.looks.saturating_add(looks);
        (self.looks <= MOST_LOOKS).then_some(())
    }

    /// Whether elements of an anchor lie inside one another.
    fn is_nested(&mut self, anchor: u32, found: Found<'_>) -> Option<bool> {
        if !self.anchors_ready {
            self.find_anchors(found);
        }
        let (mut end, mut looks) = (ElementId(0), 0);
        let nested = self.anchors.of(anchor).any(|element| {
            let inside = element < end;
            end = found.document.element(element).end;
            looks += 1;
            inside
        });
        self.look(looks)?;
        Some(nested)
    }

    /// Finds the places of the conditions that are expected.
    fn find_conditions(&mut self, found: Found<'_>) {
        self.conditions_ready = true;
        let by_accept = self.conditions.fill_by_accept(found, |element| found.dfa.conditions_of(element));
        let fits = by_accept && self.conditions.fill(found.dfa.values_found());
        self.give_up_unless(fits);
    }

    /// Finds the elements of the anchors that are expected.
    fn find_anchors(&mut self, found: Found<'_>) {
        self.anchors_ready = true;
        let fits = self.anchors.fill_by_accept(found, |element| found.dfa.anchors_of(element));
        self.give_up_unless(fits);
    }

    /// Leaves the rest of the message to verification if there was too much to note.
    fn give_up_unless(&mut self, fits: bool) {
        if !fits {
            self.looks = MOST_LOOKS;
        }
    }
}

/// The element so many steps above another.
#[inline]
fn ancestor(document: &Document, element: ElementId, steps: u32) -> ElementId {
    let mut at = element;
    for _ in 0..steps {
        if at.is_none() {
            break;
        }
        at = document.element(at).parent;
    }
    at
}
