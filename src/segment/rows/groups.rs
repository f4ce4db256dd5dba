//! Rows that are more than simple, in groups of one form, column by column:
//!
//! ```text
//! number of groups
//! of each group: rows | columns<<16, positives | negatives<<8 | anchors<<16 | ranges<<24, flags,
//!                where its constants start, the first row's query
//! of each group: scale…                 of each column two, with their ranges
//!                code…                  of each column, those of all rows, filled up
//!                positive…, negative…   conditions that must hold, must not hold
//!                anchor…                anchors that must be unique, or the row is verified
//!                range…                 if there are no columns
//!                query…                 if they have other rows; else they follow the first
//! ```
//!
//! A group with columns is *screened*: they tell nearly all that range tests would (see `screen`), in
//! a tenth of the room. The constants themselves stand apart, row by row, in the order of the columns
//! or of the lists of ranges. So what a message reads of a group lies side by side.

use rustc_hash::FxHashMap;

use crate::segment::format::columns::Columns;
use crate::segment::rows::Row;
use crate::segment::rows::range::Range;
use crate::segment::rows::screen::{NO_ROW, NO_TEST, Scale, mirrored};

/// Always verify.
pub const VERIFY: u32 = 1;
/// The rows' queries have other rows too: report a query once.
pub const MULTI: u32 = 2;
/// All rows have a test in the first column: who passes none there passes no row.
pub const LED: u32 = 4;

pub const HEADER: usize = 5;
/// The most rows of a group.
pub const MOST_ROWS: usize = 256;
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
pub(crate) fn push_groups(filed: &[Row], lists: &Lists, columns: &mut Columns) {
    let alike = filed.chunk_by(|a, b| (a.form, a.flags) == (b.form, b.flags));
    let groups: Vec<Group<'_>> =
        alike.flat_map(|alike| alike.chunks(MOST_ROWS)).map(|rows| Group::new(rows, lists)).collect();
    columns.program.push(groups.len() as u32);
    let mut constants = columns.own_constant.len();
    for group in &groups {
        let Row { form, flags, query, .. } = group.rows[0];
        let led = if group.is_led() { LED } else { 0 };
        let size = group.rows.len() | group.columns.len() << 16;
        columns.program.extend([size as u32, form, flags | led, constants as u32, query]);
        constants += group.rows.len() * ranges_of(form);
    }
    assert!(constants < u32::MAX as usize, "a segment's constants fit 32 GiB: load in several parts");
    groups.iter().for_each(|group| group.push(lists, columns));
}

fn ranges_of(form: u32) -> usize {
    (form >> 24) as usize
}

/// A group while it is laid out.
struct Group<'a> {
    rows: &'a [Row],
    /// None if it is not screened.
    columns: Vec<Column>,
}

/// A bit for each row of a group.
type RowBits = [u64; MOST_ROWS / 64];

/// One or two ranges that share codes: no row tests both.
struct Column {
    ranges: Vec<Tested>,
    rows: RowBits,
}

/// A range that rows of a group test.
struct Tested {
    range: Range,
    rows: RowBits,
    /// The least and the greatest key of their constants.
    ends: (u64, u64),
}

