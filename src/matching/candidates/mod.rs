//! Candidates: from the findings of the automaton to the queries that match.
//!
//! Queries that one condition decides exactly match without any row. All others have rows, each filed under its
//! access test. A message reads the rows whose access test holds, its *candidates*, and tests the rest of each: few
//! tests per row, on bits that are in the processor's cache. Cost: the candidates of the message, however many queries
//! there are.
//!
//! ```text
//! queries   1 //a    2 //a[b]/@x    3 //a[b][c = 5]    4 not(//d)        message <r><a x=""><b/><c>5</c></a></r>
//! conditions that hold: //a, //a/b, //a/@x, //a/c = 5; no anchor is bound twice
//!   1  decided by //a alone
//!   2  filed under //a/@x: a simple row, whose other condition //a/b holds: matches
//!   3  filed under //a/c = 5: a simple row, whose other condition //a/b holds: matches
//!   4  has no access test: a candidate in every message; its condition //d does not hold: matches
//! ```
//!
//! With a second `a`, the anchor `//a` of 2 and 3 would be bound twice: `twigs` then decides them.
//!
//! The order: rows in blocks, other simple rows, settling, groups filed under conditions, groups filed under ranges,
//! rows without an access test, and last the queries to verify, as range families.

pub mod blocks;
pub mod range_families;

use crate::ids::{ConditionId, GenerationQuery, SegmentQuery, TenantId};
use crate::matching::budget::WorkLimit;
use crate::matching::candidates::blocks::{Blocks, RowBlock};
use crate::matching::candidates::range_families::RangeFamilies;
use crate::matching::findings::Findings;
use crate::matching::twigs::decide::TwigDecider;
use crate::matching::twigs::unsettled::Unsettled;
use crate::matching::work::Work;
use crate::segment::format::columns::View;
use crate::segment::rows::groups::{Group, Groups, MOST_ROWS, MULTI, VERIFY};
use crate::segment::rows::simple::MOST_SIMPLE;
use crate::tuning::ROW_BATCH;
use crate::util::bitset::{low_bits, ones};
use crate::util::prefetch::prefetch;

/// The queries of a segment that were reported for a message: a query can pass in several rows, because rows are
/// copied into blocks and queries can have several alternatives.
pub struct ReportedQueries(Vec<u64>);

impl ReportedQueries {
    pub fn new(view: View<'_>) -> ReportedQueries {
        ReportedQueries(vec![0; view.queries().div_ceil(64)])
    }

    /// Adds a query; false if it was there.
    #[inline(always)]
    fn insert(&mut self, query: SegmentQuery) -> bool {
        insert(&mut self.0, query)
    }

    /// Clears the word of a query: at the end, when all queries are cleared.
    #[inline(always)]
    fn clear(&mut self, query: SegmentQuery) {
        self.0[query.index() / 64] = 0;
    }

