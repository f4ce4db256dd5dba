//! Simple rows: a condition as access test, a few positives and anchors, and nothing else. Most rows are simple.
//!
//! They are stored in tables of fixed width: *narrow* rows with one positive and one anchor, *wide* rows with
//! three of each. Unused places hold a condition that always holds and an anchor that is always unique, so
//! that testing a row takes no branch:
//!
//! ```text
//! positive…, anchor…, access test, query
//! ```
//!
//! How the linear paths of a row lie to its anchors is stored apart, in the query's `Shape`: few rows need it.

use super::access::{Access, Row};
use crate::ids::ConditionId;
use crate::segment::format::NONE;
use crate::segment::format::columns::{Columns, View};
use crate::tuning::COPIED_ROWS;
use crate::util::bitset::set_bit;

/// The most positives and the most anchors of a simple row.
pub const MOST_SIMPLE: usize = 3;

pub type Narrow = [u32; 4];
pub type Wide = [u32; 8];

/// Writes simple rows, which come sorted by access test. `ids` holds the tests of all rows.
pub(super) fn write_simple(rows: &[Row], ids: &[u32], conditions: usize, columns: &mut Columns) {
    if rows.is_empty() {
        return;
    }
    columns.copied = vec![0; columns.direct.len()];
    columns.condition_narrow = vec![NONE; conditions + 1];
    columns.condition_wide = vec![NONE; conditions + 1];
    for filed in rows.chunk_by(|a, b| a.access == b.access) {
        let Access::Condition(condition) = filed[0].access else {
            unreachable!("simple rows are filed under conditions");
        };
        let bits = if filed.len() <= COPIED_ROWS { &mut columns.copied } else { &mut columns.direct };
        set_bit(bits, condition.index());
        columns.condition_narrow[condition.index()] = columns.narrow.len() as u32;
        columns.condition_wide[condition.index()] = columns.wide.len() as u32;
        for row in filed {
            let ids = &ids[row.ids as usize..];
            match row.form {
                0 => columns.narrow.push([ids[0], ids[1], condition.0, row.query.0]),
                _ => {
                    let tests = [ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], condition.0, row.query.0];
                    columns.wide.push(tests);
                }
            }
        }
    }
    fill_backwards(&mut columns.condition_narrow, columns.narrow.len() as u32);
    fill_backwards(&mut columns.condition_wide, columns.wide.len() as u32);
}

/// Replaces each missing start by the next one: an empty list.
pub(super) fn fill_backwards(starts: &mut [u32], end: u32) {
    let mut next = end;
    for start in starts.iter_mut().rev() {
        if *start == NONE {
            *start = next;
        }
        next = *start;
    }
}

impl<'a> View<'a> {
    /// The narrow rows filed under a condition.
    #[inline]
    pub fn narrow_rows(&self, condition: ConditionId) -> &'a [Narrow] {
        let starts = &self.condition_narrow[condition.index()..][..2];
        &self.narrow[starts[0] as usize..starts[1] as usize]
    }

    /// The wide rows filed under a condition.
    #[inline]
    pub fn wide_rows(&self, condition: ConditionId) -> &'a [Wide] {
        let starts = &self.condition_wide[condition.index()..][..2];
        &self.wide[starts[0] as usize..starts[1] as usize]
    }
}
