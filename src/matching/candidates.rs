//! From findings to matches: the queries that a condition says exactly, then the rows filed under
//! what was found.

use crate::index::columns::View;
use crate::index::range::Range;
use crate::index::rows::{HEADER, LARGE, MULTI, SIMPLE, SIMPLE_MOST, Simple, VERIFY};
use crate::index::trie::NONE;
use crate::matching::bits::ones;
use crate::matching::findings::Findings;
use crate::matching::settle::Unsettled;

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

/// Matches that are handed over at once.
pub const OUTBOX: usize = 1024;

/// Remembers which queries with several rows were reported.
pub struct Reported {
    stamps: Vec<u32>,
    stamp: u32,
    first: u32,
}

impl Reported {
    pub fn new(view: View<'_>) -> Reported {
        Reported { stamps: vec![0; view.multi()], stamp: 0, first: view.exact() as u32 }
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

/// Decides what rows alone do not.
pub trait Judge {
    /// Whether a query matches, whatever the cost.
    fn verify(&mut self, query: u32) -> bool;

    /// Announces an anchor of a row that will be settled; all are announced before the first.
    fn expect(&mut self, anchor: u32);

    /// Whether a row's lines hold together; `None` if only `verify` can tell.
    fn settle(&mut self, row: &Unsettled<'_>) -> Option<bool>;
}

/// Collects the matching queries of one segment.
pub struct Collector<'a, J: Judge> {
    pub view: View<'a>,
    pub findings: &'a Findings,
    /// A bit per query that was removed; empty if none was.
    pub dead: &'a [u64],
    pub reported: &'a mut Reported,
    /// Scratch: conditions with rows filed under them, and their lists.
    pub opened: &'a mut Vec<u32>,
    pub lists: &'a mut Vec<(u32, u32, u32)>,
    /// Scratch: places of simple rows to settle, with what they are filed under.
    pub unsettled: &'a mut Vec<(u32, u32)>,
    pub judge: J,
    /// Matches on their way to `matches`: a place to write to without asking whether there is room.
    pub outbox: [u32; OUTBOX],
    pub filled: usize,
    /// Added to each query's number.
    pub base: u32,
    pub matches: &'a mut Vec<u32>,
    pub work: &'a mut Work,
}

impl<J: Judge> Collector<'_, J> {
    pub fn collect(&mut self, tenant: u32) {
        self.reported.reset();
        let first = self.matches.len();
        let exact = self.view.exact();
        for (word, bits) in self.findings.conditions.words() {
            let first = word * 64;
            if first < exact {
                let sure = bits & low_bits(exact - first);
                let base = self.base + first as u32;
                self.matches.extend(ones(sure).map(|bit| base + bit));
            }
            self.opened.extend(ones(bits & self.view.filed[word]).map(|bit| first as u32 + bit));
        }
        self.open();
        for &slot in self.findings.touched() {
            self.thresholds(slot as usize * 2);
            self.thresholds(slot as usize * 2 + 1);
        }
        self.groups(self.view.always[tenant as usize], self.view.always[tenant as usize + 1], NONE);
        self.flush();
        self.settle();
        self.bury(first);
    }

    /// Tests the rows filed under the conditions that were found. Where they start is looked up for
    /// all of them first, and the first word of each list with it: the program is larger than what
    /// is near the processor, and this way it waits for many lists at once.
    fn open(&mut self) {
        let opened = std::mem::take(self.opened);
        let mut lists = std::mem::take(self.lists);
        lists.extend(opened.iter().map(|&condition| {
            let start = self.view.condition_rows[condition as usize];
            (start, self.view.condition_rows[condition as usize + 1], self.view.program[start as usize])
        }));
        for (&condition, &(start, end, _)) in opened.iter().zip(&lists) {
            self.groups(start, end, condition);
        }
        (*self.opened, *self.lists) = (opened, lists);
        self.opened.clear();
        self.lists.clear();
    }

    /// The rows filed under ranges that a side of a slot passes.
    fn thresholds(&mut self, side: usize) {
        let view = self.view;
        let (start, end) = (view.range_start[side] as usize, view.range_start[side + 1] as usize);
        let number = self.findings.side(side);
        let passed = start + view.threshold[start..end].partition_point(|&threshold| number > threshold);
        if passed > start {
            self.groups(view.threshold_rows[start], view.threshold_rows[passed], NONE);
        }
    }

    /// Tests the rows of a stretch of the program, filed under a condition or under `NONE`.
    fn groups(&mut self, start: u32, end: u32, access: u32) {
        let mut at = start as usize;
        while at < end as usize {
            let header = self.view.program[at];
            if header & SIMPLE == 0 {
                at = self.group(at);
                continue;
            }
            let simple = Simple::of(header);
            let next = at + 1 + simple.rows * simple.width();
            let rows = &self.view.program[at + 1..next];
            match simple.size {
                1 => self.simple::<1, 4>(rows, at + 1, access),
                _ => self.simple::<SIMPLE_MOST, 8>(rows, at + 1, access),
            }
            self.work.candidates += simple.rows as u64;
            at = next;
        }
    }

    /// Simple rows with N positives and N anchors, W words each, at a place of the program. Whether
    /// a row passes cannot be foretold, so nothing branches on it: each writes its outcome, and only
    /// how far the list has grown depends on it.
    #[inline]
    fn simple<const N: usize, const W: usize>(&mut self, rows: &[u32], at: usize, access: u32) {
        let (conditions, twice) = (&self.findings.conditions, &self.findings.twice);
        let mut filled = self.filled;
        let mut place = at as u32 | if N > 1 { LARGE } else { 0 };
        for row in rows.as_chunks::<W>().0 {
            if filled == OUTBOX {
                self.matches.extend_from_slice(&self.outbox);
                filled = 0;
            }
            let holds = row[..N].iter().fold(true, |holds, &condition| holds & conditions.get(condition));
            let several = row[N..2 * N].iter().fold(false, |several, &anchor| several | twice.get(anchor));
            self.outbox[filled] = self.base + row[W - 1];
            filled += (holds & !several) as usize;
            if holds & several {
                self.unsettled.push((place, access));
            }
            place += W as u32;
        }
        self.filled = filled;
    }

    fn flush(&mut self) {
        self.matches.extend_from_slice(&self.outbox[..self.filled]);
        self.filled = 0;
    }

    /// Settles or verifies the simple rows that were put off.
    fn settle(&mut self) {
        let (view, findings) = (self.view, self.findings);
        let put_off = std::mem::take(self.unsettled);
        for &(place, _) in &put_off {
            let row = SimpleRow::at(view, place);
            let several = row.anchors.iter().filter(|&&anchor| findings.twice.get(anchor));
            several.for_each(|&anchor| self.judge.expect(anchor));
        }
        for &(place, access) in &put_off {
            let row = SimpleRow::at(view, place);
            let mut lines = [access; 1 + SIMPLE_MOST];
            lines[1..1 + row.positives.len()].copy_from_slice(row.positives);
            let several = |(at, &anchor): (usize, &u32)| (findings.twice.get(anchor) as u32) << at;
            let unsettled = Unsettled {
                lines,
                under: row.under,
                anchors: row.anchors,
                several: row.anchors.iter().enumerate().map(several).sum(),
            };
            self.work.settled += 1;
            let matches = match self.judge.settle(&unsettled) {
                Some(settled) => settled,
                None => {
                    self.work.verified += 1;
                    self.judge.verify(row.query)
                }
            };
            if matches {
                self.matches.push(self.base + row.query);
            }
        }
        *self.unsettled = put_off;
        self.unsettled.clear();
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
        let passed = if first == 1 { group.prefix(self.findings) } else { rows };
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
        let query = group.query(row);
        if group.flags & VERIFY != 0 || !group.anchors_unique(row, self.findings) {
            self.work.verified += 1;
            if !self.judge.verify(query) {
                return;
            }
        }
        if group.flags & MULTI == 0 || self.reported.is_new(query) {
            self.matches.push(self.base + query);
        }
    }
}

/// A simple row, by its place in the program; a place marked `LARGE` has one of the larger size.
struct SimpleRow<'a> {
    positives: &'a [u32],
    anchors: &'a [u32],
    under: u32,
    query: u32,
}

impl<'a> SimpleRow<'a> {
    fn at(view: View<'a>, place: u32) -> SimpleRow<'a> {
        let size = if place & LARGE != 0 { SIMPLE_MOST } else { 1 };
        let row = &view.program[(place & !LARGE) as usize..][..2 * size + 2];
        SimpleRow {
            positives: &row[..size],
            anchors: &row[size..2 * size],
            under: row[2 * size],
            query: row[2 * size + 1],
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
