//! Filing: each alternative of a query becomes a row under its *access test*, the rarest test
//! that is necessary for it. What a message does not contain costs it nothing.
//!
//! Rows under one access test are grouped by shape, and a group is stored column by column:
//!
//! ```text
//! rows, positives | negatives<<8 | anchors<<16 | ranges<<24, flags, start in `constant`
//! (first range)               if there are ranges: rows share it and ascend by its constant,
//!                             or descend if it is negated, so that those that pass are a prefix
//! positive…, negative…        conditions that must hold, must not hold
//! anchor…                     anchors that must be unique, or the row is verified
//! other range…
//! query…
//! ```
//!
//! The constants of the first range, then of the others, stand in `constant`.

use crate::index::columns::Columns;
use crate::index::frequency::Frequencies;
use crate::index::range::Range;
use crate::index::trie::NONE;

/// Always verify.
pub const VERIFY: u32 = 1;
/// The rows' queries have other rows too: report a query once.
pub const MULTI: u32 = 2;

pub const HEADER: usize = 4;
/// More tests of a kind than a header can count are left to verification.
const MOST: usize = 255;

/// The alternatives of all queries of a segment while it is built, in one array.
#[derive(Default)]
pub struct Alternatives {
    starts: Vec<u32>,
    exact: Vec<bool>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
enum Part {
    Positive(u32),
    Negative(u32),
    Anchor(u32),
    Range(Range, f64),
}

impl Alternatives {
    pub fn count(&self) -> u32 {
        self.exact.len() as u32
    }

    pub fn begin(&mut self, exact: bool) {
        self.starts.push(self.parts.len() as u32);
        self.exact.push(exact);
    }

    pub fn positive(&mut self, condition: u32) {
        self.parts.push(Part::Positive(condition));
    }

    pub fn negative(&mut self, condition: u32) {
        self.parts.push(Part::Negative(condition));
    }

    pub fn anchor(&mut self, anchor: u32) {
        self.parts.push(Part::Anchor(anchor));
    }

    pub fn range(&mut self, range: Range, constant: f64) {
        self.parts.push(Part::Range(range, constant));
    }

    /// Leaves something of the alternative that was begun last to verification.
    pub fn weaken(&mut self) {
        *self.exact.last_mut().expect("begun") = false;
    }

    fn parts(&self, alternative: u32) -> &[Part] {
        let end = self
            .starts
            .get(alternative as usize + 1)
            .map_or(self.parts.len(), |&end| end as usize);
        &self.parts[self.starts[alternative as usize] as usize..end]
    }

    pub fn is_exact(&self, alternative: u32) -> bool {
        self.exact[alternative as usize]
    }

    /// Whether the alternative never needs verification.
    pub fn is_sure(&self, alternative: u32) -> bool {
        let (mut lists, mut ranges) = ([0; 2], 0);
        for part in self.parts(alternative) {
            match part {
                Part::Anchor(_) => return false,
                Part::Positive(_) => lists[0] += 1,
                Part::Negative(_) => lists[1] += 1,
                Part::Range(..) => ranges += 1,
            }
        }
        self.is_exact(alternative) && lists.into_iter().chain([ranges]).all(|count| count <= MOST)
    }

    /// The condition that is all there is to an alternative.
    pub fn sole_condition(&self, alternative: u32) -> Option<u32> {
        match self.parts(alternative) {
            [Part::Positive(condition)] if self.is_exact(alternative) => Some(*condition),
            _ => None,
        }
    }

    pub fn renumber(&mut self, conditions: &[u32]) {
        for part in &mut self.parts {
            match part {
                Part::Positive(condition) | Part::Negative(condition) => {
                    *condition = conditions[*condition as usize];
                }
                _ => {}
            }
        }
    }
}

/// An alternative that is to be filed.
pub struct Planned {
    pub query: u32,
    pub tenant: u32,
    pub alternative: u32,
    pub multi: bool,
}

/// What a row is filed under, in the order of `program`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Access {
    Condition(u32),
    /// A range and its constant, as an integer that orders the same.
    Range(Range, u64),
    Always(u32),
}

