//! Settles candidates whose anchors bound several elements, from the occurrences of their conditions: a structural
//! semijoin on the anchor, without reading the document again.
//!
//! All conditions of a row hold somewhere. The row matches if they hold below the same element of each anchor. Which
//! anchor element an occurrence lies under follows from the length of the path between both (its *reach*), or, if the
//! path has a `//` there, from the range of the element:
//!
//! ```text
//! //item[price > 50][tag = 'sale']                <order><item 2><price 3>12</price><tag 4>sale</tag></item>
//! anchor: //item                                         <item 5><price 6>99</price><tag 7>sale</tag></item></order>
//! occurrences   //item/price > 50: 6    //item/tag = 'sale': 4, 7    both end one step below the anchor
//! leading path  //item/price > 50: one step above 6 is item 5; one step above 7 is item 5 too: the row matches
//! ```
//!
//! A row takes its rarest conditions first and reads few occurrences: up to `scan_occurrences` are scanned, more are
//! sorted into lists of ancestors once per message (`ancestors`). A row that would read too many is left to
//! verification (`None`).

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::{AnchorId, ConditionId, ElementId};
use crate::matching::twigs::ancestors::{AncestorLists, ancestor};
use crate::matching::twigs::occurrences::{Occurrences, TracedDocument};
use crate::matching::twigs::unsettled::{LeadingPath, Unsettled};
use crate::query::linear_path::Reach;
use crate::segment::format::columns::View;
use crate::tuning::{SETTLE_MESSAGE_READS, SETTLE_ROW_READS};
use crate::util::bitset::{Bits, ones};

/// Settles the rows of one segment in one document at a time.
pub struct Settler {
    /// Up to this many occurrences are scanned; more are sorted first.
    scan_occurrences: usize,
    /// Whether the occurrences are those of this document.
    conditions_ready: bool,
    anchors_ready: bool,
    conditions: Occurrences<ConditionId>,
    anchors: Occurrences<AnchorId>,
    above: AncestorLists,
    /// Anchors of which it is known whether their elements are nested, and those of which they are.
    nesting_known: Bits,
    nested: Bits,
    /// Whether there are more occurrences than are recorded: then nothing can be settled.
    too_many: bool,
    /// Occurrences that the row may still read without success, and those that rows read beyond that.
    row_reads_left: usize,
    message_reads: usize,
}

impl Settler {
    pub fn new(view: View<'_>, scan_occurrences: usize) -> Settler {
        Settler {
            scan_occurrences,
            conditions_ready: false,
            anchors_ready: false,
            conditions: Occurrences::new(view.conditions() + 1),
            anchors: Occurrences::new(view.anchors() + 1),
            above: AncestorLists::default(),
            nesting_known: Bits::new(view.anchors() + 1),
            nested: Bits::new(view.anchors() + 1),
            too_many: false,
            row_reads_left: 0,
            message_reads: 0,
        }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.conditions_ready = false;
        self.anchors_ready = false;
        self.too_many = false;
        self.message_reads = 0;
        self.conditions.reset();
        self.anchors.reset();
        self.above.reset();
        self.nesting_known.clear();
        self.nested.clear();
    }

    /// Requests the occurrences of a row. All rows are requested before the first is settled.
    #[inline]
    pub fn expect(&mut self, row: &Unsettled) {
        let mut lines = 0;
        for anchor in ones(row.several as u64) {
            lines |= row.shape.lines_of(anchor);
            if row.lead.is_none() || row.shape.is_unclear(anchor) {
                self.anchors.request(row.anchors[anchor as usize]);
            }
        }
        for (line, &condition) in row.lines.iter().enumerate() {
            if lines >> line & 1 != 0 {
                self.conditions.request(condition);
            }
        }
    }

    /// Whether the conditions of a row hold together; `None` if only verification can tell.
    #[inline]
    pub fn settle(&mut self, row: &Unsettled, found: TracedDocument<'_>) -> Option<bool> {
        if !self.conditions_ready {
            self.find_conditions(found);
        }
        if self.too_many {
            return None;
        }
        self.row_reads_left = SETTLE_ROW_READS;
        self.above.trim(found.document);
        if let Some(lead) = row.lead {
            return self.settle_by_path(row, lead, found);
        }
        self.settle_by_anchors(row, found)
    }

