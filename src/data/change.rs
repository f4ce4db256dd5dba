//! A data set with records replaced, added and removed by key: one more segment, merged with others in tiers.
//!
//! A record that replaces another keeps its place; new ones come last. A segment is merged with the one before it when
//! that is less than `FAN_IN` times as long, so that a record is rewritten a logarithmic number of times.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::builder::{DataBuilder, Selection};
use super::leaf::ValuePath;
use super::segment::{DataSegment, Key};
use super::set::DataSet;
use crate::error::DataError;
use crate::limits::Limits;

const FAN_IN: usize = 4;

pub struct Change {
    base: Arc<DataSet>,
    selection: Selection,
    key: ValuePath,
    limits: Limits,
    /// The new records, and their keys.
    new: DataBuilder,
    /// Place by key, with the number of the new record; none, if the record is removed.
    changed: FxHashMap<Vec<u8>, (u32, Option<u32>)>,
    next_place: u32,
    records: usize,
}

/// What a change makes of a data set.
pub struct Changed {
    pub segment: Arc<DataSegment>,
    pub records: usize,
    pub next_place: u32,
}

impl Change {
    /// A change of data with a record key, in which new records get places from `next_place` on.
    pub fn new(
        base: Arc<DataSet>,
        selection: Selection,
        limits: Limits,
        next_place: u32,
    ) -> Result<Change, DataError> {
        let Some(key) = selection.key.clone() else {
            let reason = "the records have no key to change them by: replace all of them".to_string();
            return Err(DataError::new("no-key", reason));
        };
        let records = base.len();
        let new = keys_only(&key, limits);
        Ok(Change { base, selection, key, limits, new, changed: FxHashMap::default(), next_place, records })
    }

    /// The data set that is changed, what of it is indexed, and the place of its next record.
    pub fn base(&self) -> (Arc<DataSet>, Selection, u32) {
        (self.base.clone(), self.selection.clone(), self.next_place)
    }

    /// Replaces the record that has the same key, or adds one.
    pub fn upsert(&mut self, record: &[u8]) -> Result<(), DataError> {
        let number = self.new.count() as u32;
        self.new.add(number, record).map_err(|error| DataError::of_record(number as usize, &error))?;
        let key = self.new.key().map_err(|error| error.at_record(number as usize))?.to_vec();
        if let Some((_, other)) = self.changed.get(&key) {
            let reason = match other {
                Some(other) => {
                    format!("records {} and {} have the key {}", other + 1, number + 1, shown(&key))
                }
                None => format!("record {} has the key {}, which is removed, too", number + 1, shown(&key)),
            };
            return Err(DataError::new("duplicate-key", reason));
        }
        let place = match self.find(&key)? {
            Some(place) => place,
            None => {
                self.records += 1;
                self.next_place += 1;
                self.next_place - 1
            }
        };
        self.changed.insert(key, (place, Some(number)));
        Ok(())
    }

    /// Removes the record that has a key; without effect if there is none.
    pub fn remove(&mut self, key: &[u8]) -> Result<(), DataError> {
        if let Some((_, Some(number))) = self.changed.get(key) {
            let reason = format!("record {} has the key {}, which is removed, too", number + 1, shown(key));
            return Err(DataError::new("duplicate-key", reason));
        }
        if !self.changed.contains_key(key)
            && let Some(place) = self.find(key)?
        {
            self.records -= 1;
            self.changed.insert(key.to_vec(), (place, None));
        }
        Ok(())
    }

    /// The segment of the change; `None` if it changes nothing.
    pub fn finish(self) -> Result<Option<Changed>, DataError> {
        let mut changed: Vec<(u32, Option<u32>)> = self.changed.into_values().collect();
        if changed.is_empty() {
            return Ok(None);
        }
        changed.sort_unstable();
        let mut builder = DataBuilder::new(self.selection, self.limits);
        for (place, number) in changed {
            match number {
                None => builder.add_removed(place),
                Some(number) => {
                    let added = builder.add(place, self.new.record(number));
                    added.map_err(|error| DataError::of_record(number as usize, &error))?;
                }
            }
        }
        let segment = Arc::new(builder.freeze());
        Ok(Some(Changed { segment, records: self.records, next_place: self.next_place }))
    }

    /// The place of the record that has a key.
    fn find(&self, key: &[u8]) -> Result<Option<u32>, DataError> {
        for place in self.base.places_with(&self.key, Key::Text(key)) {
            let Some((record, limits)) = self.base.record(place) else { continue };
            // The index may find others by a collision of hashes.
            let mut read = keys_only(&self.key, limits);
            read.add(0, record).map_err(|error| DataError::of_record(place as usize, &error))?;
            if read.key()? == key {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

/// A builder that reads keys.
fn keys_only(key: &ValuePath, limits: Limits) -> DataBuilder {
    DataBuilder::new(Selection { key: Some(key.clone()), indexed: Some(Vec::new()) }, limits)
}

/// A key in a message of an error.
pub fn shown(key: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(key).chars().take(100).collect();
    format!("{text:?}")
}

/// Merges the newest segments with those before them, while these are less than `FAN_IN` times as long.
pub fn merge_tiers(
    mut segments: Vec<Arc<DataSegment>>,
    selection: &Selection,
) -> Result<Vec<Arc<DataSegment>>, DataError> {
    while let [.., older, newer] = segments.as_slice()
        && older.places().len() < FAN_IN * newer.places().len()
    {
        older.verify()?;
        newer.verify()?;
        let merged = merged(older, newer, selection, segments.len() == 2)?;
        segments.truncate(segments.len() - 2);
        segments.push(Arc::new(merged));
    }
    Ok(segments)
}

/// Both segments as one. Tombstones are kept unless these are all segments there are.
fn merged(
    older: &DataSegment,
    newer: &DataSegment,
    selection: &Selection,
    are_all: bool,
) -> Result<DataSegment, DataError> {
    let (of_older, of_newer) = (older.limits(), newer.limits());
    let limits = Limits {
        internal_subset: of_older.internal_subset || of_newer.internal_subset,
        skip_unread_entities: of_older.skip_unread_entities || of_newer.skip_unread_entities,
        ..of_newer
    };
    let mut builder = DataBuilder::new(selection.clone(), limits);
    let mut records: Vec<(u32, bool, u32)> = Vec::new();
    for (segment, is_older) in [(newer, false), (older, true)] {
        records.extend(segment.places().iter().zip(0..).map(|(&place, number)| (place, is_older, number)));
    }
    // The newer of the same place comes first.
    records.sort_unstable();
    records.dedup_by_key(|&mut (place, ..)| place);
    for (place, is_older, number) in records {
        let record = if is_older { older.record(number) } else { newer.record(number) };
        match record {
            b"" if are_all => {}
            b"" => builder.add_removed(place),
            record => {
                builder.add(place, record).map_err(|error| DataError::of_record(place as usize, &error))?;
            }
        }
    }
    Ok(builder.freeze())
}
