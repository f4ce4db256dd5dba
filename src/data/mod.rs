//! Local data: records that stay, and that queries join with messages.
//!
//! A record is a document, read by the same reader as a message. All records of a data set share a vocabulary, and an
//! index finds the records that have a value at the end of a path:
//!
//! ```text
//! record 0   <company symbol="IBM"><name>Big</name></company>
//! record 1   <company symbol="SAP"><name>Soft</name></company>
//! index      (company/@symbol, 'SAP') → 1    (company/name, 'Big') → 0    …
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | `DataSet`: the records of one name; `DataSets`: those that queries may name |
//! | `node.rs` | `Node`: a node of the message or of a record |
//! | `tenants.rs` | `TenantData`: the data sets of each tenant |
//! | `key_index.rs` | `KeyIndex`: (leaf path, value) → records |

mod key_index;
mod node;
mod tenants;

use std::sync::Arc;

pub use key_index::{Key, KeyIndex, KeyStep, KeyTest, LeafPath};
pub use node::{Node, TreeId};
pub use tenants::TenantData;

use crate::document::{Capacity, Document, Reader, Vocabulary};
use crate::error::ReadError;
use crate::limits::Limits;

/// The records of one name, which never change.
pub struct DataSet {
    pub records: Vec<Document>,
    pub index: KeyIndex,
    vocabulary: Vocabulary,
}

impl DataSet {
    /// Reads records; an error tells the number of the record that is refused.
    pub fn read<'r>(
        records: impl Iterator<Item = &'r [u8]>,
        limits: &Limits,
    ) -> Result<DataSet, (usize, ReadError)> {
        // The ids of a name and of a path must be the same in all records.
        let capacity = Capacity { names: usize::MAX, tag_paths: usize::MAX, bytes: usize::MAX };
        let mut reader = Reader::with_vocabulary(Vocabulary::with_capacity(capacity));
        let mut documents = Vec::new();
        for (number, record) in records.enumerate() {
            let mut document = Document::default();
            reader.read(record, limits, &mut document).map_err(|error| (number, error))?;
            document.shrink();
            documents.push(document);
        }
        let index = KeyIndex::of(&documents);
        Ok(DataSet { records: documents, index, vocabulary: reader.into_vocabulary() })
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

/// The data sets that queries may name, by name.
#[derive(Clone, Default)]
pub struct DataSets {
    sets: Vec<(Box<str>, Arc<DataSet>)>,
}

impl DataSets {
    /// The same with a data set added, or replaced if its name is there.
    pub fn with(&self, name: &str, set: Arc<DataSet>) -> DataSets {
        let mut sets = self.without(name).sets;
        let place = sets.partition_point(|(known, _)| **known < *name);
        sets.insert(place, (name.into(), set));
        DataSets { sets }
    }

    /// The same without a data set.
    pub fn without(&self, name: &str) -> DataSets {
        let others = self.sets.iter().filter(|(known, _)| **known != *name);
        DataSets { sets: others.cloned().collect() }
    }

    /// The place of a name.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.sets.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()
    }

    pub fn at(&self, place: usize) -> &DataSet {
        &self.sets[place].1
    }

    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|(name, _)| &**name)
    }

    /// Whether these are the same data sets under the same names.
    pub fn is_same(&self, other: &DataSets) -> bool {
        let same = |(one, other): (&(Box<str>, Arc<DataSet>), &(Box<str>, Arc<DataSet>))| {
            one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1)
        };
        self.sets.len() == other.sets.len() && self.sets.iter().zip(&other.sets).all(same)
    }

    /// The record of a tree; `None` for the message.
    pub fn record(&self, tree: TreeId) -> Option<&Document> {
        let (set, record) = tree.record()?;
        Some(&self.at(set).records[record])
    }
}