    /// Settles a row from the elements of its anchors.
    fn settle_by_anchors(&mut self, row: &Unsettled, found: TracedDocument<'_>) -> Option<bool> {
        let all = ElementId(0)..ElementId::from(found.document.elements.len());
        // A bit more than any row has paths: every anchor lies below.
        for anchor in ones(row.below(0x1F) as u64) {
            if !self.anchor_holds(row, anchor, &all, found)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Settles a row from the occurrences of its leading path.
    #[inline]
    fn settle_by_path(
        &mut self,
        row: &Unsettled,
        lead: LeadingPath,
        found: TracedDocument<'_>,
    ) -> Option<bool> {
        let LeadingPath { anchor, line, steps } = lead;
        let lines = row.shape.lines_of(anchor);
        let rarest = lines.trailing_zeros();
        let others = lines & !(1 << line);
        let mut at = self.conditions.heads[row.lines[line as usize].index()];
        let mut last = ElementId::NONE;
        let mut scanned = if rarest == line { usize::MAX } else { self.scan_occurrences };
        while let Some(&(end, next)) = self.conditions.links.get(at as usize) {
            if scanned == 0 {
                return self.settle_by_ancestors(row, anchor, rarest, found);
            }
            (scanned, at) = (scanned - 1, next);
            let element = ancestor(found.document, end, steps);
            // Neighbouring occurrences often have it in common.
            if element == last {
                continue;
            }
            last = element;
            if self.paths_hold(row, anchor, others, element, found)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Settles a row from all elements of an anchor that lie above the occurrences of a path.
    #[cold]
    fn settle_by_ancestors(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        line: u32,
        found: TracedDocument<'_>,
    ) -> Option<bool> {
        for at in self.elements_above(row, anchor, line, found) {
            let element = self.above.get(at);
            if self.paths_hold(row, anchor, row.shape.lines_of(anchor), element, found)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The elements that a path can have passed at an anchor.
    fn elements_above(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        line: u32,
        found: TracedDocument<'_>,
    ) -> Range<usize> {
        let condition = row.lines[line as usize];
        match row.shape.reach(anchor, line) {
            Some(Reach::Exactly(steps)) => {
                self.above.by_steps(condition, steps, &self.conditions, found.document)
            }
            _ => self.above.by_anchor(condition, row.anchors[anchor as usize], &self.conditions, found),
        }
    }

    /// Whether some element of an anchor satisfies the whole row below the anchor, including the anchors below it.
    fn anchor_holds(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        range: &Range<ElementId>,
        found: TracedDocument<'_>,
    ) -> Option<bool> {
        let lines = row.shape.lines_of(anchor);
        if ones(row.several as u64).any(|other| other != anchor && row.shape.lines_of(other) == lines) {
            return None;
        }
        let below = row.below(lines);
        if below != 0 && self.is_nested(row.anchors[anchor as usize], found)? {
            return None;
        }
        self.some_element_holds(row, anchor, below, range, found)
    }

    /// Whether some element of an anchor in a range satisfies the anchor's own paths and the anchors `below`.
    fn some_element_holds(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        below: u32,
        range: &Range<ElementId>,
        found: TracedDocument<'_>,
    ) -> Option<bool> {
        self.find_anchors(found)?;
        let counted = row.shape.counted().filter(|counted| counted.anchor == anchor);
        let counted_lines = counted.map_or(0, |counted| counted.lines) & row.shape.lines_of(anchor);
        let lines = row.shape.lines_of(anchor) & !counted_lines;
        let own = ones(below as u64).fold(lines, |own, other| own & !row.shape.lines_of(other));
        // The elements counted so far, by parent.
        let mut counts: FxHashMap<ElementId, u32> = FxHashMap::default();
        let mut next = self.anchors.heads[row.anchors[anchor as usize].index()];
        let leading = if counted.is_some() { counted_lines } else { lines };
        let mut scanned = if leading == 0 { usize::MAX } else { self.scan_occurrences };
        let mut led: Option<Range<usize>> = None;
        loop {
            let element = match (&mut led, self.anchors.links.get(next as usize)) {
                (Some(above), _) => above.next().map(|at| self.above.get(at)),
                (None, Some(_)) if scanned == 0 => {
                    // Only the elements above the occurrences of a path matter.
                    let above = self.elements_above(row, anchor, leading.trailing_zeros(), found);
                    led = Some(self.above.within(above, range));
                    counts.clear();
                    continue;
                }
                (None, Some(&(element, after))) => {
                    (scanned, next) = (scanned - 1, after);
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
                if !self.paths_hold(row, anchor, counted_lines, element, found)? {
                    continue;
                }
                let count = counts.entry(found.document.element(element).parent).or_insert(0);
                *count += 1;
                if *count != counted.position {
                    continue;
                }
            }
            let mut holds = self.paths_hold(row, anchor, own, element, found)?;
            let inside = element..found.document.element(element).end;
            for other in ones(below as u64) {
                holds = holds && self.anchor_holds(row, other, &inside, found)?;
            }
            if holds {
                return Some(true);
            }
        }
    }

    /// Whether all of some paths pass an element of an anchor.
    #[inline]
    fn paths_hold(
        &mut self,
        row: &Unsettled,
        anchor: u32,
        lines: u32,
        element: ElementId,
        found: TracedDocument<'_>,
    ) -> Option<bool> {
        for line in ones(lines as u64) {
            let mut reach = row.shape.reach(anchor, line)?;
            if reach == Reach::Unclear {
                if self.is_nested(row.anchors[anchor as usize], found)? {
                    return None;
                }
                reach = Reach::AtLeast(0);
            }
            if !self.occurs_below(row.lines[line as usize], reach, element, found.document)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether a condition has an occurrence at that reach below an element.
    #[inline]
    fn occurs_below(
        &mut self,
        condition: ConditionId,
        reach: Reach,
        element: ElementId,
        document: &Document,
    ) -> Option<bool> {
        let mut occurrences = self.conditions.of(condition);
        let mut scanned = occurrences.by_ref().take(self.scan_occurrences);
        let holds = match reach {
            Reach::Exactly(steps) => scanned.any(|end| ancestor(document, end, steps) == element),
            Reach::AtLeast(steps) => {
                let of = document.element(element);
                scanned.any(|end| {
                    let inside = element <= end && end < of.end;
                    inside && document.element(end).depth - of.depth >= steps
                })
            }
            Reach::Unclear => {
                unreachable!("the elements of the anchor are not nested, so the reach is `AtLeast`")
            }
        };
        if holds || occurrences.next().is_none() {
            return Some(holds);
        }
        drop(occurrences);
        self.occurs_below_sorted(condition, reach, element, document)
    }

    /// The same for a condition with many occurrences.
    #[cold]
    fn occurs_below_sorted(
        &mut self,
        condition: ConditionId,
        reach: Reach,
        element: ElementId,
        document: &Document,
    ) -> Option<bool> {
        if let Reach::Exactly(steps) = reach {
            let above = self.above.by_steps(condition, steps, &self.conditions, document);
            return Some(self.above.contains(above, element));
        }
        let Reach::AtLeast(steps) = reach else {
            return None;
        };
        let of = document.element(element);
        let occurrences = self.above.by_steps(condition, 0, &self.conditions, document);
        let (mut reads, mut holds) = (0, false);
        for at in self.above.within(occurrences, &(element..of.end)) {
            reads += 1;
            if document.element(self.above.get(at)).depth - of.depth >= steps {
                holds = true;
                break;
            }
        }
        self.spend_reads(reads)?;
        Some(holds)
    }

    /// Counts occurrences that were read; `None` beyond the bound.
    fn spend_reads(&mut self, reads: usize) -> Option<()> {
        if reads <= self.row_reads_left {
            self.row_reads_left -= reads;
            return Some(());
        }
        self.message_reads = self.message_reads.saturating_add(reads);
        (self.message_reads <= SETTLE_MESSAGE_READS).then_some(())
    }

    /// Whether elements of an anchor are nested.
    #[inline]
    fn is_nested(&mut self, anchor: AnchorId, found: TracedDocument<'_>) -> Option<bool> {
        if !self.nesting_known.get(anchor.0) {
            self.find_nested(anchor, found)?;
        }
        Some(self.nested.get(anchor.0))
    }

    fn find_nested(&mut self, anchor: AnchorId, found: TracedDocument<'_>) -> Option<()> {
        self.find_anchors(found)?;
        self.nesting_known.set(anchor.0);
        let mut end = ElementId(0);
        let inside = |element: ElementId| {
            let inside = element < end;
            end = found.document.element(element).end;
            inside
        };
        if self.anchors.of(anchor).any(inside) {
            self.nested.set(anchor.0);
        }
        Some(())
    }

    /// Records the occurrences of the requested conditions.
    fn find_conditions(&mut self, found: TracedDocument<'_>) {
        self.conditions_ready = true;
        let by_accept = self.conditions.fill_by_accept(found, |element| found.trace.conditions_of(element));
        let fits = by_accept && self.conditions.fill(found.trace.value_conditions());
        self.too_many |= !fits;
    }

    /// Records the elements of the requested anchors; `None` if they are too many.
    #[inline]
    fn find_anchors(&mut self, found: TracedDocument<'_>) -> Option<()> {
        if !self.anchors_ready {
            self.anchors_ready = true;
            let fits = self.anchors.fill_by_accept(found, |element| found.trace.anchors_of(element));
            self.too_many |= !fits;
        }
        (!self.too_many).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::matching::fixture::{matched, segment};
    use crate::tuning::{CACHE_BYTES, Tuning};

    /// Query, message, whether it matches, and whether that was settled.
    const CASES: [(&str, &str, bool, bool); 10] = [
        // A leading path: all paths end a fixed number of steps below the anchor.
        ("//a[b][c]", "<r><a><b/></a><a><c/></a></r>", false, true),
        ("//a[b][c]", "<r><a><b/></a><a><b/><c/></a></r>", true, true),
        ("//a[b/d][c]", "<a><a><b><d/></b></a><c/></a>", false, true),
        // A path with `//` below the anchor: by the range of the element.
        ("//a[@x][.//c]", "<r><a x=''/><a><b><c/></b></a></r>", false, true),
        ("//a[@x][.//c]", "<r><a/><a x=''><b><c/></b></a></r>", true, true),
        // Two anchors, one below the other.
        ("//a[b[c][d]][e]", "<r><a><b><c/><d/></b></a><a><b><c/></b><b><d/></b><e/></a></r>", false, true),
        ("//a[b[c][d]][e]", "<r><a><e/></a><a><b><c/></b><b><c/><d/></b><e/></a></r>", true, true),
        // Positions count the elements of an anchor below each parent.
        ("//a[b][2]/c", "<r><a><b/></a><a/><a><b/><c/></a></r>", true, true),
        ("//a[b][2]/c", "<r><a><b/><c/></a><a><c/></a><p><a><b/><c/></a></p></r>", false, true),
        // Nested elements of an anchor with an unclear reach: left to verification.
        ("//a[b//x][.//c]", "<a><a><b><a><x/></a></b></a><c/></a>", false, false),
    ];

    #[test]
    fn rows_are_settled_where_that_is_possible_and_right() {
        for scan_occurrences in [16, 0] {
            let tuning = Tuning { scan_occurrences, ..Tuning::new(CACHE_BYTES) };
            let cases = CASES.map(|(query, message, _, _)| {
                let (targets, work) = matched(&segment(&[query]), message, tuning);
                (query, message, !targets.is_empty(), work.settled == 1 && work.verified == 0)
            });
            assert_eq!(cases, CASES);
        }
    }

    #[test]
    fn many_occurrences_are_sorted_once_and_not_scanned_for_each_row() {
        let queries: Vec<String> = (0..50).map(|number| format!("//e[f][g = {number}]")).collect();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let elements: String =
            (0..2_000).map(|number| format!("<e><f/><g>{}</g></e>", number % 60)).collect();
        let (targets, work) = matched(
            &segment(&queries),
            &format!("<r>{elements}<e><g>7</g></e></r>"),
            Tuning::new(CACHE_BYTES),
        );
        assert_eq!(targets.len(), 50);
        assert_eq!((work.settled, work.verified), (50, 0));
    }
}
