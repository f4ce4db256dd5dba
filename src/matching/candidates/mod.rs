//! From findings to matches: the queries that a condition says exactly, then the rows filed under
//! what was found.

pub mod blocks;
pub mod range_families;

use crate::matching::candidates::blocks::{Block, Blocks};
use crate::matching::candidates::range_families::Alike;
use crate::matching::findings::Findings;
use crate::matching::twigs::settle::Unsettled;
use crate::segment::format::columns::View;
use crate::segment::rows::groups::{Group, Groups, MOST_ROWS, MULTI, VERIFY};
use crate::segment::rows::simple::MOST_SIMPLE;
use crate::tuning::ROW_BATCH;
use crate::util::bitset::{low_bits, ones};
use crate::util::prefetch::prefetch;

/// How much work a message was. Costs that grow with it are visible here first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Rows that were looked at, beside the queries that their condition says exactly.
    pub candidates: u64,
    /// Survivors with anchors that bound several elements, settled by what was found below them.
    pub settled: u64,
    /// Survivors that had to be verified on the document.
    pub verified: u64,
}

/// Which queries of a message were met already: rows are copied, and may be met in several blocks.
pub struct Met(Vec<u64>);

impl Met {
    pub fn new(view: View<'_>) -> Met {
        Met(vec![0; view.queries().div_ceil(64)])
    }

