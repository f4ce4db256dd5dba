//! Access paths: files each alternative of a query under its *access test*, the rarest test that is
//! necessary for it, and lays out all rows of a segment.
//!
//! A positive condition or a range that is not negated can be an access test. An alternative without one, as
//! that of `not(//a)`, is always a candidate. How rare a test is comes from a sample of messages, or from
//! priors as long as there is none; see `build::frequency`.

use super::groups::{Lists, MULTI, VERIFY, write_groups};
use super::range::{Range, number_of, sortable};
use super::shape::{Shape, Under};
use super::simple::{MOST_SIMPLE, fill_backwards, write_simple};
use crate::error::GenerationError;
use crate::ids::{AnchorId, ConditionId, SegmentQuery, TenantId};
use crate::segment::build::alternatives::{Alternatives, Part};
use crate::segment::build::frequency::Frequencies;
use crate::segment::build::sizes::check_addressable;
use crate::segment::format::NONE;
use crate::segment::format::columns::Columns;
use crate::util::bitset::set_bit;

/// The most tests of a kind in a row: a header counts them in a byte. Further tests are left to verification.
pub const MOST_TESTS: usize = 255;

/// An alternative that is to be filed.
pub struct PlannedRow {
    pub query: SegmentQuery,
    pub tenant: TenantId,
    pub alternative: u32,
    /// Whether its query has several alternatives.
    pub multi: bool,
}

/// The access test that a row is filed under, in the order of `program`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Access {
    Condition(ConditionId),
    /// A range and its constant, as an integer that orders the same.
    Range(Range, u64),
    /// No test: the rows of a tenant that are candidates in every message.
    Always(TenantId),
}

/// The fixed part of a row, which is what is sorted. Its tests are in `Lists`.
pub(super) struct Row {
    pub access: Access,
    /// How many tests of each kind, as `groups` stores it; of a simple row, whether it is wide.
    pub form: u32,
    pub flags: u32,
    /// The first range, or `NONE`, and a key that orders rows as a number passes them.
    pub first: (u32, u64),
    pub query: SegmentQuery,
    simple: bool,
    /// Where its ids and its constants start.
    pub ids: u32,
    pub constants: u32,
}

/// All rows of a segment while it is built, and the tests of the alternative being filed.
struct RowPlanner<'a> {
    alternatives: &'a Alternatives,
    frequencies: &'a Frequencies,
    rows: Vec<Row>,
    lists: Lists,

    /// The values of unused places of simple rows.
    always_holds: ConditionId,
    always_unique: AnchorId,
    /// Conditions, and how their linear paths lie to the anchors.
    positives: Vec<(ConditionId, Under)>,
    negatives: Vec<ConditionId>,
    anchors: Vec<AnchorId>,
    ranges: Vec<(Range, f64)>,
    /// The place of an anchor in the list, and the position counted there.
    counted: Option<(u32, u32)>,
    shapes: Vec<Shape>,
    first_single: usize,
}

