//! From findings to matches: the queries that a condition says exactly, then the rows filed under
//! what was found.

use crate::index::columns::View;
use crate::index::rows::{GREATER, HEADER, MULTI, Range, UNIFORM, VERIFY};
use crate::matching::bits::ones;
use crate::matching::findings::Findings;

/// How much work a message was. Costs that grow with it are visible here first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Rows that were looked at, beside the queries that their condition says exactly.
    pub candidates: u64,
    /// Rows whose tests all passed.
    pub survivors: u64,
    /// Survivors that had to be verified.
    pub verified: u64,
}

/// Remembers which queries with several rows were reported.
pub struct Reported {
    stamps: Vec<u32>,
    stamp: u32,
    first: u32,
}

impl Reported {
    pub fn new(view: View<'_>) -> Reported {
        Reported {
            stamps: vec![0; view.multi()],
            stamp: 0,
            first: view.exact() as u32,
        }
    }

    fn reset(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
    }

    fn is_new(&mut self, query: u32) -> bool {
        std::mem::replace(&mut self.stamps[(query - self.first) as usize], self.stamp) != self.stamp
    }
}

/// Collects the matching queries of one segment.
pub struct Collector<'a, V: FnMut(u32) -> bool> {
    pub view: View<'a>,
    pub findings: &'a Findings,
    /// A bit per query that was removed; empty if none was.
    pub dead: &'a [u64],
    pub reported: &'a mut Reported,
    /// Whether a query matches, whatever the cost.
    pub verify: V,
    /// Added to each query's number.
    pub base: u32,
    pub matches: &'a mut Vec<u32>,
    pub work: &'a mut Work,
}

impl<V: FnMut(u32) -> bool> Collector<'_, V> {
    pub fn collect(&mut self, tenant: u32) {
        self.reported.reset();
        let exact = self.view.exact();
        for (word, bits) in self.findings.conditions.words() {
            let first = word * 64;
            if first < exact {
                let mut sure = bits & low_bits(exact - first);
                if let Some(dead) = self.dead.get(word) {
                    sure &= !dead;
                }
                let base = self.base + first as u32;
                self.matches.extend(ones(sure).map(|bit| base + bit));
            }
            for bit in ones(bits & self.view.filed[word]) {
                let condition = first + bit as usize;
                let rows = &self.view.condition_rows[condition..condition + 2];
                self.groups(rows[0], rows[1]);
            }
        }
        for &slot in self.findings.touched() {
            self.thresholds(slot as usize);
        }
        self.groups(
            self.view.always[tenant as usize],
            self.view.always[tenant as usize + 1],
        );
    }

    /// The rows filed under ranges that a slot passes.
    fn thresholds(&mut self, slot: usize) {
        let view = self.view;
        let (smallest, largest) = self.findings.slot(slot);
        let bounds = view.slot_low[slot] as usize..view.slot_low[slot + 1] as usize;
        let passed = partition(bounds.clone(), |at| {
            smallest < view.low[at] || view.low_strict[at] == 0 && smallest == view.low[at]
        });
        if passed > bounds.start {
            self.groups(view.low_rows[bounds.start], view.low_rows[passed]);
        }
        let bounds = view.slot_high[slot] as usize..view.slot_high[slot + 1] as usize;
        let passed = partition(bounds.clone(), |at| {
            largest > view.high[at] || view.high_strict[at] == 0 && largest == view.high[at]
        });
        if passed > bounds.start {
            self.groups(view.high_rows[bounds.start], view.high_rows[passed]);
        }
    }

    fn groups(&mut self, start: u32, end: u32) {
        let mut at = start as usize;
        while at < end as usize {
            at = self.group(at);
        }
    }

    /// Tests the rows of a group and returns where the next group starts.
    fn group(&mut self, at: usize) -> usize {
        let program = &self.view.program[at..];
        let rows = program[0] as usize;
        let count = |shift: u32| (program[1] >> shift & 0xFF) as usize;
        let (positives, negatives, anchors, ranges) = (count(0), count(8), count(16), count(24));
        let flags = program[2];
        let uniform = flags & UNIFORM != 0;
        let shared = if uniform { ranges } else { 0 };
        let own = ranges - shared;
        let group = Group {
            rows,
            flags,
            shared: &program[HEADER..HEADER + shared],
            columns: &program[HEADER + shared..],
            positives,
            negatives,
            anchors,
            own,
            constants: &self.view.constant[program[3] as usize..program[3] as usize + ranges * rows],
        };
        if uniform && ranges > 0 {
            self.uniform(&group);
        } else {
            self.work.candidates += rows as u64;
            for row in 0..rows {
                if group.passes(row, self.findings) {
                    self.survivor(&group, row);
                }
            }
        }
        at + HEADER + shared + rows * (positives + negatives + anchors + own + 1)
    }

    /// Rows in the order of their first constant: those that pass it are a prefix.
    fn uniform(&mut self, group: &Group<'_>) {
        let rows = group.rows;
        let (smallest, largest) = self.findings.slot(Range(group.shared[0]).slot());
        let first = Range(group.shared[0]);
        let passed = partition(0..rows, |row| {
            first.passes(smallest, largest, group.constants[row])
        });
        self.work.candidates += passed as u64;
        let mut start = 0;
        while start < passed {
            let end = (start + 64).min(passed);
            let mut alive = low_bits(end - start);
            for (at, &range) in group.shared.iter().enumerate().skip(1) {
                let range = Range(range);
                let (smallest, largest) = self.findings.slot(range.slot());
                let column = &group.constants[at * rows + start..at * rows + end];
                alive &= passing(
                    range,
                    if range.operator() < GREATER {
                        smallest
                    } else {
                        largest
                    },
                    column,
                );
            }
            for bit in ones(alive) {
                let row = start + bit as usize;
                if group.passes(row, self.findings) {
                    self.survivor(group, row);
                }
            }
            start = end;
        }
    }

    #[inline]
    fn survivor(&mut self, group: &Group<'_>, row: usize) {
        self.work.survivors += 1;
        let query = group.query(row);
        if self
            .dead
            .get(query as usize / 64)
            .is_some_and(|dead| dead >> (query % 64) & 1 != 0)
        {
            return;
        }
        if group.flags & VERIFY != 0 || !group.anchors_unique(row, self.findings) {
            self.work.verified += 1;
            if !(self.verify)(query) {
                return;
            }
        }
        if group.flags & MULTI == 0 || self.reported.is_new(query) {
            self.matches.push(self.base + query);
        }
    }
}

