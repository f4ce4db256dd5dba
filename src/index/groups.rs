//! Rows that are more than simple, in groups of one form, column by column:
//!
//! ```text
//! number of groups
//! of each group: rows | columns<<16, positives | negatives<<8 | anchors<<16 | ranges<<24, flags,
//!                where its range tests start
//! of each group: column…                a range, with its scale if the group is screened
//!                code…                  if it is: of each column, those of all rows, filled up
//!                positive…, negative…   conditions that must hold, must not hold
//!                anchor…                anchors that must be unique, or the row is verified
//!                query…
//! ```
//!
//! The range tests themselves, row by row, stand apart, in `own_column` and `own_constant`: codes
//! nearly always tell what they would (see `screen`), and take a tenth of the room. So the rows of
//! a group are read from one end to the other, and what is rarely read does not lie in between.

use crate::index::columns::Columns;
use crate::index::range::Range;
use crate::index::rows::Row;
use crate::index::screen::{NO_ROW, NO_TEST, Scale};

/// Always verify.
pub const VERIFY: u32 = 1;
/// The rows' queries have other rows too: report a query once.
pub const MULTI: u32 = 2;
/// The group has scales and codes.
pub const SCREENED: u32 = 4;
/// All rows have a test in the first column: who passes none there passes no row.
pub const LED: u32 = 8;

pub const HEADER: usize = 4;
/// The most rows of a group, and the most columns.
pub const MOST_ROWS: usize = 256;
const MOST_COLUMNS: usize = 256;
/// Codes are read so many at a time.
pub const LANES: usize = 16;

/// What all rows of a segment say, while it is built.
#[derive(Default)]
pub struct Lists {
    /// Per row: positives, negatives, anchors, then ranges.
    pub ids: Vec<u32>,
    /// Per row: the constants of its ranges.
    pub constants: Vec<f64>,
}

impl Lists {
    /// A row's range tests.
    fn ranges(&self, row: &Row) -> impl Iterator<Item = (Range, f64)> {
        let [positives, negatives, anchors, ranges] = row.form.to_le_bytes().map(usize::from);
        let ids = &self.ids[row.ids as usize + positives + negatives + anchors..][..ranges];
        let constants = &self.constants[row.constants as usize..][..ranges];
        ids.iter().map(|&range| Range(range)).zip(constants.iter().copied())
    }
}

/// How many codes a column has.
pub fn codes(rows: usize) -> usize {
    rows.next_multiple_of(LANES)
}

/// Lays out the rows filed under one access test, which come sorted by form, flags and first range.
pub(super) fn push_groups(filed: &[Row], lists: &Lists, columns: &mut Columns) {
    let mut groups = Vec::new();
    for mut alike in filed.chunk_by(|a, b| (a.form, a.flags) == (b.form, b.flags)) {
        while !alike.is_empty() {
            let group = Group::first_of(alike, lists);
            alike = &alike[group.rows.len()..];
            groups.push(group);
        }
    }
    columns.program.push(groups.len() as u32);
    let mut own = columns.own_constant.len();
    for group in &groups {
        let Row { form, flags, .. } = group.rows[0];
        let size = group.rows.len() | group.ranges.len() << 16;
        columns.program.extend([size as u32, form, flags | group.flags(), own as u32]);
        own += group.tests();
    }
    groups.iter().for_each(|group| group.push(lists, columns));
}

/// A group while it is laid out.
struct Group<'a> {
    rows: &'a [Row],
    /// The ranges that its rows have: one that leads, if there is, then the others, ascending.
    ranges: Vec<Range>,
}

