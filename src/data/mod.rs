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
//! A data set is a log-structured merge tree: segments, the oldest first. A change makes a small segment, and segments
//! are merged in tiers.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | `DataSets`: the data sets that queries may name |
//! | `set.rs` | `DataSet`: the records of one name, from segments |
//! | `segment.rs` | `DataSegment`: records and their index, frozen; the file format |
//! | `builder.rs` | `DataBuilder`: records → a segment |
//! | `change.rs` | a data set with records replaced, added and removed; merging |
//! | `documents.rs` | `Records`: the records that messages met, read on demand |
//! | `leaf.rs` | paths to values of records |
//! | `node.rs` | `Node`: a node of the message or of a record |
//! | `tenants.rs` | `TenantData`: the data sets of each tenant |

mod builder;
mod change;
mod documents;
mod leaf;
mod node;
mod segment;
mod set;
mod tenants;

use std::sync::Arc;

pub use builder::{DataBuilder, Selection};
pub use change::{Change, Changed, merge_tiers, shown};
pub use documents::Records;
pub use leaf::{KeyStep, KeyTest, LeafPath, ValuePath};
pub use node::{Node, TreeId};
pub use segment::{DataSegment, Key, damaged, read_any_format};
pub use set::{DataSet, FoundRecords};
pub use tenants::TenantData;

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

    pub fn shared(&self, place: usize) -> &Arc<DataSet> {
        &self.sets[place].1
    }

    pub fn iter(&self) -> impl Iterator<Item = &DataSet> {
        self.sets.iter().map(|(_, set)| &**set)
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
        let mut pairs = self.sets.iter().zip(&other.sets);
        self.sets.len() == other.sets.len()
            && pairs.all(|((name, set), (known, other))| name == known && Arc::ptr_eq(set, other))
    }
}
