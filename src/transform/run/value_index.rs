//! The values that comparisons of one kind look at, indexed for the constants that look themselves up.

use crate::document::{Document, Span};
use crate::ids::ElementId;
use crate::query::ast::Operator;
use crate::query::number::number;

/// A value by its place in one of the document's buffers.
#[derive(Clone, Copy)]
pub struct Value {
    pub span: Span,
    /// Whether it lies in `Document::values`, as attributes do, and not in `Document::text`.
    pub of_attribute: bool,
}

impl Value {
    pub fn of(self, document: &Document) -> &[u8] {
        self.span.of(if self.of_attribute { &document.values } else { &document.text })
    }
}

/// TextIndex, in a table by hash; those in one place are linked.
#[derive(Default)]
pub struct TextIndex {
    entries: Vec<(ElementId, Value, u32)>,
    table: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl TextIndex {
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn push(&mut self, bound: ElementId, value: Value) {
        self.entries.push((bound, value, NONE));
    }

    /// Builds the table over what was pushed.
    pub fn index(&mut self, document: &Document) {
        let places = (self.entries.len() * 2).next_power_of_two();
        self.table.clear();
        self.table.resize(places, NONE);
        for at in (0..self.entries.len()).rev() {
            let place = hash(self.entries[at].1.of(document)) as usize & (places - 1);
            self.entries[at].2 = std::mem::replace(&mut self.table[place], at as u32);
        }
    }

    /// Appends the elements bound to values that compare so with a constant, in the order of pushing.
    pub fn select(
        &self,
        document: &Document,
        operator: Operator,
        constant: &[u8],
        out: &mut impl Extend<ElementId>,
    ) {
        if operator != Operator::Equal {
            let other = self.entries.iter().filter(|(_, value, _)| value.of(document) != constant);
            return out.extend(other.map(|entry| entry.0));
        }
        let mut at = self.table[hash(constant) as usize & (self.table.len() - 1)];
        while let Some(&(bound, value, next)) = self.entries.get(at as usize) {
            if value.of(document) == constant {
                out.extend([bound]);
            }
            at = next;
        }
    }
}

/// A hash of a value's length and ends: values may be long and many may contain each other.
fn hash(value: &[u8]) -> u64 {
    let mut hash = value.len() as u64;
    let ends = [value.first_chunk::<8>(), value.last_chunk::<8>()];
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    match ends {
        [Some(first), Some(last)] => {
            hash = mix(hash, u64::from_le_bytes(*first));
            hash = mix(hash, u64::from_le_bytes(*last));
        }
        _ => hash = value.iter().fold(hash, |hash, &byte| mix(hash, byte as u64)),
    }
    hash ^ hash >> 32
}

/// NumberIndex, ascending; those that are none at the end.
#[derive(Default)]
pub struct NumberIndex {
    entries: Vec<(f64, ElementId)>,
    /// How many are numbers.
    numbers: usize,
}

impl NumberIndex {
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn push(&mut self, bound: ElementId, value: &[u8]) {
        self.entries.push((number(value), bound));
    }

    pub fn index(&mut self) {
        let key = |value: f64| (value.is_nan(), value);
        self.entries.sort_by(|one, other| {
            let ((a, x), (b, y)) = (key(one.0), key(other.0));
            a.cmp(&b).then(x.partial_cmp(&y).unwrap_or(std::cmp::Ordering::Equal))
        });
        self.numbers = self.entries.partition_point(|entry| !entry.0.is_nan());
    }

    /// Appends the elements bound to numbers that compare so with a constant, in no order.
    pub fn select(&self, operator: Operator, constant: f64, out: &mut impl Extend<ElementId>) {
        let numbers = &self.entries[..self.numbers];
        if constant.is_nan() {
            if operator == Operator::NotEqual {
                out.extend(self.entries.iter().map(|entry| entry.1));
            }
            return;
        }
        let first = numbers.partition_point(|entry| entry.0 < constant);
        let after = numbers.partition_point(|entry| entry.0 <= constant);
        let mut take = |entries: &[(f64, ElementId)]| out.extend(entries.iter().map(|entry| entry.1));
        match operator {
            Operator::Equal => take(&numbers[first..after]),
            Operator::Less => take(&numbers[..first]),
            Operator::LessOrEqual => take(&numbers[..after]),
            Operator::Greater => take(&numbers[after..]),
            Operator::GreaterOrEqual => take(&numbers[first..]),
            // What is no number differs from every number.
            Operator::NotEqual => {
                take(&numbers[..first]);
                take(&self.entries[after..]);
            }
        }
    }
}