impl<'a> Group<'a> {
    /// The first group of rows that have a form in common.
    fn first_of(alike: &'a [Row], lists: &Lists) -> Group<'a> {
        let mut group = Group { rows: &[], ranges: Vec::new() };
        let mut ranges = Vec::new();
        for (at, row) in alike.iter().enumerate().take(MOST_ROWS) {
            for (range, _) in lists.ranges(row) {
                if let Err(place) = ranges.binary_search(&range) {
                    ranges.insert(place, range);
                }
            }
            if ranges.len() > MOST_COLUMNS {
                break;
            }
            group.rows = &alike[..at + 1];
            group.ranges.clone_from(&ranges);
        }
        if group.is_led() {
            let first = group.rows[0].first.0;
            let place = group.ranges.partition_point(|range| range.0 < first);
            group.ranges[..=place].rotate_right(1);
        }
        group
    }

    /// Whether all rows have the same first range.
    fn is_led(&self) -> bool {
        let first = |row: Option<&Row>| row.map(|row| row.first.0);
        self.tests() > 0 && first(self.rows.first()) == first(self.rows.last())
    }

    fn tests(&self) -> usize {
        self.rows.len() * (self.rows[0].form >> 24) as usize
    }

    /// Whether codes are worth it: going through a column costs as much as testing a 64th of the rows
    /// one by one, and getting there as much as for 48 rows more.
    fn is_screened(&self) -> bool {
        let (rows, columns) = (self.rows.len(), self.ranges.len());
        rows >= 8 && columns > 0 && columns * (rows + 48) <= 64 * rows
    }

    fn flags(&self) -> u32 {
        let screened = if self.is_screened() { SCREENED } else { 0 };
        screened | if self.is_led() { LED } else { 0 }
    }

    fn push(&self, lists: &Lists, columns: &mut Columns) {
        let column_of =
            |range: Range| self.ranges.iter().position(|&other| other == range).expect("gathered");
        let start = columns.own_column.len();
        for (range, constant) in self.rows.iter().flat_map(|row| lists.ranges(row)) {
            columns.own_column.push(column_of(range) as u8);
            columns.own_constant.push(constant);
        }
        let program = &mut columns.program;
        if self.is_screened() {
            let tests = columns.own_column[start..].iter().map(|&column| column as usize);
            let constants = &columns.own_constant[start..];
            push_screen(&self.ranges, self.rows.len(), tests.zip(constants.iter().copied()), program);
        } else {
            program.extend(self.ranges.iter().map(|range| range.0));
        }
        let [positives, negatives, anchors, _] = self.rows[0].form.to_le_bytes().map(usize::from);
        for list in 0..positives + negatives + anchors {
            program.extend(self.rows.iter().map(|row| lists.ids[row.ids as usize + list]));
        }
        program.extend(self.rows.iter().map(|row| row.query));
    }
}

/// Lays out scales and codes for tests, given row by row as (column, constant).
fn push_screen(
    ranges: &[Range],
    rows: usize,
    tests: impl ExactSizeIterator<Item = (usize, f64)> + Clone,
    program: &mut Vec<u32>,
) {
    let mut ends = vec![(u64::MAX, 0); ranges.len()];
    for (column, constant) in tests.clone() {
        let (least, greatest) = &mut ends[column];
        let key = ranges[column].key(constant);
        (*least, *greatest) = (key.min(*least), key.max(*greatest));
    }
    let scales: Vec<Scale> = ends.iter().map(|&(least, greatest)| Scale::new(least, greatest)).collect();
    program.extend(scales.iter().zip(ranges).flat_map(|(scale, &range)| scale.to_words(range)));
    let mut filled_up = vec![NO_ROW; codes(rows)];
    filled_up[..rows].fill(NO_TEST);
    let mut all = filled_up.repeat(ranges.len());
    let of_row = tests.len() / rows;
    for (at, (column, constant)) in tests.enumerate() {
        let code = &mut all[column * codes(rows) + at / of_row];
        // Of two tests in one column the stricter counts.
        *code = scales[column].code(ranges[column].key(constant)).max(*code);
    }
    program.extend(all.as_chunks().0.iter().map(|&bytes| u32::from_ne_bytes(bytes)));
}
