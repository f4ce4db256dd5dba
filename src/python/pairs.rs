//! Lists of numbers from Arrow: query numbers of a result, and the targets to verify on each message.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, LargeListArray};
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrow::import_array;

/// Imports lists whose items have this type.
pub fn import_lists(given: &Bound<'_, PyAny>, item_type: &DataType, what: &str) -> PyResult<LargeListArray> {
    let lists = import_array(given, |found| match &found {
        DataType::LargeList(item) if item.data_type() == item_type => Ok(found),
        other => Err(PyValueError::new_err(format!("{what}, not {other}"))),
    })?;
    Ok(LargeListArray::from(lists))
}

/// For each message, targets whose queries are to be verified on it.
pub struct Pairs(LargeListArray);

impl Pairs {
    /// Lists for so many messages.
    pub fn import(given: &Bound<'_, PyAny>, messages: usize) -> PyResult<Pairs> {
        let lists = import_lists(given, &DataType::UInt64, "pairs are large lists of targets as uint64")?;
        if lists.len() != messages {
            let reason = format!("there are {} lists of targets for {messages} messages", lists.len());
            return Err(PyValueError::new_err(reason));
        }
        Ok(Pairs(lists))
    }

    /// The targets for each message; none for a null.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        let targets = self.0.values().as_primitive::<UInt64Type>().values();
        let offsets = self.0.value_offsets();
        (0..self.0.len()).map(move |row| match self.0.is_valid(row) {
            true => &targets[offsets[row] as usize..offsets[row + 1] as usize],
            false => &[],
        })
    }
}