/// A row on its way to its group. Its lists stand in `Rows`; this is what is sorted.
struct Row {
    access: Access,
    shape: u32,
    flags: u32,
    /// The first range, or `NONE`, and an integer that orders rows as a number passes them.
    first: (u32, u64),
    query: u32,
    /// Where its ids and its constants start.
    ids: u32,
    constants: u32,
}

/// All rows of a segment while it is built.
struct Rows<'a> {
    alternatives: &'a Alternatives,
    frequencies: &'a Frequencies,
    rows: Vec<Row>,
    /// Per row: positives, negatives, anchors, then ranges but the first.
    ids: Vec<u32>,
    /// Per row: the constants of all its ranges.
    constants: Vec<f64>,

    positives: Vec<u32>,
    negatives: Vec<u32>,
    anchors: Vec<u32>,
    ranges: Vec<(Range, f64)>,
}

impl Rows<'_> {
    /// Plans where an alternative is filed. One that can never hold is not filed at all.
    fn add(&mut self, planned: &Planned) {
        if !self.gather(planned.alternative) {
            return;
        }
        let access = self.take_access(planned.tenant);
        let mut exact = self.alternatives.is_exact(planned.alternative);
        for list in [&mut self.positives, &mut self.negatives, &mut self.anchors] {
            exact &= list.len() <= MOST;
            list.truncate(MOST);
        }
        exact &= self.ranges.len() <= MOST;
        self.ranges.truncate(MOST);
        if !exact {
            self.anchors.clear();
        }
        // Rare tests first: most rows fail their first test.
        let frequencies = self.frequencies;
        let rarity = |a: u32, b: u32| {
            frequencies
                .of_condition(a)
                .total_cmp(&frequencies.of_condition(b))
                .then(a.cmp(&b))
        };
        self.positives.sort_unstable_by(|&a, &b| rarity(a, b));
        let share = |(range, constant): &(Range, f64)| frequencies.of_range(*range, *constant);
        self.ranges
            .sort_unstable_by(|a, b| share(a).total_cmp(&share(b)).then(a.0.cmp(&b.0)));
        let shape = self.positives.len()
            | self.negatives.len() << 8
            | self.anchors.len() << 16
            | self.ranges.len() << 24;
        self.rows.push(Row {
            access,
            shape: shape as u32,
            flags: if exact { 0 } else { VERIFY } | if planned.multi { MULTI } else { 0 },
            first: self.ranges.first().map_or((NONE, 0), |&(range, constant)| {
                let order = sortable(constant);
                (range.0, if range.negated() { !order } else { order })
            }),
            query: planned.query,
            ids: self.ids.len() as u32,
            constants: self.constants.len() as u32,
        });
        self.ids.extend(&self.positives);
        self.ids.extend(&self.negatives);
        self.ids.extend(&self.anchors);
        self.ids
            .extend(self.ranges.iter().skip(1).map(|(range, _)| range.0));
        self.constants
            .extend(self.ranges.iter().map(|(_, constant)| constant));
    }

    /// Sorts an alternative's parts into lists; false if it can never hold.
    fn gather(&mut self, alternative: u32) -> bool {
        self.positives.clear();
        self.negatives.clear();
        self.anchors.clear();
        self.ranges.clear();
        let push = |list: &mut Vec<u32>, id: u32| {
            if !list.contains(&id) {
                list.push(id);
            }
        };
        for part in self.alternatives.parts(alternative) {
            match *part {
                Part::Positive(condition) => push(&mut self.positives, condition),
                Part::Negative(condition) => push(&mut self.negatives, condition),
                Part::Anchor(anchor) => push(&mut self.anchors, anchor),
                // Nothing compares with what is not a number.
                Part::Range(range, constant) if constant.is_nan() => {
                    if !range.negated() {
                        return false;
                    }
                }
                Part::Range(range, constant) => self.ranges.push((range, constant)),
            }
        }
        true
    }

    /// Takes the rarest necessary test out of the lists.
    fn take_access(&mut self, tenant: u32) -> Access {
        let frequencies = self.frequencies;
        let condition = self
            .positives
            .iter()
            .map(|&condition| (frequencies.of_condition(condition), condition))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let range = (0..self.ranges.len())
            .filter(|&at| !self.ranges[at].0.negated())
            .map(|at| (frequencies.of_range(self.ranges[at].0, self.ranges[at].1), at))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match (condition, range) {
            (Some((share, condition)), range) if range.is_none_or(|(other, _)| share <= other) => {
                self.positives.retain(|&other| other != condition);
                Access::Condition(condition)
            }
            (_, Some((_, at))) => {
                let (range, constant) = self.ranges.remove(at);
                Access::Range(range, sortable(constant))
            }
            _ => Access::Always(tenant),
        }
    }
}

