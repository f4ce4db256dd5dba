//! The values of a selection, indexed once for all constants that are compared with them: texts in a hash table,
//! numbers sorted.

use crate::document::{Document, NodeRef, Span};
use crate::ids::ElementId;
use crate::query::ast::Operator;
use crate::query::number::number;
use crate::util::hash::mix;

/// A value, as a span of one of the document's buffers.
#[derive(Clone, Copy)]
pub struct Value {
    span: Span,
    /// The span is in `Document::values`, else in `Document::text`.
    is_apart: bool,
}

impl Value {
    /// The string-value of a node.
    #[inline]
    pub fn of(document: &Document, node: NodeRef) -> Value {
        let (span, is_apart) = match node {
            NodeRef::Document => (document.element(ElementId(0)).text, false),
            NodeRef::Element(element) => (document.element(element).text, false),
            NodeRef::Text(text) => (document.texts[text as usize].content, false),
            NodeRef::Attribute(_, attribute) => (document.attributes[attribute as usize].value, true),
            NodeRef::Other(other) => (document.others[other as usize].content, true),
        };
        Value { span, is_apart }
    }

    pub fn bytes(self, document: &Document) -> &[u8] {
        self.span.of(if self.is_apart { &document.values } else { &document.text })
    }
}

/// A chained hash table of texts.
#[derive(Default)]
pub struct TextIndex {
    /// Bound element, value, and the next entry of the same bucket.
    entries: Vec<(ElementId, Value, u32)>,
    /// The first entry of each bucket.
    buckets: Vec<u32>,
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

    /// Memory of its buffers.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(ElementId, Value, u32)>()
            + self.buckets.capacity() * size_of::<u32>()
    }

    /// Builds the table over the values pushed since `clear`.
    pub fn build(&mut self, document: &Document) {
        let buckets = (self.entries.len() * 2).next_power_of_two();
        self.buckets.clear();
        self.buckets.resize(buckets, NONE);
        for at in (0..self.entries.len()).rev() {
            let bucket = hash(self.entries[at].1.bytes(document)) as usize & (buckets - 1);
            self.entries[at].2 = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    /// Appends the bound elements whose values compare with a constant, in the order of pushing.
    pub fn select(
        &self,
        document: &Document,
        operator: Operator,
        constant: &[u8],
        out: &mut impl Extend<ElementId>,
    ) {
        if operator != Operator::Equal {
            let different = self.entries.iter().filter(|(_, value, _)| value.bytes(document) != constant);
            return out.extend(different.map(|entry| entry.0));
        }
        let mut at = self.buckets[hash(constant) as usize & (self.buckets.len() - 1)];
        while let Some(&(bound, value, next)) = self.entries.get(at as usize) {
            if value.bytes(document) == constant {
                out.extend([bound]);
            }
            at = next;
        }
    }
}

/// Hashes a value's length, its first and its last bytes: string-values of nested elements are long and contain each
/// other, so that hashing them whole would cost their depth times the message.
fn hash(value: &[u8]) -> u64 {
    let mut hash = value.len() as u64;
    let ends = [value.first_chunk::<8>(), value.last_chunk::<8>()];
    match ends {
        [Some(first), Some(last)] => {
            hash = mix(hash, u64::from_le_bytes(*first));
            hash = mix(hash, u64::from_le_bytes(*last));
        }
        _ => hash = value.iter().fold(hash, |hash, &byte| mix(hash, byte as u64)),
    }
    hash ^ hash >> 32
}

/// Values as numbers, sorted; NaN is last.
#[derive(Default)]
pub struct NumberIndex {
    entries: Vec<(f64, ElementId)>,
    /// Number of entries before the first NaN.
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

    /// Memory of its buffer.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(f64, ElementId)>()
    }

    /// Sorts the values pushed since `clear`.
    pub fn build(&mut self) {
        let key = |value: f64| (value.is_nan(), value);
        self.entries.sort_by(|one, other| {
            let ((a, x), (b, y)) = (key(one.0), key(other.0));
            a.cmp(&b).then(x.partial_cmp(&y).unwrap_or(std::cmp::Ordering::Equal))
        });
        self.numbers = self.entries.partition_point(|entry| !entry.0.is_nan());
    }

    /// Appends the bound elements whose numbers compare with a constant, in no order.
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
            // NaN differs from every number.
            Operator::NotEqual => {
                take(&numbers[..first]);
                take(&self.entries[after..]);
            }
        }
    }
}
