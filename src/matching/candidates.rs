//! From findings to matches: the queries that a condition says exactly, then the rows filed under
//! what was found.

use crate::index::columns::View;
use crate::index::range::Range;
use crate::index::rows::{HEADER, MULTI, VERIFY};
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
            self.thresholds(slot as usize * 2);
            self.thresholds(slot as usize * 2 + 1);
        }
        self.groups(
            self.view.always[tenant as usize],
            self.view.always[tenant as usize + 1],
        );
    }

    /// The rows filed under ranges that a side of a slot passes.
    fn thresholds(&mut self, side: usize) {
        let view = self.view;
        let (start, end) = (
            view.range_start[side] as usize,
            view.range_start[side + 1] as usize,
        );
        let number = self.findings.side(side);
        let passed = start + view.threshold[start..end].partition_point(|&threshold| number > threshold);
        if passed > start {
            self.groups(view.threshold_rows[start], view.threshold_rows[passed]);
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
        let first = (ranges > 0) as usize;
        let group = Group {
            rows,
            flags: program[2],
            first: program[HEADER],
            columns: &program[HEADER + first..],
            positives,
            negatives,
            anchors,
            own: ranges - first,
            constants: &self.view.constant[program[3] as usize..program[3] as usize + ranges * rows],
        };
        let passed = if first == 1 {
            group.prefix(self.findings)
        } else {
            rows
        };
        self.work.candidates += passed as u64;
        if group.own == 0 {
            for row in 0..passed {
                if group.holds(row, self.findings) {
                    self.survivor(&group, row);
                }
            }
        } else {
            for start in (0..passed).step_by(64) {
                let alive = group.passing(start, (start + 64).min(passed), self.findings);
                for bit in ones(alive) {
                    let row = start + bit as usize;
                    if group.holds(row, self.findings) {
                        self.survivor(&group, row);
                    }
                }
            }
        }
        at + HEADER + first + rows * (group.width() + 1)
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
    /// The range that all rows share, if there are ranges.
    first: u32,
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

    fn width(&self) -> usize {
        self.positives + self.negatives + self.anchors + self.own
    }

    /// How many rows pass the first range: a prefix.
    fn prefix(&self, findings: &Findings) -> usize {
        let range = Range(self.first);
        let number = findings.side(range.side());
        self.constants[..self.rows].partition_point(|&constant| range.passes(number, constant))
    }

    /// A bit for each of up to 64 rows whose own ranges pass.
    #[inline]
    fn passing(&self, start: usize, end: usize, findings: &Findings) -> u64 {
        let mut alive = low_bits(end - start);
        let first = self.positives + self.negatives + self.anchors;
        for at in 0..self.own {
            let ranges = &self.columns[(first + at) * self.rows..][start..end];
            let constants = &self.constants[(1 + at) * self.rows..][start..end];
            let mut bits = 0;
            for (row, (&range, &constant)) in ranges.iter().zip(constants).enumerate() {
                let range = Range(range);
                bits |= (range.passes(findings.side(range.side()), constant) as u64) << row;
            }
            alive &= bits;
            if alive == 0 {
                break;
            }
        }
        alive
    }

    /// Whether a row's conditions hold.
    #[inline(always)]
    fn holds(&self, row: usize, findings: &Findings) -> bool {
        let mut holds = true;
        for column in 0..self.positives {
            holds &= findings.conditions.get(self.column(column, row));
        }
        for column in self.positives..self.positives + self.negatives {
            holds &= !findings.conditions.get(self.column(column, row));
        }
        holds
    }

    #[inline(always)]
    fn anchors_unique(&self, row: usize, findings: &Findings) -> bool {
        let first = self.positives + self.negatives;
        (first..first + self.anchors).all(|column| !findings.twice.get(self.column(column, row)))
    }

    #[inline(always)]
    fn query(&self, row: usize) -> u32 {
        self.column(self.width(), row)
    }
}

#[inline(always)]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