/// A group of rows, its columns still side by side.
struct Group<'a> {
    rows: usize,
    flags: u32,
    shared: &'a [u32],
    columns: &'a [u32],
    positives: usize,
    negatives: usize,
    anchors: usize,
    /// Ranges that each row has for itself.
    own: usize,
    constants: &'a [f64],
}

impl Group<'_> {
    #[inline(always)]
    fn column(&self, column: usize, row: usize) -> u32 {
        self.columns[column * self.rows + row]
    }

    /// Whether a row's conditions and own ranges hold.
    #[inline(always)]
    fn passes(&self, row: usize, findings: &Findings) -> bool {
        let mut passes = true;
        for column in 0..self.positives {
            passes &= findings.conditions.get(self.column(column, row));
        }
        for column in self.positives..self.positives + self.negatives {
            passes &= !findings.conditions.get(self.column(column, row));
        }
        if passes && self.own > 0 {
            let first = self.positives + self.negatives + self.anchors;
            for at in 0..self.own {
                let range = Range(self.column(first + at, row));
                let (smallest, largest) = findings.slot(range.slot());
                passes &= range.passes(smallest, largest, self.constants[at * self.rows + row]);
            }
        }
        passes
    }

    #[inline(always)]
    fn anchors_unique(&self, row: usize, findings: &Findings) -> bool {
        let first = self.positives + self.negatives;
        (first..first + self.anchors).all(|column| !findings.twice.get(self.column(column, row)))
    }

    #[inline(always)]
    fn query(&self, row: usize) -> u32 {
        self.column(self.positives + self.negatives + self.anchors + self.own, row)
    }
}

/// A bit for each of up to 64 constants that a number passes.
#[inline]
fn passing(range: Range, number: f64, constants: &[f64]) -> u64 {
    let mut bits = 0u64;
    for (row, &constant) in constants.iter().enumerate() {
        bits |= (range.passes(number, number, constant) as u64) << row;
    }
    bits
}

#[inline(always)]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The first place in a range where `passes` no longer holds.
#[inline]
fn partition(range: std::ops::Range<usize>, passes: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if passes(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
