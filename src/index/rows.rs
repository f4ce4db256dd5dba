//! Filing: each alternative of a query becomes a row under its *access test*, the rarest test
//! that is necessary for it. What a message does not contain costs it nothing.
//!
//! Rows under one access test are grouped by shape, and a group is stored column by column:
//!
//! ```text
//! rows, positives | negatives<<8 | anchors<<16 | ranges<<24, flags, start in `constant`
//! (range…)                    once for the group, if UNIFORM
//! positive…, negative…        conditions that must hold, must not hold
//! anchor…                     anchors that must be unique, or the row is verified
//! (range…)                    per row, if not UNIFORM
//! query…
//! ```

use crate::index::columns::Columns;
use crate::index::frequency::Frequencies;
use crate::index::trie::NONE;
use crate::query::ast::Operator;

/// Always verify.
pub const VERIFY: u32 = 1;
/// All rows test the same slots in the same way; rows stand in the order in which a value passes
/// their first constant.
pub const UNIFORM: u32 = 2;
/// The rows' queries have other rows too: report a query once.
pub const MULTI: u32 = 4;

pub const HEADER: usize = 4;
/// More tests of a kind than a header can count are left to verification.
const MOST: usize = 255;
/// From this many rows on, a shared list of ranges pays for a group of its own.
const UNIFORM_ROWS: usize = 4;

/// A test of a slot: slot, operator, whether it is negated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Range(pub u32);

/// Operators of ranges. Some value is below a constant if the smallest is.
pub const LESS: u32 = 0;
pub const LESS_OR_EQUAL: u32 = 1;
pub const GREATER: u32 = 2;
pub const GREATER_OR_EQUAL: u32 = 3;

impl Range {
    pub fn new(slot: u32, operator: Operator, negated: bool) -> Range {
        let operator = match operator {
            Operator::Less => LESS,
            Operator::LessOrEqual => LESS_OR_EQUAL,
            Operator::Greater => GREATER,
            Operator::GreaterOrEqual => GREATER_OR_EQUAL,
            Operator::Equal | Operator::NotEqual => unreachable!("not a range"),
        };
        Range(slot << 3 | (negated as u32) << 2 | operator)
    }

    #[inline(always)]
    pub fn slot(self) -> usize {
        (self.0 >> 3) as usize
    }

    #[inline(always)]
    pub fn operator(self) -> u32 {
        self.0 & 3
    }

    #[inline(always)]
    pub fn negated(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether a slot with this smallest and largest number passes.
    #[inline(always)]
    pub fn passes(self, smallest: f64, largest: f64, constant: f64) -> bool {
        let holds = match self.operator() {
            LESS => smallest < constant,
            LESS_OR_EQUAL => smallest <= constant,
            GREATER => largest > constant,
            _ => largest >= constant,
        };
        holds != self.negated()
    }
}

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

    fn parts(&self, alternative: u32) -> &[Part] {
        let end = self
            .starts
            .get(alternative as usize + 1)
            .map_or(self.parts.len(), |&end| end as usize);
        &self.parts[self.starts[alternative as usize] as usize..end]
    }

