//! An index of the document's elements by the value of an attribute or a child: sorted tables, searched by binary
//! search. A table is built when so many elements were tried in vain that it is worthwhile.

use std::hash::Hasher;
use std::ops::Range;

use rustc_hash::FxHasher;

use crate::document::{Document, NodeRef};
use crate::ids::{ElementId, NameId};
use crate::query::number::number;
use crate::tuning::{VALUE_HASH_BYTES, VALUE_INDEX_SPARE_ENTRIES};

/// The key by which elements are looked up.
#[derive(Clone, Copy)]
pub struct Key<'k> {
    pub owner: Owner,
    pub name: NameId,
    pub value: Value<'k>,
}

/// Which node has the value.
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

/// The elements with a value, in document order. By a collision of hashes others can be among them.
pub struct ElementsWithValue {
    table: usize,
    places: Range<usize>,
}

impl ElementsWithValue {
    /// How many elements.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

/// The tables of a document.
pub struct ElementsByValue {
    /// Up to so many elements are tried one by one, and a table is built when the elements of the document were
    /// tried so many times; see `Tuning`.
    pub scan_elements: usize,
    walked: usize,
    /// How often elements were looked up.
    pub lookups: u64,
    /// Of attributes and of children, their texts and their numbers; empty until needed.
    tables: [Vec<Entry>; 4],
    ready: [bool; 4],
}

/// A name, what stands for the value, and the element that has it.
type Entry = (NameId, u64, ElementId);

impl ElementsByValue {
    pub fn new(scan_elements: usize) -> ElementsByValue {
        ElementsByValue {
            scan_elements,
            walked: 0,
            lookups: 0,
            tables: Default::default(),
            ready: [false; 4],
        }
    }

    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.walked = 0;
        self.lookups = 0;
        self.ready = [false; 4];
        self.tables
            .iter_mut()
            .filter(|table| table.capacity() > VALUE_INDEX_SPARE_ENTRIES)
            .for_each(|table| *table = Vec::new());
    }

    pub fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.capacity() * size_of::<Entry>()).sum()
    }

    /// Counts elements that were tried.
    pub fn count_walked(&mut self, elements: usize) {
        self.walked = self.walked.saturating_add(elements);
    }

    /// Whether so many elements were tried that looking up is worthwhile.
    pub fn is_worthwhile(&self, document: &Document) -> bool {
        self.walked > self.scan_elements.saturating_mul(document.elements.len())
    }

    /// The elements that a key leads to.
    pub fn find(&mut self, document: &Document, key: Key<'_>) -> ElementsWithValue {
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
        ElementsWithValue { table, places: start..end }
    }

    /// The places of those that lie in a range of elements.
    pub fn range(&self, valued: &ElementsWithValue, (start, end): (u32, u32)) -> (usize, usize) {
        let (first, entries) = (valued.places.start, &self.tables[valued.table][valued.places.clone()]);
        let from = entries.partition_point(|&(_, _, element)| element.0 < start);
        let to = from + entries[from..].partition_point(|&(_, _, element)| element.0 < end);
        (first + from, first + to)
    }

    #[inline]
    pub fn at(&self, valued: &ElementsWithValue, place: usize) -> ElementId {
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

/// The bits of a number; both zeros have the same.
fn of_number(number: f64) -> u64 {
    (number + 0.0).to_bits()
}
