//! Groups of rows, read from a segment's program; see `segment::rows::groups` for how they stand there.

use crate::matching::candidates::screen::Screen;
use crate::matching::findings::Findings;
use crate::segment::format::columns::View;
use crate::segment::rows::groups::{HEADER, LED, MULTI, VERIFY, codes};
use crate::segment::rows::range::Range;
use crate::segment::rows::screen::SCALE;

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

    // Most groups are small, and handing them over would cost more than reading them.
    #[inline(always)]
    fn next(&mut self) -> Option<Group<'a>> {
        let (&[size, form, flags, own, query], rest) = self.headers.split_first()?;
        self.headers = rest;
        let (rows, columns) = (size as usize & 0xFFFF, size as usize >> 16);
        let [positives, negatives, anchors, ranges] = form.to_le_bytes().map(usize::from);
        let mut take = |words: usize| {
            let taken = &self.view.program[self.next..][..words];
            self.next += words;
            taken
        };
        let (mut screen, mut in_lists) = (Screen::default(), ranges);
        if columns > 0 {
            let scales = take(columns * 2 * SCALE).as_chunks().0;
            let codes = bytemuck::cast_slice(take(columns * codes(rows) / size_of::<u32>()));
            (screen, in_lists) = (Screen { scales, codes, is_led: flags & LED != 0 }, 0);
        }
        let queries = (flags & MULTI != 0) as usize;
        let lists = take(rows * (positives + negatives + anchors + in_lists + queries));
        Some(Group {
            rows,
            flags,
            first_query: query,
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

/// A group of rows, its columns still side by side.
pub struct Group<'a> {
    pub rows: usize,
    pub flags: u32,
    pub first_query: u32,
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

    /// What tells most rows apart at a glance, if the group is screened.
    #[inline(always)]
    pub fn screen(&self) -> Option<&Screen<'a>> {
        (!self.screen.codes.is_empty()).then_some(&self.screen)
    }

    /// Whether ranges are all there is to a row.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.lists.is_empty() && self.flags & VERIFY == 0
    }

    /// Whether a row's range tests pass.
    #[inline]
    pub fn in_range(&self, row: usize, findings: &Findings) -> bool {
        let constants = &self.constants[row * self.ranges..][..self.ranges];
        if self.screen().is_some() {
            return self.screen.passes(row, constants, findings);
        }
        let first = self.positives + self.negatives + self.anchors;
        let mut tests = constants.iter().enumerate();
        tests.all(|(at, &constant)| findings.passes(Range(self.in_list(first + at, row)), constant))
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
        match self.flags & MULTI {
            0 => self.first_query + row as u32,
            _ => self.lists[self.lists.len() - self.rows + row],
        }
    }
}
