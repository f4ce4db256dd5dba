//! Filing: each alternative of a query becomes a row under its *access test*, the rarest test
//! that is necessary for it. What a message does not contain costs it nothing.
//!
//! Most rows are *simple*: a few positives and anchors and nothing else, under a condition. They
//! stand row by row in tables of their own, *narrow* ones with one positive and one anchor, *wide*
//! ones with three of each. What a row does not need is filled up with a condition that always holds
//! and an anchor that is never bound twice, so that testing a row takes no branch:
//!
//! ```text
//! positive…, anchor…, access test, query
//! ```
//!
//! How its lines lie to its anchors is kept apart, in the query's `Shape`: few rows need it. The other
//! rows under an access test stand in groups; see `groups`.

pub mod groups;
pub mod range;
pub mod screen;
pub mod shape;

use crate::segment::build::alternatives::{Alternatives, Part};
use crate::segment::build::frequency::Frequencies;
use crate::segment::format::columns::Columns;
use crate::segment::format::trie::NONE;
use crate::segment::rows::groups::{Lists, MULTI, VERIFY, push_groups};
use crate::segment::rows::range::{Range, number_of, sortable};
use crate::segment::rows::shape::{MOST_SIMPLE, Shape, Under};

/// Conditions with up to so many simple rows have them copied into caches, next to those of the
/// conditions that are found together with them.
const FEW: usize = 64;

/// More tests of a kind than a header can count are left to verification.
pub const MOST: usize = 255;

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

/// A row on its way to its place. Its lists stand in `Lists`; this is what is sorted.
pub(crate) struct Row {
    access: Access,
    /// How many tests of each kind, as `groups` has it; of a simple row, whether it is wide.
    pub form: u32,
    pub flags: u32,
    /// The first range, or `NONE`, and an integer that orders rows as a number passes them.
    pub first: (u32, u64),
    pub query: u32,
    simple: bool,
    /// Where its ids and its constants start.
    pub ids: u32,
    pub constants: u32,
}

/// All rows of a segment while it is built.
struct Rows<'a> {
    alternatives: &'a Alternatives,
    frequencies: &'a Frequencies,
    rows: Vec<Row>,
    lists: Lists,

    /// What simple rows are filled up with.
    always_holds: u32,
    never_twice: u32,
    /// Conditions, and how their lines lie to the anchors.
    positives: Vec<(u32, Under)>,
    negatives: Vec<u32>,
    anchors: Vec<u32>,
    ranges: Vec<(Range, f64)>,
    /// An anchor's place and the position counted there.
    counted: Option<(u32, u32)>,
    shapes: Vec<Shape>,
    first_single: u32,
}