impl<'a> Group<'a> {
    fn new(rows: &'a [Row], lists: &Lists) -> Group<'a> {
        let mut group = Group { rows, columns: Vec::new() };
        // The range that leads stands in the first column.
        let mut tested = tested(rows, lists);
        tested.sort_unstable_by_key(|tested| {
            (!group.is_led() || tested.range.0 != rows[0].first.0, tested.range)
        });
        for tested in tested {
            let fits = |column: &&mut Column| {
                column.ranges.len() == 1 && column.rows.iter().zip(tested.rows).all(|(a, b)| a & b == 0)
            };
            match group.columns.iter_mut().find(fits) {
                Some(column) => {
                    column.rows.iter_mut().zip(tested.rows).for_each(|(all, rows)| *all |= rows);
                    column.ranges.push(tested);
                }
                None => group.columns.push(Column { rows: tested.rows, ranges: vec![tested] }),
            }
        }
        if !is_worth_screening(rows.len(), group.columns.len()) {
            group.columns.clear();
        }
        group
    }

    /// Whether all rows have the same first range.
    fn is_led(&self) -> bool {
        let (first, last) = (&self.rows[0], &self.rows[self.rows.len() - 1]);
        first.first.0 == last.first.0 && ranges_of(first.form) > 0
    }

    fn push(&self, lists: &Lists, columns: &mut Columns) {
        self.push_screen(lists, columns);
        let program = &mut columns.program;
        let [positives, negatives, anchors, mut ranges] = self.rows[0].form.to_le_bytes().map(usize::from);
        if !self.columns.is_empty() {
            ranges = 0;
        } else {
            let constants = self.rows.iter().flat_map(|row| lists.ranges(row)).map(|(_, constant)| constant);
            columns.own_constant.extend(constants);
        }
        for list in 0..positives + negatives + anchors + ranges {
            program.extend(self.rows.iter().map(|row| lists.ids[row.ids as usize + list]));
        }
        if self.rows[0].flags & MULTI != 0 {
            program.extend(self.rows.iter().map(|row| row.query));
        }
    }

    /// Lays out scales, codes and constants, if the group is screened.
    fn push_screen(&self, lists: &Lists, columns: &mut Columns) {
        let program = &mut columns.program;
        let height = codes(self.rows.len());
        let mut codes = vec![NO_TEST; self.columns.len() * height];
        // Per range: its column, whether it is the second there, its scale.
        let mut places = FxHashMap::default();
        for (at, column) in self.columns.iter().enumerate() {
            codes[at * height + self.rows.len()..(at + 1) * height].fill(NO_ROW);
            let scales = [&column.ranges[0], &column.ranges[column.ranges.len() - 1]].map(|tested| {
                let scale = Scale::new(tested.ends.0, tested.ends.1);
                places.insert(tested.range, (at, tested.range != column.ranges[0].range, scale));
                scale.to_words(tested.range)
            });
            program.extend(scales.as_flattened());
        }
        if self.columns.is_empty() {
            return;
        }
        let mut of_row = Vec::new();
        for (row, of) in self.rows.iter().enumerate() {
            of_row.clear();
            for (range, constant) in lists.ranges(of) {
                let (column, second, scale) = places[&range];
                let code = scale.code(range.key(constant));
                codes[column * height + row] = if second { mirrored(code) } else { code };
                of_row.push((column, constant));
            }
            of_row.sort_unstable_by_key(|&(column, _)| column);
            columns.own_constant.extend(of_row.iter().map(|(_, constant)| constant));
        }
        program.extend(codes.as_chunks().0.iter().map(|&bytes| u32::from_ne_bytes(bytes)));
    }
}

/// The ranges that rows of a group test.
fn tested(rows: &[Row], lists: &Lists) -> Vec<Tested> {
    let mut places = FxHashMap::default();
    let mut all: Vec<Tested> = Vec::new();
    for (row, of) in rows.iter().enumerate() {
        for (range, constant) in lists.ranges(of) {
            let place = *places.entry(range).or_insert_with(|| {
                all.push(Tested { range, rows: [0; _], ends: (u64::MAX, 0) });
                all.len() - 1
            });
            let Tested { rows, ends, .. } = &mut all[place];
            let key = range.key(constant);
            rows[row / 64] |= 1 << (row % 64);
            *ends = (ends.0.min(key), ends.1.max(key));
        }
    }
    all
}

/// Whether columns cost less than testing rows one by one: a column costs a 44th of testing all rows,
/// and getting there as much as 80 more.
fn is_worth_screening(rows: usize, columns: usize) -> bool {
    rows >= 8 && columns * (rows + 80) <= 44 * rows
}
