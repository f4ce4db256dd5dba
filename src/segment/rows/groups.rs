//! Rows that are not simple, in groups of one form, column by column. Writer and reader.
//!
//! ```text
//! number of groups
//! of each group: rows | columns<<16, positives | negatives<<8 | anchors<<16 | ranges<<24, flags,
//!                where its constants start, the first row's query
//! of each group: scale…                 two for each column, with their ranges
//!                code…                  for each column those of all rows, padded
//!                positive…, negative…   conditions that must hold, must not hold
//!                anchor…                anchors that must be unique, or the row is verified
//!                range…                 if there are no columns
//!                query…                 if the queries have other rows; else they follow the first
//! ```
//!
//! A group with columns is *screened*: a byte per range test decides nearly all of them in a tenth of the
//! memory; see `screen`. The constants themselves are stored apart, row by row, in the order of the columns
//! or of the lists of ranges. So what a message reads of a group lies side by side.

use rustc_hash::FxHashMap;

use super::access::Row;
use super::range::Range;
use super::screen::{LANES, NO_ROW, NO_TEST, SCALE, Scale, Screen, mirrored};
use crate::error::GenerationError;
use crate::ids::{ConditionId, SegmentQuery};
use crate::segment::build::sizes::check_addressable;
use crate::segment::format::columns::{Columns, View};
use crate::tuning::{SCREEN_COLUMN_ROWS, SCREEN_ROWS_PER_TEST, SCREENED_ROWS};
use crate::util::bitset::Bits;

/// Flag of a group: always verify its rows.
pub const VERIFY: u32 = 1;
/// Flag of a group: the rows' queries have other rows too, so report a query once.
pub const MULTI: u32 = 2;
/// Flag of a group: all rows have a test in the first column. If no row passes there, none passes.
const FIRST_COLUMN_FULL: u32 = 4;

const HEADER: usize = 5;
/// The most rows of a group.
pub const MOST_ROWS: usize = 256;

/// The tests of all rows of a segment, while it is built.
#[derive(Default)]
pub(super) struct Lists {
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

/// How many codes a column has: one per row, padded.
fn codes_of(rows: usize) -> usize {
    rows.next_multiple_of(LANES)
}

/// Writes the rows filed under one access test, which come sorted by form, flags and first range.
pub(super) fn write_groups(
    filed: &[Row],
    lists: &Lists,
    columns: &mut Columns,
) -> Result<(), GenerationError> {
    let of_one_form = filed.chunk_by(|a, b| (a.form, a.flags) == (b.form, b.flags));
    let groups: Vec<NewGroup<'_>> =
        of_one_form.flat_map(|rows| rows.chunks(MOST_ROWS)).map(|rows| NewGroup::new(rows, lists)).collect();
    columns.program.push(groups.len() as u32);
    let mut constants = columns.own_constant.len();
    for group in &groups {
        let Row { form, flags, query, .. } = group.rows[0];
        let full = if group.is_first_range_shared() { FIRST_COLUMN_FULL } else { 0 };
        let size = group.rows.len() | group.columns.len() << 16;
        columns.program.extend([size as u32, form, flags | full, constants as u32, query.0]);
        constants += group.rows.len() * ranges_of(form);
    }
    check_addressable("constants of range tests", constants)?;
    groups.iter().for_each(|group| group.write(lists, columns));
    Ok(())
}

fn ranges_of(form: u32) -> usize {
    (form >> 24) as usize
}

/// A group while it is written.
struct NewGroup<'a> {
    rows: &'a [Row],
    /// None if it is not screened.
    columns: Vec<Column>,
}

/// A bit for each row of a group.
type RowBits = [u64; MOST_ROWS / 64];

/// One or two ranges that share codes: no row tests both.
struct Column {
    ranges: Vec<TestedRange>,
    rows: RowBits,
}

/// A range that rows of a group test.
struct TestedRange {
    range: Range,
    rows: RowBits,
    /// The least and the greatest key of their constants.
    ends: (u64, u64),
}