impl RowPlanner<'_> {
    /// Files an alternative. One that can never hold is dropped.
    fn add(&mut self, planned: &PlannedRow) {
        if !self.read_alternative(planned.alternative) {
            return;
        }
        let (access, access_under) = self.take_access_test(planned.tenant);
        let fits = self.drop_uncountable();
        // Rare tests first: most rows fail their first test.
        let frequencies = self.frequencies;
        self.positives.sort_unstable_by(|&(a, _), &(b, _)| {
            frequencies.of_condition(a).total_cmp(&frequencies.of_condition(b)).then(a.cmp(&b))
        });
        let share = |(range, constant): &(Range, f64)| frequencies.of_range(*range, *constant);
        self.ranges.sort_unstable_by(|a, b| share(a).total_cmp(&share(b)).then(a.0.cmp(&b.0)));
        let exact = self.alternatives.is_exact(planned.alternative) && fits;
        if exact && !planned.multi && self.is_simple(access) {
            self.add_simple(access, access_under, planned.query);
            return;
        }
        // Only shapes store counted positions.
        let exact = exact && self.counted.is_none();
        if !exact {
            self.anchors.clear();
        }
        let flags = if exact { 0 } else { VERIFY } | if planned.multi { MULTI } else { 0 };
        let form = self.positives.len()
            | self.negatives.len() << 8
            | self.anchors.len() << 16
            | self.ranges.len() << 24;
        self.rows.push(Row {
            access,
            form: form as u32,
            flags,
            first: self.ranges.first().map_or((NONE, 0), |&(range, constant)| (range.0, range.key(constant))),
            query: planned.query,
            simple: false,
            ids: self.lists.ids.len() as u32,
            constants: self.lists.constants.len() as u32,
        });
        let Lists { ids, constants } = &mut self.lists;
        ids.extend(self.positives.iter().map(|(condition, _)| condition.0));
        ids.extend(self.negatives.iter().map(|condition| condition.0));
        ids.extend(self.anchors.iter().map(|anchor| anchor.0));
        ids.extend(self.ranges.iter().map(|(range, _)| range.0));
        constants.extend(self.ranges.iter().map(|(_, constant)| constant));
    }

    /// Whether a few positives and anchors are all that is left beside the access test.
    fn is_simple(&self, access: Access) -> bool {
        matches!(access, Access::Condition(_))
            && self.negatives.is_empty()
            && self.ranges.is_empty()
            && self.positives.len() <= MOST_SIMPLE
            && self.anchors.len() <= MOST_SIMPLE
    }

    /// Adds a simple row, its unused places filled.
    fn add_simple(&mut self, access: Access, access_under: Under, query: SegmentQuery) {
        let access_under = self.drop_idle_anchors(access_under);
        let wide = self.positives.len().max(self.anchors.len()) > 1;
        let size = if wide { MOST_SIMPLE } else { 1 };
        self.rows.push(Row {
            access,
            form: wide as u32,
            flags: 0,
            first: (NONE, 0),
            query,
            simple: true,
            ids: self.lists.ids.len() as u32,
            constants: self.lists.constants.len() as u32,
        });
        let positives = self.positives.iter().map(|(condition, _)| *condition);
        let positives = positives.chain(std::iter::repeat(self.always_holds));
        self.lists.ids.extend(positives.take(size).map(|condition| condition.0));
        let anchors = self.anchors.iter().copied().chain(std::iter::repeat(self.always_unique));
        self.lists.ids.extend(anchors.take(size).map(|anchor| anchor.0));
        let lines = std::iter::once(access_under).chain(self.positives.iter().map(|(_, under)| *under));
        let place = query.index() - self.first_single;
        self.shapes.resize(self.shapes.len().max(place + 1), Shape::default());
        self.shapes[place] = Shape::new(lines, self.counted);
    }

    /// Drops the anchors of a simple row that only one linear path passes through: no other path has to go
    /// through the same element. They come from equal paths, as in `a[b]/b`.
    fn drop_idle_anchors(&mut self, mut access_under: Under) -> Under {
        for anchor in (0..self.anchors.len()).rev() {
            let lines = std::iter::once(access_under).chain(self.positives.iter().map(|(_, under)| *under));
            let through = lines.filter(|under| under.is_through(anchor)).count();
            if through != 1 || self.counted.is_some() {
                continue;
            }
            self.anchors.remove(anchor);
            access_under = access_under.without(anchor);
            self.positives.iter_mut().for_each(|(_, under)| *under = under.without(anchor));
        }
        access_under
    }

    /// Drops tests beyond what a header can count; false if there were any.
    fn drop_uncountable(&mut self) -> bool {
        let fits = self.positives.len() <= MOST_TESTS
            && self.negatives.len() <= MOST_TESTS
            && self.anchors.len() <= MOST_TESTS
            && self.ranges.len() <= MOST_TESTS;
        self.positives.truncate(MOST_TESTS);
        self.negatives.truncate(MOST_TESTS);
        self.anchors.truncate(MOST_TESTS);
        self.ranges.truncate(MOST_TESTS);
        fits
    }

    /// Sorts the parts of an alternative into lists; false if it can never hold.
    fn read_alternative(&mut self, alternative: u32) -> bool {
        self.positives.clear();
        self.negatives.clear();
        self.anchors.clear();
        self.ranges.clear();
        self.counted = None;
        for part in self.alternatives.parts(alternative) {
            match *part {
                Part::Positive(condition, under) => {
                    if !self.positives.contains(&(condition, under)) {
                        self.positives.push((condition, under));
                    }
                }
                Part::Negative(condition) => {
                    if !self.negatives.contains(&condition) {
                        self.negatives.push(condition);
                    }
                }
                // The same path twice makes two anchors: different linear paths pass through each.
                Part::Anchor(anchor) => self.anchors.push(anchor),
                Part::Counted(anchor, position) => self.counted = Some((anchor, position)),
                // No number compares with NaN.
                Part::Range(range, constant, _) if constant.is_nan() => {
                    if !range.negated() {
                        return false;
                    }
                }
                Part::Range(range, constant, _) => {
                    // Of two tests of one range the stricter implies the other.
                    match self.ranges.iter_mut().find(|(other, _)| *other == range) {
                        Some((_, other)) if range.key(constant) > range.key(*other) => *other = constant,
                        Some(_) => {}
                        None => self.ranges.push((range, constant)),
                    }
                }
            }
        }
        true
    }

    /// Removes the rarest necessary test from the lists and returns it, with the anchors it is under.
    fn take_access_test(&mut self, tenant: TenantId) -> (Access, Under) {
        let frequencies = self.frequencies;
        let condition = self
            .positives
            .iter()
            .map(|&positive| (frequencies.of_condition(positive.0), positive))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let range = (0..self.ranges.len())
            .filter(|&at| !self.ranges[at].0.negated())
            .map(|at| (frequencies.of_range(self.ranges[at].0, self.ranges[at].1), at))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match (condition, range) {
            (Some((share, positive)), range) if range.is_none_or(|(other, _)| share <= other) => {
                self.positives.retain(|&other| other != positive);
                (Access::Condition(positive.0), positive.1)
            }
            (_, Some((_, at))) => {
                let (range, constant) = self.ranges.remove(at);
                (Access::Range(range, sortable(constant)), Under::default())
            }
            _ => (Access::Always(tenant), Under::default()),
        }
    }

    /// Numbers the queries with one row in the order of the sorted rows, and those without rows last.
    fn number_singles(&mut self, count: usize) -> Vec<SegmentQuery> {
        let mut numbers = vec![SegmentQuery::NONE; count];
        let mut shapes = Vec::with_capacity(self.shapes.len());
        let mut next = self.first_single;
        for row in self.rows.iter_mut().filter(|row| row.query.index() >= self.first_single) {
            let place = row.query.index() - self.first_single;
            if row.simple {
                shapes.push(self.shapes[place]);
            }
            row.query = SegmentQuery::from(next);
            numbers[place] = row.query;
            next += 1;
        }
        for number in numbers.iter_mut().filter(|number| number.is_none()) {
            *number = SegmentQuery::from(next);
            next += 1;
        }
        self.shapes = shapes;
        numbers
    }
}

