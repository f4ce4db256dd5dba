//! The records that messages met, as documents: a bounded cache of one thread.
//!
//! A record is read when a message meets it first. Documents stay where they are while a message is matched; between
//! messages, a cache that is past its capacity is emptied.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use super::{DataSet, DataSets, TreeId};
use crate::document::{Document, Reader, Vocabulary};
use crate::util::hash::GOLDEN;

/// Bytes of documents that are kept from message to message, for each data set.
const CAPACITY: usize = 16 << 20;
const FIRST_SLOTS: usize = 1 << 12;
/// Slots that a record can be in, of each table.
const PROBES: usize = 4;

/// The records of the data sets that a thread has read.
#[derive(Default)]
pub struct Records {
    sets: Arc<DataSets>,
    documents: Vec<Documents>,
}

/// The records of one data set.
struct Documents {
    set: Arc<DataSet>,
    reader: RefCell<Reader>,
    table: Table,
    bytes: Cell<usize>,
}

/// The place of a record, with its document.
type Slot = (u32, Box<Document>);

/// Records by place: a chain of hash tables, each four times as large as the one before, so that
/// no document moves.
#[derive(Default)]
struct Table {
    slots: Box<[OnceCell<Slot>]>,
    next: OnceCell<Box<Table>>,
}

impl Records {
    pub fn of(sets: &Arc<DataSets>) -> Records {
        let documents = (0..sets.len()).map(|set| Documents::new(sets.shared(set))).collect();
        Records { sets: sets.clone(), documents }
    }

    /// Replaces the data sets. Keeps the documents of those that are the same.
    pub fn attach(&mut self, sets: &Arc<DataSets>) {
        if !Arc::ptr_eq(&self.sets, sets) {
            let mut known = std::mem::take(&mut self.documents);
            for set in (0..sets.len()).map(|set| sets.shared(set)) {
                let place = known.iter().position(|documents| Arc::ptr_eq(&documents.set, set));
                self.documents.push(place.map_or_else(|| Documents::new(set), |at| known.swap_remove(at)));
            }
            self.sets = sets.clone();
        }
    }

    /// Before a message: empties what is past its capacity.
    pub fn renew(&mut self) {
        for documents in &mut self.documents {
            if documents.bytes.get() > CAPACITY {
                documents.table = Table::default();
                documents.bytes.set(0);
            }
        }
    }

    pub fn sets(&self) -> &DataSets {
        &self.sets
    }

    /// The record of a tree; `None` for the message.
    pub fn get(&self, tree: TreeId) -> Option<&Document> {
        let (set, place) = tree.record()?;
        let documents = &self.documents[set];
        Some(documents.table.get(place, &|| documents.read(place)))
    }

    /// The vocabulary of a data set.
    pub fn vocabulary(&self, set: usize) -> &Vocabulary {
        self.documents[set].set.vocabulary()
    }

    /// Reads a record into a document that is used at once: a small record is read as fast as it is found in a cache
    /// that other memory has displaced.
    pub fn read_into(&self, set: usize, place: u32, document: &mut Document) {
        self.documents[set].read_into(place, document);
    }

    /// Reads a record whose bytes are given, of a data set whose records are all read with the same limits.
    pub fn read_bytes_into(&self, set: usize, record: &[u8], document: &mut Document) {
        let Documents { set, reader, .. } = &self.documents[set];
        let limits = set.limits().expect("the same limits");
        let read = reader.borrow_mut().read(record, &limits, document);
        read.expect("a record that was read before: the data is damaged");
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.documents.iter().map(|documents| documents.bytes.get()).sum()
    }
}

impl Documents {
    fn new(set: &Arc<DataSet>) -> Documents {
        // Names have the same ids in a copy of the vocabulary, which has all names of the records.
        let reader = Reader::with_vocabulary(set.vocabulary().clone());
        Documents {
            set: set.clone(),
            reader: RefCell::new(reader),
            table: Table::default(),
            bytes: Cell::new(0),
        }
    }

    fn read(&self, place: u32) -> Document {
        let mut document = Document::default();
        self.read_into(place, &mut document);
        document.shrink();
        self.bytes.set(self.bytes.get() + document.memory());
        document
    }

    fn read_into(&self, place: u32, document: &mut Document) {
        let (record, limits) = self.set.record(place).expect("a record that was found");
        let read = self.reader.borrow_mut().read(record, &limits, document);
        read.expect("a record that was read before: the data is damaged");
    }
}

impl Table {
    fn of(slots: usize) -> Table {
        Table { slots: (0..slots).map(|_| OnceCell::new()).collect(), next: OnceCell::new() }
    }

    fn get(&self, place: u32, read: &impl Fn() -> Document) -> &Document {
        if let Some(mask) = self.slots.len().checked_sub(1) {
            let first = (u64::from(place).wrapping_mul(GOLDEN) >> 32) as usize;
            for at in first..first + PROBES {
                let (known, document) = self.slots[at & mask].get_or_init(|| (place, Box::new(read())));
                if *known == place {
                    return document;
                }
            }
        }
        let slots = (4 * self.slots.len()).max(FIRST_SLOTS);
        self.next.get_or_init(|| Box::new(Table::of(slots))).get(place, read)
    }
}
