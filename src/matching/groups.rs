//! Groups of rows, read from a segment's program; see `index::groups` for how they stand there.

use crate::index::columns::View;
use crate::index::groups::{HEADER, MULTI, SCREENED, VERIFY, codes};
use crate::index::range::Range;
use crate::index::screen::SCALE;
use crate::matching::findings::Findings;
use crate::matching::screen::Screen;

/// The groups that are filed under one access test.
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

    /// Where the groups end, once all were taken.
    pub fn end(&self) -> usize {
        self.next
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Group<'a>;

    #[inline]
    fn next(&mut self) -> Option<Group<'a>> {
        let (&[size, form, flags, own], rest) = self.headers.split_first()?;
        self.headers = rest;
        let (rows, columns) = (size as usize & 0xFFFF, size as usize >> 16);
        let [positives, negatives, anchors, ranges] = form.to_le_bytes().map(usize::from);
        let mut take = |words: usize| {
            let taken = &self.view.program[self.next..][..words];
            self.next += words;
            taken
        };
        let screened = flags & SCREENED != 0;
        let columns_of = take(columns * if screened { SCALE } else { 1 });
        let codes = take(if screened { columns * codes(rows) / size_of::<u32>() } else { 0 });
        let lists = take(rows * (positives + negatives + anchors + 1));
        let tests = own as usize..own as usize + rows * ranges;
        Some(Group {
            rows,
            flags,
            columns: columns_of,
            codes: bytemuck::cast_slice(codes),
            lists,
            positives,
            negatives,
            anchors,
            ranges,
            own_column: &self.view.own_column[tests.clone()],
            own_constant: &self.view.own_constant[tests],
        })
    }
}

/// A group of rows, its columns still side by side.
pub struct Group<'a> {
    pub rows: usize,
    pub flags: u32,
    columns: &'a [u32],
    codes: &'a [u8],
    lists: &'a [u32],
    positives: usize,
    negatives: usize,
    anchors: usize,
    ranges: usize,
    /// The range tests, row by row.
    own_column: &'a [u8],
    own_constant: &'a [f64],
}

impl<'a> Group<'a> {
    #[inline(always)]
    fn in_list(&self, list: usize, row: usize) -> u32 {
        self.lists[list * self.rows + row]
    }

    pub fn queries(&self) -> &'a [u32] {
        &self.lists[(self.positives + self.negatives + self.anchors) * self.rows..]
    }

    /// What tells most rows apart at a glance, if the group is screened.
    #[inline(always)]
    pub fn screen(&self) -> Option<Screen<'a>> {
        let screened = self.flags & SCREENED != 0;
        screened.then_some(Screen {
            scales: self.columns.as_chunks().0,
            codes: self.codes,
            flags: self.flags,
        })
    }

    /// Whether ranges are all there is to a row.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.lists.len() == self.rows && self.flags & (VERIFY | MULTI) == 0
    }

    /// Whether a row's range tests pass.
    #[inline]
    pub fn in_range(&self, row: usize, findings: &Findings) -> bool {
        let tests = row * self.ranges..(row + 1) * self.ranges;
        let stride = if self.flags & SCREENED != 0 { SCALE } else { 1 };
        let mut tests = self.own_column[tests.clone()].iter().zip(&self.own_constant[tests]);
        tests.all(|(&column, &constant)| {
            let range = Range(self.columns[column as usize * stride]);
            range.passes(findings.side(range.side()), constant)
        })
    }

    /// Whether a row's conditions hold.
    #[inline(always)]
    pub fn holds(&self, row: usize, findings: &Findings) -> bool {
        let mut holds = true;
        for list in 0..self.positives {
            holds &= findings.conditions.get(self.in_list(list, row));
        }
        for list in self.positives..self.positives + self.negatives {
            holds &= !findings.conditions.get(self.in_list(list, row));
        }
        holds
    }

    #[inline(always)]
    pub fn anchors_unique(&self, row: usize, findings: &Findings) -> bool {
        let first = self.positives + self.negatives;
        (first..first + self.anchors).all(|list| !findings.twice.get(self.in_list(list, row)))
    }

    #[inline(always)]
    pub fn query(&self, row: usize) -> u32 {
        self.in_list(self.positives + self.negatives + self.anchors, row)
    }
}