/// Files all rows and lays them out. Queries with one row are numbered in the order of their rows, so that
/// those found together lie side by side: returns their new numbers.
pub fn write_rows(
    planned: impl Iterator<Item = PlannedRow>,
    alternatives: &Alternatives,
    frequencies: &Frequencies,
    tenants: usize,
    columns: &mut Columns,
) -> Result<Vec<SegmentQuery>, GenerationError> {
    let view = columns.view();
    let mut planner = RowPlanner {
        alternatives,
        frequencies,
        rows: Vec::new(),
        lists: Lists::default(),
        always_holds: ConditionId::from(view.conditions()),
        always_unique: AnchorId::from(view.anchors()),
        positives: Vec::new(),
        negatives: Vec::new(),
        anchors: Vec::new(),
        ranges: Vec::new(),
        counted: None,
        shapes: Vec::new(),
        first_single: view.first_single(),
    };
    planned.for_each(|planned| planner.add(&planned));
    check_addressable("tests of rows", planner.lists.ids.len())?;
    planner
        .rows
        .sort_unstable_by_key(|row| (!row.simple, row.access, row.form, row.flags, row.first, row.query));
    let (conditions, sides) = (view.conditions(), view.slots() * 2);
    let singles = planner.number_singles(view.queries() - view.first_single());
    // One bit more, for the condition that always holds; nothing is filed under it.
    columns.direct = vec![0; (conditions + 1).div_ceil(64)];
    columns.range_start = vec![0; sides + 1];
    columns.always = vec![NONE; tenants + 1];
    let RowPlanner { rows, lists, shapes, .. } = planner;
    columns.shape = shapes;
    let (simple, others) = rows.split_at(rows.partition_point(|row| row.simple));
    write_simple(simple, &lists.ids, conditions, columns);
    if others.iter().any(|row| matches!(row.access, Access::Condition(_))) {
        columns.condition_rows = vec![NONE; conditions + 1];
    }
    for filed in others.chunk_by(|a, b| a.access == b.access) {
        let at = columns.program.len() as u32;
        match filed[0].access {
            Access::Condition(condition) => {
                set_bit(&mut columns.direct, condition.index());
                columns.condition_rows[condition.index()] = at;
            }
            Access::Range(range, constant) => {
                columns.threshold.push(number_of(constant));
                columns.threshold_rows.push(at);
                columns.range_start[range.side() + 1] += 1;
            }
            Access::Always(tenant) => columns.always[tenant.index()] = at,
        }
        write_groups(filed, &lists, columns)?;
    }
    check_addressable("words of rows", columns.program.len())?;
    finish_starts(columns);
    Ok(singles)
}

/// Completes the tables of starts.
fn finish_starts(columns: &mut Columns) {
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