/// An integer that orders as the number does.
fn sortable(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn number_of(sortable: u64) -> f64 {
    f64::from_bits(if sortable >> 63 == 0 {
        !sortable
    } else {
        sortable & !(1 << 63)
    })
}

/// Files all rows and lays them out.
pub fn freeze(
    planned: impl Iterator<Item = Planned>,
    alternatives: &Alternatives,
    frequencies: &Frequencies,
    tenants: usize,
    columns: &mut Columns,
) {
    let mut rows = Rows {
        alternatives,
        frequencies,
        rows: Vec::new(),
        ids: Vec::new(),
        constants: Vec::new(),
        positives: Vec::new(),
        negatives: Vec::new(),
        anchors: Vec::new(),
        ranges: Vec::new(),
    };
    planned.for_each(|planned| rows.add(&planned));
    rows.rows
        .sort_unstable_by_key(|row| (row.access, row.shape, row.flags, row.first, row.query));
    let view = columns.view();
    let (conditions, sides) = (view.conditions(), view.slots() * 2);
    columns.filed = vec![0; conditions.div_ceil(64)];
    columns.condition_rows = vec![NONE; conditions + 1];
    columns.range_start = vec![0; sides + 1];
    columns.always = vec![NONE; tenants + 1];
    let Rows {
        rows, ids, constants, ..
    } = rows;
    for filed in rows.chunk_by(|a, b| a.access == b.access) {
        let at = columns.program.len() as u32;
        match filed[0].access {
            Access::Condition(condition) => {
                columns.filed[condition as usize / 64] |= 1 << (condition % 64);
                columns.condition_rows[condition as usize] = at;
            }
            Access::Range(range, constant) => {
                columns.threshold.push(number_of(constant));
                columns.threshold_rows.push(at);
                columns.range_start[range.side() + 1] += 1;
            }
            Access::Always(tenant) => columns.always[tenant as usize] = at,
        }
        let alike = |a: &Row, b: &Row| (a.shape, a.flags, a.first.0) == (b.shape, b.flags, b.first.0);
        filed
            .chunk_by(alike)
            .for_each(|group| push_group(group, &ids, &constants, columns));
    }
    finish(columns);
}

/// Fills the gaps in the tables of starts.
fn finish(columns: &mut Columns) {
    let end = columns.program.len() as u32;
    fill_backwards(&mut columns.always, end);
    let ranges_end = columns.always[0];
    columns.threshold_rows.push(ranges_end);
    let conditions_end = columns.threshold_rows[0];
    fill_backwards(&mut columns.condition_rows, conditions_end);
    for side in 1..columns.range_start.len() {
        columns.range_start[side] += columns.range_start[side - 1];
    }
}

/// A start that is missing is the next one's: an empty list.
fn fill_backwards(starts: &mut [u32], end: u32) {
    let mut next = end;
    for start in starts.iter_mut().rev() {
        if *start == NONE {
            *start = next;
        }
        next = *start;
    }
}

fn push_group(group: &[Row], ids: &[u32], constants: &[f64], columns: &mut Columns) {
    let Row {
        shape, flags, first, ..
    } = group[0];
    let count = |shift: u32| (shape >> shift & 0xFF) as usize;
    let ranges = count(24);
    let width = count(0) + count(8) + count(16) + ranges.saturating_sub(1);
    let program = &mut columns.program;
    program.extend([group.len() as u32, shape, flags, columns.constant.len() as u32]);
    if ranges > 0 {
        program.push(first.0);
    }
    for column in 0..width {
        program.extend(group.iter().map(|row| ids[row.ids as usize + column]));
    }
    for column in 0..ranges {
        columns
            .constant
            .extend(group.iter().map(|row| constants[row.constants as usize + column]));
    }
    program.extend(group.iter().map(|row| row.query));
}