    /// Clears many queries; if they are most words, all at once.
    fn clear_all(&mut self, queries: impl ExactSizeIterator<Item = SegmentQuery>) {
        if queries.len() * 4 > self.0.len() {
            self.0.fill(0);
        } else {
            queries.for_each(|query| self.clear(query));
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

#[inline(always)]
fn insert(reported: &mut [u64], query: SegmentQuery) -> bool {
    let (word, bit) = (&mut reported[query.index() / 64], 1 << (query.0 % 64));
    let new = *word & bit == 0;
    *word |= bit;
    new
}

/// Buffers that collecting needs, kept from message to message.
pub struct CandidateScratch {
    /// Conditions that hold and whose rows are not in blocks.
    direct: Vec<ConditionId>,
    unsettled: Vec<Unsettled>,
    /// Queries whose verification is postponed, and the same as range families.
    unverified: Vec<SegmentQuery>,
    families: RangeFamilies,
    /// Queries with several alternatives that were verified, or wait for it, and are not in the matches.
    unmatched: Vec<SegmentQuery>,
    /// Queries of rows that passed all tests and are yet to be reported, so many. Fixed-size, so that a row can be
    /// written without testing whether there is room.
    passed: Box<[SegmentQuery; ROW_BATCH]>,
    passed_count: usize,
    /// Positions of rows that passed their first test.
    row_positions: Box<[u32; ROW_BATCH]>,
}

impl Default for CandidateScratch {
    fn default() -> CandidateScratch {
        CandidateScratch {
            direct: Vec::new(),
            unsettled: Vec::new(),
            unverified: Vec::new(),
            families: RangeFamilies::default(),
            unmatched: Vec::new(),
            passed: Box::new([SegmentQuery(0); ROW_BATCH]),
            passed_count: 0,
            row_positions: Box::new([0; ROW_BATCH]),
        }
    }
}

/// Collects the matching queries of one segment.
pub struct Collector<'a> {
    pub view: View<'a>,
    pub findings: &'a Findings,
    /// A bit per query that was removed; empty if none was.
    pub removed: &'a [u64],
    pub reported: &'a mut ReportedQueries,
    pub scratch: &'a mut CandidateScratch,
    /// This many queries are verified at once; further ones are grouped into range families first.
    pub verify_singly: u64,
    pub decider: TwigDecider<'a>,
    /// The number of the segment's first query in the generation.
    pub first_query: GenerationQuery,
    pub matches: &'a mut Vec<GenerationQuery>,
    /// Queries that reached the work limit: it is not known whether they match.
    pub failed: &'a mut Vec<GenerationQuery>,
    pub work: &'a mut Work,
}

impl Collector<'_> {
    /// Collects the queries that conditions decide exactly, and those with rows: `wanted` are the blocks to read.
    pub fn collect(&mut self, tenant: TenantId, blocks: &Blocks, wanted: &[RowBlock]) {
        let (first, first_failed) = (self.matches.len(), self.failed.len());
        let exact = self.view.exact();
        for (word, bits) in self.findings.conditions.words() {
            let first = word * 64;
            if first < exact {
                let sure = bits & low_bits(exact - first);
                let base = SegmentQuery::from(first).in_generation(self.first_query);
                self.matches.extend(ones(sure).map(|bit| SegmentQuery(bit).in_generation(base)));
            }
            let direct = ones(bits & self.view.direct[word]);
            self.scratch.direct.extend(direct.map(|bit| ConditionId(first as u32 + bit)));
        }
        let first_reported = self.matches.len();
        self.test_rows::<1, 4>(&blocks.narrow, wanted.iter().map(|block| block.narrow));
        self.test_rows::<2, 6>(&blocks.middle, wanted.iter().map(|block| block.middle));
        self.test_rows::<MOST_SIMPLE, 8>(&blocks.wide, wanted.iter().map(|block| block.wide));
        let direct = std::mem::take(&mut self.scratch.direct);
        self.test_simple_rows_under(&direct);
        self.report_passed();
        self.settle();
        let reported = self.matches[first_reported..].iter();
        self.reported.clear_all(reported.map(|query| query.in_segment(self.first_query)));
        let first_multi = self.matches.len();
        self.test_groups_under(&direct);
        for &slot in self.findings.slots_with_numbers() {
            self.test_groups_under_ranges(slot as usize * 2);
            self.test_groups_under_ranges(slot as usize * 2 + 1);
        }
        self.test_groups(self.view.always[tenant.index()], self.view.always[tenant.index() + 1]);
        self.verify_families();
        let first_single = self.view.first_single();
        for at in first_multi..self.matches.len() {
            let query = self.matches[at].in_segment(self.first_query);
            // Others have one row, in one group, and were not inserted.
            if query.index() < first_single {
                self.reported.clear(query);
            }
        }
        self.scratch.unmatched.drain(..).for_each(|query| self.reported.clear(query));
        self.scratch.direct = direct;
        self.scratch.direct.clear();
        drop_removed(self.removed, self.first_query, first, self.matches);
        drop_removed(self.removed, self.first_query, first_failed, self.failed);
    }

    /// Verifies queries of a tenant whose joins the index knows nothing of, as their data cannot serve them.
    pub fn verify_unserved(&mut self, tenant: TenantId, queries: &[SegmentQuery], first_match: usize) {
        let first_failed = self.failed.len();
        for &query in queries.iter().filter(|&&query| self.view.tenant_of(query) == tenant) {
            let number = query.in_generation(self.first_query);
            if self.matches[first_match..].contains(&number) || self.failed.contains(&number) {
                continue;
            }
            self.work.verified += 1;
            match self.decider.verify(query) {
                Ok(true) => self.matches.push(number),
                Ok(false) => {}
                Err(WorkLimit) => self.failed.push(number),
            }
        }
        drop_removed(self.removed, self.first_query, first_match, self.matches);
        drop_removed(self.removed, self.first_query, first_failed, self.failed);
    }

    /// Tests the simple rows that are filed under conditions and not in blocks.
    fn test_simple_rows_under(&mut self, conditions: &[ConditionId]) {
        let view = self.view;
        if view.copied.is_empty() {
            return;
        }
        for condition in conditions.iter().map(|condition| condition.index()) {
            if view.copied[condition / 64] >> (condition % 64) & 1 == 0 {
                let of = |starts: &[u32]| std::iter::once((starts[condition], starts[condition + 1]));
                self.test_rows::<1, 4>(view.narrow, of(view.condition_narrow));
                self.test_rows::<MOST_SIMPLE, 8>(view.wide, of(view.condition_wide));
            }
        }
    }

    /// Tests the groups that are filed under conditions.
    fn test_groups_under(&mut self, conditions: &[ConditionId]) {
        let view = self.view;
        if view.condition_rows.is_empty() {
            return;
        }
        for &condition in conditions {
            let (start, end) = view.groups_of(condition);
            self.test_groups(start, end);
        }
    }

    /// Tests the groups that are filed under ranges that a side of a slot passes.
    fn test_groups_under_ranges(&mut self, side: usize) {
        let view = self.view;
        let (start, end) = (view.range_start[side] as usize, view.range_start[side + 1] as usize);
        let number = self.findings.side(side);
        let passed = start + view.threshold[start..end].partition_point(|&threshold| number > threshold);
        if passed > start {
            self.test_groups(view.threshold_rows[start], view.threshold_rows[passed]);
        }
    }

    /// Tests ranges of simple rows with N positives and N anchors: first the first positive of each, which is the
    /// rarest, then the rest of the rows that passed. Whether a row passes is unpredictable, so nothing branches on
    /// it: each row writes its outcome, and only the length of the list depends on it.
    #[inline]
    fn test_rows<const N: usize, const W: usize>(
        &mut self,
        pool: &[[u32; W]],
        ranges: impl Iterator<Item = (u32, u32)>,
    ) {
        let conditions = self.findings.conditions.all();
        let mut passed = 0;
        for (start, end) in ranges {
            let (rows, mut at) = (&pool[start as usize..end as usize], start);
            self.work.candidates += rows.len() as u64;
            for rows in rows.chunks(ROW_BATCH) {
                if passed + rows.len() > ROW_BATCH {
                    self.test_rest::<N, W>(pool, passed);
                    passed = 0;
                }
                let positions = &mut *self.scratch.row_positions;
                for row in rows {
                    positions[passed] = at;
                    passed += (bit(conditions, row[0]) & 1) as usize;
                    at += 1;
                }
            }
        }
        self.test_rest::<N, W>(pool, passed);
    }

    /// Tests the other positives and the anchors of rows whose first positive holds.
    fn test_rest<const N: usize, const W: usize>(&mut self, pool: &[[u32; W]], passed: usize) {
        if self.scratch.passed_count + passed > ROW_BATCH {
            self.report_passed();
        }
        let (conditions, bound_twice) = (self.findings.conditions.all(), self.findings.bound_twice.all());
        let CandidateScratch { passed: queries, passed_count, row_positions, unsettled, .. } =
            &mut *self.scratch;
        // Not through the boxes: a write could change those for all that the compiler knows.
        let (queries, positions) = (&mut **queries, &mut **row_positions);
        let (mut filled, mut unsure) = (*passed_count, 0);
        for passed in 0..passed {
            let at = positions[passed];
            let row = &pool[at as usize];
            let holds = row[1..N].iter().fold(1, |holds, &condition| holds & bit(conditions, condition));
            let several = row[N..2 * N].iter().fold(0, |several, &anchor| several | bit(bound_twice, anchor));
            queries[filled] = SegmentQuery(row[W - 1]);
            filled += (holds & !several & 1) as usize;
            // Never beyond the positions that are still to be read.
            positions[unsure] = at;
            unsure += (holds & several & 1) as usize;
        }
        *passed_count = filled;
        let view = self.view;
        unsettled.extend(positions[..unsure].iter().map(|&at| {
            let row = Unsettled::of::<N, W>(&pool[at as usize]);
            prefetch(view.shape, row.query.index() - view.first_single());
            row
        }));
    }

    /// Reports the queries of rows that passed, each once.
    fn report_passed(&mut self) {
        let CandidateScratch { passed, passed_count, .. } = &mut *self.scratch;
        let (first, reported) = (self.matches.len(), &mut self.reported.0[..]);
        let mut end = first;
        self.matches.resize(first + *passed_count, GenerationQuery(0));
        for &query in &passed[..*passed_count] {
            self.matches[end] = query.in_generation(self.first_query);
            end += insert(reported, query) as usize;
        }
        self.matches.truncate(end);
        *passed_count = 0;
    }

    /// Decides simple rows that passed but have an anchor bound by several elements.
    fn settle(&mut self) {
        let mut unsettled = std::mem::take(&mut self.scratch.unsettled);
        unsettled.retain(|row| self.reported.insert(row.query));
        // In a separate loop, so that the processor waits for many shapes at once.
        unsettled.iter_mut().for_each(|row| row.add_shape(self.view, &self.findings.bound_twice));
        unsettled.iter().for_each(|row| self.decider.expect(row));
        for row in &unsettled {
            let settled = self.decider.settle(row);
            self.work.settled += settled.is_some() as u64;
            if settled.unwrap_or_else(|| self.verify(row.query)) {
                self.matches.push(row.query.in_generation(self.first_query));
            }
        }
        unsettled.iter().for_each(|row| self.reported.clear(row.query));
        unsettled.clear();
        self.scratch.unsettled = unsettled;
    }

    /// Verifies a query; false also if its verification was postponed, or reached the work limit.
    fn verify(&mut self, query: SegmentQuery) -> bool {
        if self.work.verified >= self.verify_singly {
            self.scratch.unverified.push(query);
            return false;
        }
        self.work.verified += 1;
        self.decider.verify(query).unwrap_or_else(|WorkLimit| {
            self.failed.push(query.in_generation(self.first_query));
            false
        })
    }

    /// Verifies the postponed queries.
    fn verify_families(&mut self) {
        if self.scratch.unverified.is_empty() {
            return;
        }
        let view = self.view;
        let CandidateScratch { unverified, families, .. } = &mut *self.scratch;
        let twigs = unverified.drain(..).map(|query| (query, view.query_twig[query.index()]));
        families.group(view.twig, twigs);
        let (decider, work) = (&mut self.decider, &mut *self.work);
        let (matches, failed, first) = (&mut *self.matches, &mut *self.failed, self.first_query);
        let verify = |query| {
            work.verified += 1;
            decider.verify(query)
        };
        let matching = |query: SegmentQuery| matches.push(query.in_generation(first));
        let failing = |query: SegmentQuery| failed.push(query.in_generation(first));
        families.decide(verify, matching, failing);
    }

    /// Tests the groups in a range of the program.
    fn test_groups(&mut self, start: u32, end: u32) {
        let mut at = start as usize;
        while at < end as usize {
            let mut groups = Groups::at(self.view, at);
            for group in &mut groups {
                self.test_group(&group);
            }
            at = groups.end();
        }
    }

    /// Tests the rows of a group.
    #[inline]
    fn test_group(&mut self, group: &Group<'_>) {
        let Some(screen) = group.screen() else {
            self.work.candidates += group.rows as u64;
            for row in 0..group.rows {
                if group.holds(row, &self.findings.conditions) && group.in_range(row, self.findings.sides()) {
                    self.decide(group, row);
                }
            }
            return;
        };
        let Some(verdicts) = screen.verdicts(self.findings.sides()) else {
            return;
        };
        self.work.candidates += group.rows as u64;
        let mut survivors = [0; MOST_ROWS + 1];
        let count = verdicts.survivors(&mut survivors);
        let survivors = survivors[..count].iter().map(|&row| row as usize);
        let passes = |row: usize| verdicts.is_sure(row) || group.in_range(row, self.findings.sides());
        if group.is_ranges_only() {
            let (first, mut end) = (group.first_query.in_generation(self.first_query), self.matches.len());
            self.matches.resize(end + count, first);
            for row in survivors {
                self.matches[end] = SegmentQuery(row as u32).in_generation(first);
                end += passes(row) as usize;
            }
            self.matches.truncate(end);
        } else {
            for row in survivors {
                if group.holds(row, &self.findings.conditions) && passes(row) {
                    self.decide(group, row);
                }
            }
        }
    }

    /// Decides a query whose row passed its conditions and ranges.
    #[inline]
    fn decide(&mut self, group: &Group<'_>, row: usize) {
        let query = group.query(row);
        let is_multi = group.flags & MULTI != 0;
        // A query is decided once, by the first of its alternatives that passes.
        if is_multi && !self.reported.insert(query) {
            return;
        }
        let is_sure = group.flags & VERIFY == 0 && group.anchors_unique(row, &self.findings.bound_twice);
        if is_sure || self.verify(query) {
            self.matches.push(query.in_generation(self.first_query));
        } else if is_multi {
            self.scratch.unmatched.push(query);
        }
    }
}

/// Drops the removed queries of the segment from `queries`, from position `start` on.
fn drop_removed(
    removed: &[u64],
    first_query: GenerationQuery,
    start: usize,
    queries: &mut Vec<GenerationQuery>,
) {
    if removed.is_empty() {
        return;
    }
    let mut kept = start;
    for at in start..queries.len() {
        let query = queries[at].in_segment(first_query);
        let is_removed = removed[query.index() / 64] >> (query.0 % 64) & 1 != 0;
        queries[kept] = queries[at];
        kept += !is_removed as usize;
    }
    queries.truncate(kept);
}

/// A bit of a bitmap, as the lowest of a word whose others mean nothing.
#[inline(always)]
fn bit(words: &[u64], bit: u32) -> u64 {
    words[bit as usize / 64] >> (bit % 64)
}

#[cfg(test)]
mod tests {
    use crate::matching::fixture::{matched, segment};
    use crate::tuning::{CACHE_BYTES, Tuning};

