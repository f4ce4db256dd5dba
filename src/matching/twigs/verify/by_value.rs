//! The elements of a document by a value that an attribute or a child of theirs has: put in order once
//! so much was walked in vain that it pays.

use std::hash::Hasher;
use std::ops::Range;

use rustc_hash::FxHasher;

use crate::document::{Document, NodeRef};
use crate::ids::{ElementId, NameId};
use crate::query::number::number;
use crate::tuning::{VALUE_HASH_BYTES, VALUE_INDEX_SPARE_ENTRIES};

/// What an element is looked up by.
#[derive(Clone, Copy)]
pub struct Key<'k> {
    pub owner: Owner,
    pub name: NameId,
    pub value: Value<'k>,
}

/// What has the value.
#[derive(Clone, Copy, PartialEq)]
pub enum Owner {
    Attribute,
    Child,
}

#[derive(Clone, Copy)]
pub enum Value<'v> {
    Text(&'v [u8]),
    Number(f64),
}

/// Some of the elements, in document order: those that have a value, and perhaps a few others.
pub struct Valued {
    table: usize,
    places: Range<usize>,
}

impl Valued {
    /// How many.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

/// The tables of a document.
pub struct ByValue {
    /// So many elements are walked sooner than they are looked up, and a document's so many times over before
    /// that pays.
    pub few: usize,
    walked: usize,
    /// Of attributes and of children, their texts and their numbers; empty until somebody asks.
    tables: [Vec<Entry>; 4],
    ready: [bool; 4],
}

/// A name, what stands for the value, and the element that has it.
type Entry = (NameId, u64, ElementId);

impl ByValue {
    pub fn new(few: usize) -> ByValue {
        ByValue { few, walked: 0, tables: Default::default(), ready: [false; 4] }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.walked = 0;
        self.ready = [false; 4];
        self.tables
            .iter_mut()
            .filter(|table| table.capacity() > VALUE_INDEX_SPARE_ENTRIES)
            .for_each(|table| *table = Vec::new());
    }

    /// Notes that so many elements were walked.
    pub fn walk(&mut self, elements: usize) {
        self.walked = self.walked.saturating_add(elements);
    }

    /// Whether so much was walked that looking up pays.
    pub fn pays(&self, document: &Document) -> bool {
        self.walked > self.few.saturating_mul(document.elements.len())
    }

    /// The elements that a key leads to.
    pub fn find(&mut self, document: &Document, key: Key<'_>) -> Valued {
        let (kind, value) = match key.value {
            Value::Text(text) => (0, of_text(text)),
            Value::Number(number) => (2, of_number(number)),
        };
        let table = kind + (key.owner == Owner::Child) as usize;
        if !self.ready[table] {
            self.ready[table] = true;
            let of = if kind == 0 { of_text } else { |value: &[u8]| of_number(number(value)) };
            fill(&mut self.tables[table], document, key.owner, of);
        }
        let entries = &self.tables[table];
        let start = entries.partition_point(|&(name, is, _)| (name, is) < (key.name, value));
        let end = start + entries[start..].partition_point(|&(name, is, _)| (name, is) == (key.name, value));
        Valued { table, places: start..end }
    }

    /// The places of those that lie in a range of elements.
    pub fn range(&self, valued: &Valued, (start, end): (u32, u32)) -> (usize, usize) {
        let (first, entries) = (valued.places.start, &self.tables[valued.table][valued.places.clone()]);
        let from = entries.partition_point(|&(_, _, element)| element.0 < start);
        let to = from + entries[from..].partition_point(|&(_, _, element)| element.0 < end);
        (first + from, first + to)
    }

    #[inline]
    pub fn at(&self, valued: &Valued, place: usize) -> ElementId {
        self.tables[valued.table][place].2
    }
}

fn fill(entries: &mut Vec<Entry>, document: &Document, owner: Owner, of: fn(&[u8]) -> u64) {
    entries.clear();
    for element in (0..document.elements.len()).map(ElementId::from) {
        if owner == Owner::Attribute {
            let attributes = document.attributes_of(element).iter();
            entries.extend(attributes.map(|one| (one.name, of(document.value(one)), element)));
        } else {
            let child = document.element(element);
            if child.parent.is_some() {
                entries.push((child.name, of(document.value_of(NodeRef::Element(element))), child.parent));
            }
        }
    }
    entries.sort_unstable();
    entries.dedup();
}

fn of_text(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_usize(text.len());
    hasher.write(&text[..text.len().min(VALUE_HASH_BYTES)]);
    hasher.write(&text[text.len().saturating_sub(VALUE_HASH_BYTES)..]);
    hasher.finish()
}

/// Equal numbers are the same; zero has two forms.
fn of_number(number: f64) -> u64 {
    (number + 0.0).to_bits()
}