impl<'a> NewGroup<'a> {
    fn new(rows: &'a [Row], lists: &Lists) -> NewGroup<'a> {
        let mut group = NewGroup { rows, columns: Vec::new() };
        // A range that all rows test first comes in the first column.
        let mut tested = tested_ranges(rows, lists);
        tested.sort_unstable_by_key(|tested| {
            (!group.is_first_range_shared() || tested.range.0 != rows[0].first.0, tested.range)
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
    fn is_first_range_shared(&self) -> bool {
        let (first, last) = (&self.rows[0], &self.rows[self.rows.len() - 1]);
        first.first.0 == last.first.0 && ranges_of(first.form) > 0
    }

    fn write(&self, lists: &Lists, columns: &mut Columns) {
        self.write_screen(lists, columns);
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
            program.extend(self.rows.iter().map(|row| row.query.0));
        }
    }

    /// Writes scales, codes and constants, if the group is screened.
    fn write_screen(&self, lists: &Lists, columns: &mut Columns) {
        let program = &mut columns.program;
        let height = codes_of(self.rows.len());
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
fn tested_ranges(rows: &[Row], lists: &Lists) -> Vec<TestedRange> {
    let mut places = FxHashMap::default();
    let mut all: Vec<TestedRange> = Vec::new();
    for (row, of) in rows.iter().enumerate() {
        for (range, constant) in lists.ranges(of) {
            let place = *places.entry(range).or_insert_with(|| {
                all.push(TestedRange { range, rows: [0; _], ends: (u64::MAX, 0) });
                all.len() - 1
            });
            let TestedRange { rows, ends, .. } = &mut all[place];
            let key = range.key(constant);
            rows[row / 64] |= 1 << (row % 64);
            *ends = (ends.0.min(key), ends.1.max(key));
        }
    }
    all
}

/// Whether screening costs less than testing rows one by one.
fn is_worth_screening(rows: usize, columns: usize) -> bool {
    rows >= SCREENED_ROWS && columns * (rows + SCREEN_COLUMN_ROWS) <= SCREEN_ROWS_PER_TEST * rows
}

impl View<'_> {
    /// The stretch of the program with the groups filed under a condition.
    #[inline]
    pub fn groups_of(&self, condition: ConditionId) -> (u32, u32) {
        match self.condition_rows.get(condition.index()..condition.index() + 2) {
            Some(starts) => (starts[0], starts[1]),
            None => (0, 0),
        }
    }
}

/// Reads the groups that are filed under one access test.
pub struct Groups<'a> {
    view: View<'a>,
    headers: &'a [[u32; HEADER]],
    /// Where the next group starts.
    next: usize,
}

impl<'a> Groups<'a> {
    #[inline]
    pub fn at(view: View<'a>, at: usize) -> Groups<'a> {
        let count = view.program[at] as usize;
        let headers = view.program[at + 1..][..count * HEADER].as_chunks().0;
        Groups { view, headers, next: at + 1 + count * HEADER }
    }

    /// Where the groups end, once all were read.
    pub fn end(&self) -> usize {
        self.next
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Group<'a>;

    // Most groups are small: a call would cost more than reading them.
    #[inline(always)]
    fn next(&mut self) -> Option<Group<'a>> {
        let (&[size, form, flags, own, query], rest) = self.headers.split_first()?;
        self.headers = rest;
        let (rows, columns) = (size as usize & 0xFFFF, size as usize >> 16);
        let [positives, negatives, anchors, ranges] = form.to_le_bytes().map(usize::from);
        let mut take = |words: usize| {
            let part = &self.view.program[self.next..][..words];
            self.next += words;
            part
        };
        let (mut screen, mut in_lists) = (Screen::default(), ranges);
        if columns > 0 {
            let scales = take(columns * 2 * SCALE).as_chunks().0;
            let codes = bytemuck::cast_slice(take(columns * codes_of(rows) / size_of::<u32>()));
            let first_column_full = flags & FIRST_COLUMN_FULL != 0;
            (screen, in_lists) = (Screen { scales, codes, first_column_full }, 0);
        }
        let queries = (flags & MULTI != 0) as usize;
        let lists = take(rows * (positives + negatives + anchors + in_lists + queries));
        Some(Group {
            rows,
            flags,
            first_query: SegmentQuery(query),
            screen,
            lists,
            positives,
            negatives,
            anchors,
            ranges,
            constants: &self.view.own_constant[own as usize..][..rows * ranges],
        })
    }
}

/// A group of rows, as it is stored: column by column.
pub struct Group<'a> {
    pub rows: usize,
    pub flags: u32,
    pub first_query: SegmentQuery,
    screen: Screen<'a>,
    lists: &'a [u32],
    positives: usize,
    negatives: usize,
    anchors: usize,
    ranges: usize,
    /// The constants of range tests, row by row.
    constants: &'a [f64],
}

impl<'a> Group<'a> {
    #[inline(always)]
    fn in_list(&self, list: usize, row: usize) -> u32 {
        self.lists[list * self.rows + row]
    }

    /// The screen, if the group is screened.
    #[inline(always)]
    pub fn screen(&self) -> Option<&Screen<'a>> {
        (!self.screen.codes.is_empty()).then_some(&self.screen)
    }

    /// Whether rows consist of range tests only.
    #[inline(always)]
    pub fn is_ranges_only(&self) -> bool {
        self.lists.is_empty() && self.flags & VERIFY == 0
    }

    /// Whether a row's range tests pass, given the sides of all slots.
    #[inline]
    pub fn in_range(&self, row: usize, sides: &[f64]) -> bool {
        let constants = &self.constants[row * self.ranges..][..self.ranges];
        if self.screen().is_some() {
            return self.screen.passes(row, constants, sides);
        }
        let first = self.positives + self.negatives + self.anchors;
        let mut tests = constants.iter().enumerate();
        tests.all(|(at, &constant)| {
            let range = Range(self.in_list(first + at, row));
            range.passes(sides[range.side()], constant)
        })
    }

    /// Whether a row's positives hold and its negatives do not.
    #[inline(always)]
    pub fn holds(&self, row: usize, conditions: &Bits) -> bool {
        let mut holds = true;
        for list in 0..self.positives {
            holds &= conditions.get(self.in_list(list, row));
        }
        for list in self.positives..self.positives + self.negatives {
            holds &= !conditions.get(self.in_list(list, row));
        }
        holds
    }

    /// Whether none of a row's anchors is bound to several elements.
    #[inline(always)]
    pub fn anchors_unique(&self, row: usize, bound_twice: &Bits) -> bool {
        let first = self.positives + self.negatives;
        (first..first + self.anchors).all(|list| !bound_twice.get(self.in_list(list, row)))
    }

    #[inline(always)]
    pub fn query(&self, row: usize) -> SegmentQuery {
        SegmentQuery(match self.flags & MULTI {
            0 => self.first_query.0 + row as u32,
            _ => self.lists[self.lists.len() - self.rows + row],
        })
    }
}