    #[test]
    fn the_worked_example_above() {
        let segment = segment(&["//a", "//a[b]/@x", "//a[b][c = 5]", "not(//d)", "//a[c = 6][b]"]);
        let tuning = Tuning::new(CACHE_BYTES);
        let (targets, work) = matched(&segment, "<r><a x=''><b/><c>5</c></a></r>", tuning);
        assert_eq!(targets, [0, 1, 2, 3]);
        // The first has no row; the last is filed under a condition that does not hold.
        assert_eq!((work.candidates, work.settled, work.verified), (3, 0, 0));
        let (targets, work) = matched(&segment, "<r><a x=''><b/></a><a><c>5</c></a></r>", tuning);
        assert_eq!(targets, [0, 1, 3]);
        assert_eq!((work.candidates, work.settled, work.verified), (3, 2, 0));
    }

    #[test]
    fn a_query_is_reported_once_however_many_of_its_rows_pass() {
        let segment = segment(&["//a[b or c or d]/e", "//a[b][c] | //a[d][e]"]);
        let message = "<r><a><b/><c/><d/><e/></a></r>";
        let (targets, work) = matched(&segment, message, Tuning::new(CACHE_BYTES));
        assert_eq!(targets, [0, 1]);
        assert_eq!((work.candidates, work.verified), (5, 0));
    }

    #[test]
    fn rows_under_ranges_are_candidates_only_below_the_number() {
        let queries: Vec<String> = (0..500).map(|bound| format!("//a[@x > {bound}]/b")).collect();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let (targets, work) =
            matched(&segment(&queries), "<r><a x='99.5'><b/></a></r>", Tuning::new(CACHE_BYTES));
        assert_eq!(targets, (0..100).collect::<Vec<_>>());
        assert_eq!((work.settled, work.verified), (0, 0));
    }

    #[test]
    fn further_queries_to_verify_are_grouped_into_families() {
        let queries: Vec<String> =
            (0..1000).map(|bound| format!("//a[contains(b, 'x')][@y > {bound}]")).collect();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let message = "<r><a y='700'><b>x</b></a><a y='2000'/></r>";
        let (targets, work) = matched(&segment(&queries), message, Tuning::new(CACHE_BYTES));
        assert_eq!(targets, (0..700).collect::<Vec<_>>());
        assert!(work.verified < 100, "{work:?}");
    }
}