impl Rows<'_> {
    /// Plans where an alternative is filed. One that can never hold is not filed at all.
    fn add(&mut self, planned: &Planned) {
        if !self.gather(planned.alternative) {
            return;
        }
        let (access, access_under) = self.take_access(planned.tenant);
        let fits = self.trim();
        // Rare tests first: most rows fail their first test.
        let frequencies = self.frequencies;
        self.positives.sort_unstable_by(|&(a, _), &(b, _)| {
            frequencies.of_condition(a).total_cmp(&frequencies.of_condition(b)).then(a.cmp(&b))
        });
        let share = |(range, constant): &(Range, f64)| frequencies.of_range(*range, *constant);
        self.ranges.sort_unstable_by(|a, b| share(a).total_cmp(&share(b)).then(a.0.cmp(&b.0)));
        let exact = self.alternatives.is_exact(planned.alternative) && fits;
        if exact && !planned.multi && self.is_simple(access) {
            self.push_simple(access, access_under, planned.query);
            return;
        }
        // Only a shape says what is counted.
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
        ids.extend(self.positives.iter().map(|(condition, _)| condition));
        ids.extend(&self.negatives);
        ids.extend(&self.anchors);
        ids.extend(self.ranges.iter().map(|(range, _)| range.0));
        constants.extend(self.ranges.iter().map(|(_, constant)| constant));
    }

    /// Whether a few positives and anchors are all there is beside the access test.
    fn is_simple(&self, access: Access) -> bool {
        matches!(access, Access::Condition(_))
            && self.negatives.is_empty()
            && self.ranges.is_empty()
            && self.positives.len() <= MOST_SIMPLE
            && self.anchors.len() <= MOST_SIMPLE
    }

    /// A simple row, filled up to its size.
    fn push_simple(&mut self, access: Access, access_under: Under, query: u32) {
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
        self.lists.ids.extend(positives.chain(std::iter::repeat(self.always_holds)).take(size));
        let anchors = self.anchors.iter().copied();
        self.lists.ids.extend(anchors.chain(std::iter::repeat(self.never_twice)).take(size));
        let lines = std::iter::once(access_under).chain(self.positives.iter().map(|(_, under)| *under));
        let place = (query - self.first_single) as usize;
        self.shapes.resize(self.shapes.len().max(place + 1), Shape::default());
        self.shapes[place] = Shape::new(lines, self.counted);
    }

    /// Drops the anchors of a simple row that a single line passes through: there is nothing that it
    /// would have to meet there. They come from lines that are equal, as in `a[b]/b`.
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

    /// Drops tests that a header cannot count; false if there were any.
    fn trim(&mut self) -> bool {
        let fits = self.positives.len() <= MOST
            && self.negatives.len() <= MOST
            && self.anchors.len() <= MOST
            && self.ranges.len() <= MOST;
        self.positives.truncate(MOST);
        self.negatives.truncate(MOST);
        self.anchors.truncate(MOST);
        self.ranges.truncate(MOST);
        fits
    }

    /// Sorts an alternative's parts into lists; false if it can never hold.
    fn gather(&mut self, alternative: u32) -> bool {
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
                // The same path twice makes two anchors: each has lines of its own.
                Part::Anchor(anchor) => self.anchors.push(anchor),
                Part::Counted(anchor, position) => self.counted = Some((anchor, position)),
                // Nothing compares with what is not a number.
                Part::Range(range, constant, _) if constant.is_nan() => {
                    if !range.negated() {
                        return false;
                    }
                }
                Part::Range(range, constant, _) => {
                    // Of two tests in one direction the stricter says both.
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

    /// Numbers the queries with one row in the order of rows, which are sorted; those with none last.
    fn number_singles(&mut self, count: usize) -> Vec<u32> {
        let mut numbers = vec![NONE; count];
        let mut shapes = Vec::with_capacity(self.shapes.len());
        let mut next = self.first_single;
        for row in self.rows.iter_mut().filter(|row| row.query >= self.first_single) {
            let place = (row.query - self.first_single) as usize;
            if row.simple {
                shapes.push(self.shapes[place]);
            }
            row.query = next;
            numbers[place] = next;
            next += 1;
        }
        for number in numbers.iter_mut().filter(|number| **number == NONE) {
            *number = next;
            next += 1;
        }
        self.shapes = shapes;
        numbers
    }

    /// Takes the rarest necessary test out of the lists, with the anchors it is under.
    fn take_access(&mut self, tenant: u32) -> (Access, Under) {
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
}

/// Files all rows and lays them out. Queries with one row are numbered as their rows stand, so that
/// those that are found together lie side by side: returns their new numbers.
pub fn freeze(
    planned: impl Iterator<Item = Planned>,
    alternatives: &Alternatives,
    frequencies: &Frequencies,
    tenants: usize,
    columns: &mut Columns,
) -> Vec<u32> {
    let view = columns.view();
    let mut rows = Rows {
        alternatives,
        frequencies,
        rows: Vec::new(),
        lists: Lists::default(),
        always_holds: view.conditions() as u32,
        never_twice: view.anchors() as u32,
        positives: Vec::new(),
        negatives: Vec::new(),
        anchors: Vec::new(),
        ranges: Vec::new(),
        counted: None,
        shapes: Vec::new(),
        first_single: view.first_single() as u32,
    };
    planned.for_each(|planned| rows.add(&planned));
    rows.rows
        .sort_unstable_by_key(|row| (!row.simple, row.access, row.form, row.flags, row.first, row.query));
    let (conditions, sides) = (view.conditions(), view.slots() * 2);
    let singles = rows.number_singles(view.queries() - view.first_single());
    // One bit more, for the condition that always holds; nothing is filed under it.
    columns.filed = vec![0; (conditions + 1).div_ceil(64)];
    columns.range_start = vec![0; sides + 1];
    columns.always = vec![NONE; tenants + 1];
    let Rows { rows, lists, shapes, .. } = rows;
    columns.shape = shapes;
    let (simple, others) = rows.split_at(rows.partition_point(|row| row.simple));
    push_simple(simple, &lists.ids, conditions, columns);
    if others.iter().any(|row| matches!(row.access, Access::Condition(_))) {
        columns.condition_rows = vec![NONE; conditions + 1];
    }
    for filed in others.chunk_by(|a, b| a.access == b.access) {
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
        push_groups(filed, &lists, columns);
    }
    assert!(columns.program.len() < NONE as usize, "a segment's rows fit 16 GiB: load in several parts");
    finish(columns);
    singles
}

/// Lays out the simple rows.
fn push_simple(rows: &[Row], ids: &[u32], conditions: usize, columns: &mut Columns) {
    if rows.is_empty() {
        return;
    }
    columns.few = vec![0; columns.filed.len()];
    columns.condition_narrow = vec![NONE; conditions + 1];
    columns.condition_wide = vec![NONE; conditions + 1];
    for filed in rows.chunk_by(|a, b| a.access == b.access) {
        let Access::Condition(condition) = filed[0].access else {
            unreachable!("simple rows are filed under conditions");
        };
        let bits = if filed.len() <= FEW { &mut columns.few } else { &mut columns.filed };
        bits[condition as usize / 64] |= 1 << (condition % 64);
        columns.condition_narrow[condition as usize] = columns.narrow.len() as u32;
        columns.condition_wide[condition as usize] = columns.wide.len() as u32;
        for row in filed {
            let ids = &ids[row.ids as usize..];
            match row.form {
                0 => columns.narrow.push([ids[0], ids[1], condition, row.query]),
                _ => {
                    columns.wide.push([ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], condition, row.query])
                }
            }
        }
    }
    fill_backwards(&mut columns.condition_narrow, columns.narrow.len() as u32);
    fill_backwards(&mut columns.condition_wide, columns.wide.len() as u32);
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
