//! Groups of rows, read from a segment's program; see `rows` for how they stand there.

use crate::index::columns::View;
use crate::index::range::Range;
use crate::index::rows::{HEADER, OWN, constant_of};
use crate::matching::bits::low_bits;
use crate::matching::findings::Findings;

/// The groups that are filed under one access test.
pub struct Groups<'a> {
    program: &'a [u32],
    headers: &'a [[u32; HEADER]],
    /// Where the first constants and the columns of the next group start.
    firsts: usize,
    columns: usize,
}

impl<'a> Groups<'a> {
    #[inline]
    pub fn at(view: View<'a>, at: usize) -> Groups<'a> {
        let count = view.program[at] as usize;
        let headers = view.program[at + 1..][..count * HEADER].as_chunks().0;
        let firsts = at + 1 + count * HEADER;
        let with_ranges = headers.iter().filter(|header| header[1] >> 24 != 0);
        let columns = firsts + with_ranges.map(|header| header[0] as usize * 2).sum::<usize>();
        Groups { program: view.program, headers, firsts, columns }
    }

    /// Where the groups end, once all were taken.
    pub fn end(&self) -> usize {
        self.columns
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Group<'a>;

    #[inline]
    fn next(&mut self) -> Option<Group<'a>> {
        let (&[rows, form, flags, first], rest) = self.headers.split_first()?;
        self.headers = rest;
        let rows = rows as usize;
        let count = |shift: u32| (form >> shift & 0xFF) as usize;
        let (ranges, own) = (count(24), count(24).saturating_sub(1));
        let firsts = &self.program[self.firsts..][..if ranges > 0 { rows * 2 } else { 0 }];
        self.firsts += firsts.len();
        let width = count(0) + count(8) + count(16) + own * OWN;
        let columns = &self.program[self.columns..][..rows * (width + 1)];
        self.columns += columns.len();
        Some(Group {
            rows,
            flags,
            first: Range(first),
            firsts: firsts.as_chunks().0,
            columns,
            positives: count(0),
            negatives: count(8),
            anchors: count(16),
            own,
        })
    }
}

/// A group of rows, its columns still side by side.
pub struct Group<'a> {
    rows: usize,
    pub flags: u32,
    /// The range that all rows share, if there are ranges, and its constants, in halves.
    first: Range,
    firsts: &'a [[u32; 2]],
    columns: &'a [u32],
    positives: usize,
    negatives: usize,
    anchors: usize,
    /// Ranges that each row has for itself.
    pub own: usize,
}

impl<'a> Group<'a> {
    #[inline(always)]
    fn column(&self, column: usize, row: usize) -> u32 {
        self.columns[column * self.rows + row]
    }

    fn width(&self) -> usize {
        self.positives + self.negatives + self.anchors + self.own * OWN
    }

    pub fn queries(&self) -> &'a [u32] {
        &self.columns[self.width() * self.rows..]
    }

    /// How many rows pass the first range: a prefix.
    #[inline(always)]
    pub fn prefix(&self, findings: &Findings) -> usize {
        if self.firsts.is_empty() {
            return self.rows;
        }
        let number = findings.side(self.first.side());
        self.firsts.partition_point(|&halves| self.first.passes(number, constant_of(halves)))
    }

    /// A bit for each of up to 64 rows whose own ranges pass.
    #[inline]
    pub fn passing(&self, start: usize, end: usize, findings: &Findings) -> u64 {
        let mut alive = low_bits(end - start);
        let first = self.positives + self.negatives + self.anchors;
        for at in 0..self.own {
            let ranges = self.columns[(first + at * OWN) * self.rows..].as_chunks::<OWN>().0;
            let mut bits = 0;
            for (row, &[range, low, high]) in ranges[start..end].iter().enumerate() {
                let range = Range(range);
                let passes = range.passes(findings.side(range.side()), constant_of([low, high]));
                bits |= (passes as u64) << row;
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
    pub fn holds(&self, row: usize, findings: &Findings) -> bool {
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
    pub fn anchors_unique(&self, row: usize, findings: &Findings) -> bool {
        let first = self.positives + self.negatives;
        (first..first + self.anchors).all(|column| !findings.twice.get(self.column(column, row)))
    }

    #[inline(always)]
    pub fn query(&self, row: usize) -> u32 {
        self.column(self.width(), row)
    }
}