    #[inline(always)]
    fn is_new(&mut self, query: u32) -> bool {
        let (word, bit) = (&mut self.0[query as usize / 64], 1 << (query % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    #[inline(always)]
    fn forget(&mut self, query: u32) {
        self.0[query as usize / 64] = 0;
    }

    /// Forgets many at once: where they are most of what there is, everything.
    fn forget_all(&mut self, queries: impl ExactSizeIterator<Item = u32>) {
        if queries.len() * 4 > self.0.len() {
            self.0.fill(0);
        } else {
            queries.for_each(|query| self.forget(query));
        }
    }
}

/// Decides what rows alone do not.
pub trait Judge {
    /// Whether a query matches, whatever the cost.
    fn verify(&mut self, query: u32) -> bool;

    /// Announces a row that will be settled; all are announced before the first.
    fn expect(&mut self, row: &Unsettled);

    /// Whether a row's lines hold together; `None` if only `verify` can tell.
    fn settle(&mut self, row: &Unsettled) -> Option<bool>;
}

/// Collects the matching queries of one segment.
pub struct Collector<'a, J: Judge> {
    pub view: View<'a>,
    pub findings: &'a Findings,
    /// A bit per query that was removed; empty if none was.
    pub dead: &'a [u64],
    pub met: &'a mut Met,
    /// Scratch: conditions whose rows are not in blocks; rows to settle.
    pub opened: &'a mut Vec<u32>,
    pub unsettled: &'a mut Vec<Unsettled>,
    /// Queries to verify that were put off, and the same by what they have in common.
    pub unverified: &'a mut Vec<u32>,
    /// Queries with several alternatives that were verified, or wait for it, and are not in `matches`.
    pub unmatched: &'a mut Vec<u32>,
    pub alike: &'a mut Alike,
    /// So many queries are verified at once; the others wait for those that are alike.
    pub few: u64,
    pub judge: J,
    /// Queries on their way to `matches`: a place to write to without asking whether there is room.
    pub outbox: &'a mut [u32; ROW_BATCH],
    pub filled: usize,
    /// Scratch: places of rows that passed so far.
    pub places: &'a mut [u32; ROW_BATCH],
    /// Added to each query's number.
    pub base: u32,
    pub matches: &'a mut Vec<u32>,
    pub work: &'a mut Work,
}

impl<J: Judge> Collector<'_, J> {
    /// Collects what the conditions say that hold, and the rows filed under them: those in blocks,
    /// and the others.
    pub fn collect(&mut self, tenant: u32, blocks: &Blocks, found: &[Block]) {
        let first = self.matches.len();
        let exact = self.view.exact();
        for (word, bits) in self.findings.conditions.words() {
            let first = word * 64;
            if first < exact {
                let sure = bits & low_bits(exact - first);
                let base = self.base + first as u32;
                self.matches.extend(ones(sure).map(|bit| base + bit));
            }
            self.opened.extend(ones(bits & self.view.direct[word]).map(|bit| first as u32 + bit));
        }
        let first_met = self.matches.len();
        self.rows::<1, 4>(&blocks.narrow, found.iter().map(|block| block.narrow));
        self.rows::<2, 6>(&blocks.middle, found.iter().map(|block| block.middle));
        self.rows::<MOST_SIMPLE, 8>(&blocks.wide, found.iter().map(|block| block.wide));
        let opened = std::mem::take(self.opened);
        self.open_simple(&opened);
        self.flush();
        self.settle();
        self.met.forget_all(self.matches[first_met..].iter().map(|query| query - self.base));
        let first_multi = self.matches.len();
        self.open_groups(&opened);
        for &slot in self.findings.touched() {
            self.thresholds(slot as usize * 2);
            self.thresholds(slot as usize * 2 + 1);
        }
        self.groups(self.view.always[tenant as usize], self.view.always[tenant as usize + 1]);
        self.verify_together();
        let first_single = self.view.first_single() as u32;
        for at in first_multi..self.matches.len() {
            let query = self.matches[at] - self.base;
            // Others are in one group only, and were not noted.
            if query < first_single {
                self.met.forget(query);
            }
        }
        self.unmatched.drain(..).for_each(|query| self.met.forget(query));
        *self.opened = opened;
        self.opened.clear();
        self.bury(first);
    }

    /// Tests the simple rows that are filed under conditions that were found, and in no block.
    fn open_simple(&mut self, opened: &[u32]) {
        let view = self.view;
        if view.copied.is_empty() {
            return;
        }
        for condition in opened.iter().map(|&condition| condition as usize) {
            if view.copied[condition / 64] >> (condition % 64) & 1 == 0 {
                let of = |starts: &[u32]| std::iter::once((starts[condition], starts[condition + 1]));
                self.rows::<1, 4>(view.narrow, of(view.condition_narrow));
                self.rows::<MOST_SIMPLE, 8>(view.wide, of(view.condition_wide));
            }
        }
    }

    /// Tests the groups that are filed under conditions that were found.
    fn open_groups(&mut self, opened: &[u32]) {
        let view = self.view;
        if view.condition_rows.is_empty() {
            return;
        }
        for condition in opened.iter().map(|&condition| condition as usize) {
            self.groups(view.condition_rows[condition], view.condition_rows[condition + 1]);
        }
    }

    /// The rows filed under ranges that a side of a slot passes.
    fn thresholds(&mut self, side: usize) {
        let view = self.view;
        let (start, end) = (view.range_start[side] as usize, view.range_start[side + 1] as usize);
        let number = self.findings.side(side);
        let passed = start + view.threshold[start..end].partition_point(|&threshold| number > threshold);
        if passed > start {
            self.groups(view.threshold_rows[start], view.threshold_rows[passed]);
        }
    }

    /// Tests stretches of simple rows with N positives and N anchors: the first positive, which is the
    /// rarest, of all of them, the rest of those that passed. Whether a row passes cannot be foretold,
    /// so nothing branches on it: each writes its outcome, and only how far the lists have grown
    /// depends on it.
    #[inline]
    fn rows<const N: usize, const W: usize>(
        &mut self,
        pool: &[[u32; W]],
        stretches: impl Iterator<Item = (u32, u32)>,
    ) {
        let conditions = self.findings.conditions.all();
        let mut passed = 0;
        for (start, end) in stretches {
            let (rows, mut at) = (&pool[start as usize..end as usize], start);
            self.work.candidates += rows.len() as u64;
            for rows in rows.chunks(ROW_BATCH) {
                if passed + rows.len() > ROW_BATCH {
                    self.rest_of::<N, W>(pool, passed);
                    passed = 0;
                }
                let places = &mut *self.places;
                for row in rows {
                    places[passed] = at;
                    passed += (bit(conditions, row[0]) & 1) as usize;
                    at += 1;
                }
            }
        }
        self.rest_of::<N, W>(pool, passed);
    }

    /// Tests what is left of the rows whose first positive holds.
    fn rest_of<const N: usize, const W: usize>(&mut self, pool: &[[u32; W]], passed: usize) {
        if self.filled + passed > ROW_BATCH {
            self.flush();
        }
        let (conditions, twice) = (self.findings.conditions.all(), self.findings.twice.all());
        let (mut filled, mut put_off) = (self.filled, 0);
        let (outbox, places) = (&mut *self.outbox, &mut *self.places);
        for passed in 0..passed {
            let at = places[passed];
            let row = &pool[at as usize];
            let holds = row[1..N].iter().fold(1, |holds, &condition| holds & bit(conditions, condition));
            let several = row[N..2 * N].iter().fold(0, |several, &anchor| several | bit(twice, anchor));
            outbox[filled] = row[W - 1];
            filled += (holds & !several & 1) as usize;
            // Never past the places still to be read.
            places[put_off] = at;
            put_off += (holds & several & 1) as usize;
        }
        self.filled = filled;
        let view = self.view;
        self.unsettled.extend(self.places[..put_off].iter().map(|&at| {
            let row = Unsettled::of::<N, W>(&pool[at as usize]);
            prefetch(view.shape, row.query as usize - view.first_single());
            row
        }));
    }

    /// Hands over what passed.
    fn flush(&mut self) {
        let mut new = 0;
        for at in 0..self.filled {
            let query = self.outbox[at];
            self.outbox[new] = self.base + query;
            new += self.met.is_new(query) as usize;
        }
        self.matches.extend_from_slice(&self.outbox[..new]);
        self.filled = 0;
    }

    /// Settles or verifies the rows that were put off.
    fn settle(&mut self) {
        let mut unsettled = std::mem::take(self.unsettled);
        unsettled.retain(|row| self.met.is_new(row.query));
        // Apart from what follows, so that the processor waits for many shapes at once.
        unsettled.iter_mut().for_each(|row| row.look(self.view, &self.findings.twice));
        unsettled.iter().for_each(|row| self.judge.expect(row));
        for row in &unsettled {
            self.work.settled += 1;
            let matches = self.judge.settle(row).unwrap_or_else(|| self.verify(row.query));
            if matches {
                self.matches.push(self.base + row.query);
            }
        }
        unsettled.iter().for_each(|row| self.met.forget(row.query));
        unsettled.clear();
        *self.unsettled = unsettled;
    }

    /// Whether a query is known to match once it was verified: it may be put off, and is not yet.
    fn verify(&mut self, query: u32) -> bool {
        if self.work.verified >= self.few {
            self.unverified.push(query);
            return false;
        }
        self.work.verified += 1;
        self.judge.verify(query)
    }

    /// Verifies what was put off.
    fn verify_together(&mut self) {
        if self.unverified.is_empty() {
            return;
        }
        let view = self.view;
        self.alike
            .sort(view.twig, self.unverified.drain(..).map(|query| (query, view.query_twig[query as usize])));
        let (judge, work) = (&mut self.judge, &mut *self.work);
        let (matches, base) = (&mut *self.matches, self.base);
        let verify = |query| {
            work.verified += 1;
            judge.verify(query)
        };
        self.alike.matching(verify, |query| matches.push(base + query));
    }

    /// Drops removed queries from the matches since `first`.
    fn bury(&mut self, first: usize) {
        if self.dead.is_empty() {
            return;
        }
        let mut kept = first;
        for at in first..self.matches.len() {
            let query = self.matches[at] - self.base;
            let dead = self.dead[query as usize / 64] >> (query % 64) & 1 != 0;
            self.matches[kept] = self.matches[at];
            kept += !dead as usize;
        }
        self.matches.truncate(kept);
    }

    /// Tests the groups in a stretch of the program.
    fn groups(&mut self, start: u32, end: u32) {
        let mut at = start as usize;
        while at < end as usize {
            let mut groups = Groups::at(self.view, at);
            for group in &mut groups {
                self.group(&group);
            }
            at = groups.end();
        }
    }

    /// Tests the rows of a group.
    #[inline]
    fn group(&mut self, group: &Group<'_>) {
        let Some(screen) = group.screen() else {
            self.work.candidates += group.rows as u64;
            for row in 0..group.rows {
                if group.holds(row, &self.findings.conditions) && group.in_range(row, self.findings.sides()) {
                    self.survivor(group, row);
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
            let (first, mut end) = (self.base + group.first_query, self.matches.len());
            self.matches.resize(end + count, 0);
            for row in survivors {
                self.matches[end] = first + row as u32;
                end += passes(row) as usize;
            }
            self.matches.truncate(end);
        } else {
            for row in survivors {
                if group.holds(row, &self.findings.conditions) && passes(row) {
                    self.survivor(group, row);
                }
            }
        }
    }

    #[inline]
    fn survivor(&mut self, group: &Group<'_>, row: usize) {
        let query = group.query(row);
        let is_multi = group.flags & MULTI != 0;
        // A query is decided once, by the first of its alternatives that gets here.
        if is_multi && !self.met.is_new(query) {
            return;
        }
        let is_sure = group.flags & VERIFY == 0 && group.anchors_unique(row, &self.findings.twice);
        if is_sure || self.verify(query) {
            self.matches.push(self.base + query);
        } else if is_multi {
            self.unmatched.push(query);
        }
    }
}

/// A bit of a bitmap, as the lowest of a word whose others mean nothing.
#[inline(always)]
fn bit(words: &[u64], bit: u32) -> u64 {
    words[bit as usize / 64] >> (bit % 64)
}