    /// The condition that is all there is to an alternative.
    pub fn sole_condition(&self, alternative: u32) -> Option<u32> {
        match self.parts(alternative) {
            [Part::Positive(condition)] if self.exact[alternative as usize] => Some(*condition),
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

/// What a row is filed under. The order is that of `program`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Access {
    Condition(u32),
    /// A slot's number is below the constant: slot, constant, strictly.
    Low(u32, f64, bool),
    High(u32, f64, bool),
    Always(u32),
}

struct Row {
    access: Access,
    query: u32,
    flags: u32,
    positives: Vec<u32>,
    negatives: Vec<u32>,
    anchors: Vec<u32>,
    ranges: Vec<(Range, f64)>,
}

impl Row {
    /// Plans where an alternative is filed; `None` if it can never hold.
    fn new(planned: &Planned, alternatives: &Alternatives, frequencies: &Frequencies) -> Option<Row> {
        let mut row = Row {
            access: Access::Always(planned.tenant),
            query: planned.query,
            flags: if planned.multi { MULTI } else { 0 },
            positives: Vec::new(),
            negatives: Vec::new(),
            anchors: Vec::new(),
            ranges: Vec::new(),
        };
        let mut exact = alternatives.exact[planned.alternative as usize];
        let push = |list: &mut Vec<u32>, id: u32| {
            if !list.contains(&id) {
                list.push(id);
            }
        };
        for part in alternatives.parts(planned.alternative) {
            match *part {
                Part::Positive(condition) => push(&mut row.positives, condition),
                Part::Negative(condition) => push(&mut row.negatives, condition),
                Part::Anchor(anchor) => push(&mut row.anchors, anchor),
                // Nothing compares with what is not a number.
                Part::Range(range, constant) if constant.is_nan() => {
                    if !range.negated() {
                        return None;
                    }
                }
                Part::Range(range, constant) => row.ranges.push((range, constant)),
            }
        }
        row.choose_access(frequencies);
        for list in [&mut row.positives, &mut row.negatives, &mut row.anchors] {
            exact &= list.len() <= MOST;
            list.truncate(MOST);
        }
        exact &= row.ranges.len() <= MOST;
        row.ranges.truncate(MOST);
        if !exact {
            row.flags |= VERIFY;
            row.anchors.clear();
        }
        // Rare tests first: most rows fail their first test.
        row.positives.sort_by(|&a, &b| {
            frequencies
                .of_condition(a)
                .total_cmp(&frequencies.of_condition(b))
                .then(a.cmp(&b))
        });
        // One order for all rows: rows with the same slots make a uniform group.
        row.ranges.sort_by_key(|(range, _)| *range);
        Some(row)
    }

    /// Moves the rarest necessary test to `access`.
    fn choose_access(&mut self, frequencies: &Frequencies) {
        let condition = self
            .positives
            .iter()
            .map(|&condition| (frequencies.of_condition(condition), condition))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let range = (0..self.ranges.len())
            .filter(|&at| !self.ranges[at].0.negated())
            .map(|at| (frequencies.of_range(self.ranges[at].0, self.ranges[at].1), at))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let rarer = |(share, _): &(f32, usize)| condition.is_none_or(|(other, _)| *share < other);
        if let Some((_, at)) = range.filter(rarer) {
            let (range, constant) = self.ranges.remove(at);
            let slot = range.slot() as u32;
            self.access = match range.operator() {
                LESS => Access::Low(slot, constant, true),
                LESS_OR_EQUAL => Access::Low(slot, constant, false),
                GREATER => Access::High(slot, constant, true),
                _ => Access::High(slot, constant, false),
            };
        } else if let Some((_, condition)) = condition {
            self.positives.retain(|&other| other != condition);
            self.access = Access::Condition(condition);
        }
    }

    fn shape(&self) -> u32 {
        self.positives.len() as u32
            | (self.negatives.len() as u32) << 8
            | (self.anchors.len() as u32) << 16
            | (self.ranges.len() as u32) << 24
    }

    fn same_ranges(&self, other: &Row) -> bool {
        self.ranges
            .iter()
            .map(|(range, _)| range)
            .eq(other.ranges.iter().map(|(range, _)| range))
    }
}

/// Files all rows and lays them out.
pub fn freeze(
    planned: impl Iterator<Item = Planned>,
    alternatives: &Alternatives,
    frequencies: &Frequencies,
    tenants: usize,
    slots: u32,
    columns: &mut Columns,
) {
    let mut rows: Vec<Row> = planned
        .filter_map(|planned| Row::new(&planned, alternatives, frequencies))
        .collect();
    rows.sort_by(|a, b| {
        order(&a.access, &b.access)
            .then(a.shape().cmp(&b.shape()))
            .then(a.flags.cmp(&b.flags))
            .then_with(|| {
                a.ranges
                    .iter()
                    .map(|(range, _)| range)
                    .cmp(b.ranges.iter().map(|(range, _)| range))
            })
            .then_with(|| passing_order(a, b))
            .then(a.query.cmp(&b.query))
    });
    let conditions = columns.conditions_count();
    columns.filed = vec![0; conditions.div_ceil(64)];
    columns.condition_rows = vec![0; conditions + 1];
    columns.always = vec![0; tenants + 1];
    columns.slot_low = vec![0; slots as usize + 1];
    columns.slot_high = vec![0; slots as usize + 1];
    let mut rest = rows.as_slice();
    let mut filler = Filler {
        columns,
        condition: 0,
        tenant: 0,
    };
    while let Some(first) = rest.first() {
        let same = rest.partition_point(|row| row.access == first.access);
        let (here, after) = rest.split_at(same);
        filler.access(&first.access);
        filler.groups(here);
        rest = after;
    }
    filler.finish();
}

fn order(a: &Access, b: &Access) -> std::cmp::Ordering {
    let rank = |access: &Access| match access {
        Access::Condition(_) => 0,
        Access::Low(..) => 1,
        Access::High(..) => 2,
        Access::Always(_) => 3,
    };
    match (a, b) {
        (Access::Condition(a), Access::Condition(b)) | (Access::Always(a), Access::Always(b)) => a.cmp(b),
        // A small number passes large bounds first: bounds descend, and `<=` stands before `<`.
        (Access::Low(slot, a, strict), Access::Low(other, b, strictly)) => {
            slot.cmp(other).then(b.total_cmp(a)).then(strict.cmp(strictly))
        }
        (Access::High(slot, a, strict), Access::High(other, b, strictly)) => {
            slot.cmp(other).then(a.total_cmp(b)).then(strict.cmp(strictly))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The order in which a growing violation passes the first constants of two uniform rows.
fn passing_order(a: &Row, b: &Row) -> std::cmp::Ordering {
    match (a.ranges.first(), b.ranges.first()) {
        (Some((range, a)), Some((_, b))) => {
            let ascending = (range.operator() >= GREATER) != range.negated();
            if ascending { a.total_cmp(b) } else { b.total_cmp(a) }
        }
        _ => std::cmp::Ordering::Equal,
    }
}

impl Columns {
    fn conditions_count(&self) -> usize {
        self.counts[0] as usize
    }
}

/// Writes groups, keeping the start tables in step.
struct Filler<'a> {
    columns: &'a mut Columns,
    /// Conditions below this one have their start.
    condition: usize,
    tenant: usize,
}

impl Filler<'_> {
    /// Opens the list of rows of an access test.
    fn access(&mut self, access: &Access) {
        let at = self.columns.program.len() as u32;
        match *access {
            Access::Condition(condition) => {
                self.columns.filed[condition as usize / 64] |= 1 << (condition % 64);
                while self.condition <= condition as usize {
                    self.columns.condition_rows[self.condition] = at;
                    self.condition += 1;
                }
            }
            Access::Low(slot, bound, strict) => {
                self.end_conditions();
                self.columns.low.push(bound);
                self.columns.low_strict.push(strict as u8);
                self.columns.low_rows.push(at);
                self.columns.slot_low[slot as usize + 1] += 1;
            }
            Access::High(slot, bound, strict) => {
                self.end_conditions();
                if self.columns.high.is_empty() {
                    self.columns.low_rows.push(at);
                }
                self.columns.high.push(bound);
                self.columns.high_strict.push(strict as u8);
                self.columns.high_rows.push(at);
                self.columns.slot_high[slot as usize + 1] += 1;
            }
            Access::Always(tenant) => {
                self.end_thresholds();
                while self.tenant <= tenant as usize {
                    self.columns.always[self.tenant] = at;
                    self.tenant += 1;
                }
            }
        }
    }

    fn end_conditions(&mut self) {
        let at = self.columns.program.len() as u32;
        while self.condition < self.columns.condition_rows.len() {
            self.columns.condition_rows[self.condition] = at;
            self.condition += 1;
        }
    }

    fn end_thresholds(&mut self) {
        self.end_conditions();
        let at = self.columns.program.len() as u32;
        if self.columns.low_rows.len() == self.columns.low.len() {
            self.columns.low_rows.push(at);
        }
        if self.columns.high_rows.len() == self.columns.high.len() {
            self.columns.high_rows.push(at);
        }
    }

    fn finish(mut self) {
        self.end_thresholds();
        let at = self.columns.program.len() as u32;
        while self.tenant < self.columns.always.len() {
            self.columns.always[self.tenant] = at;
            self.tenant += 1;
        }
        for starts in [&mut self.columns.slot_low, &mut self.columns.slot_high] {
            for slot in 1..starts.len() {
                starts[slot] += starts[slot - 1];
            }
        }
    }

    /// The groups of the rows of one access test.
    fn groups(&mut self, rows: &[Row]) {
        for shape in rows.chunk_by(|a, b| a.shape() == b.shape() && a.flags == b.flags) {
            let mut mixed = Vec::new();
            for same in shape.chunk_by(Row::same_ranges) {
                if same[0].ranges.is_empty() || same.len() >= UNIFORM_ROWS {
                    self.group(&same.iter().collect::<Vec<_>>(), UNIFORM);
                } else {
                    mixed.extend(same);
                }
            }
            if !mixed.is_empty() {
                self.group(&mixed, 0);
            }
        }
    }

    fn group(&mut self, rows: &[&Row], uniform: u32) {
        let first = rows[0];
        let start = self.columns.constant.len() as u32;
        let program = &mut self.columns.program;
        program.extend([rows.len() as u32, first.shape(), first.flags | uniform, start]);
        if uniform != 0 {
            program.extend(first.ranges.iter().map(|(range, _)| range.0));
        }
        for at in 0..first.positives.len() {
            program.extend(rows.iter().map(|row| row.positives[at]));
        }
        for at in 0..first.negatives.len() {
            program.extend(rows.iter().map(|row| row.negatives[at]));
        }
        for at in 0..first.anchors.len() {
            program.extend(rows.iter().map(|row| row.anchors[at]));
        }
        for at in 0..first.ranges.len() {
            if uniform == 0 {
                program.extend(rows.iter().map(|row| row.ranges[at].0.0));
            }
            self.columns
                .constant
                .extend(rows.iter().map(|row| row.ranges[at].1));
        }
        program.extend(rows.iter().map(|row| row.query));
        debug_assert!(rows.iter().all(|row| row.query != NONE));
    }
}
