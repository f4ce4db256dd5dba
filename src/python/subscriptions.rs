//! Subscriptions to load: an Arrow table with the columns `target`, `query` and, optionally, `tenant` and
//! `prefixes`, the place of the row's prefix map in a list of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arguments::NamespacesArg;
use super::arrow::Columns;
use super::error::ErrorTable;
use crate::engine::index::{Refused, Subscription};

/// Borrows rows from Arrow's buffers.
pub struct Subscriptions {
    batches: Vec<Batch>,
}

struct Batch {
    target: ArrayRef,
    query: ArrayRef,
    tenant: Option<ArrayRef>,
    prefixes: Option<ArrayRef>,
}

impl<'py> FromPyObject<'_, 'py> for Subscriptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Subscriptions> {
        let batches = Columns::import(&given)?;
        Ok(Subscriptions { batches: batches.iter().map(checked).collect::<PyResult<_>>()? })
    }
}

impl Subscriptions {
    /// The rows. A row without a place in `namespaces` has the first prefix map.
    pub fn rows<'a>(
        &'a self,
        namespaces: &'a [NamespacesArg],
    ) -> PyResult<impl Iterator<Item = Subscription<'a>> + Clone + Send> {
        let places = self.batches.iter().filter_map(|batch| batch.prefixes.as_ref());
        let last = places.flat_map(|places| places.as_primitive::<UInt32Type>().values()).max();
        if last.map_or(0, |&last| last as usize) >= namespaces.len() {
            return Err(PyValueError::new_err("`prefixes` must be places in the list of prefix maps"));
        }
        Ok(self.batches.iter().flat_map(move |batch| {
            let targets = batch.target.as_primitive::<UInt64Type>();
            let places = batch.prefixes.as_ref().map(|places| places.as_primitive::<UInt32Type>());
            (0..targets.len()).map(move |row| Subscription {
                target: targets.value(row),
                tenant: batch.tenant.as_ref().map_or("", |tenants| text(tenants, row)),
                query: text(&batch.query, row),
                namespaces: &namespaces[places.map_or(0, |places| places.value(row) as usize)].0,
            })
        }))
    }
}

fn checked(columns: &Columns) -> PyResult<Batch> {
    let missing = |name: &str| PyValueError::new_err(format!("the table has no column `{name}`"));
    let target = columns.column("target")?.ok_or_else(|| missing("target"))?;
    let query = columns.column("query")?.ok_or_else(|| missing("query"))?;
    let tenant = columns.column("tenant")?;
    let prefixes = columns.column("prefixes")?;
    if *target.data_type() != DataType::UInt64 || target.null_count() > 0 {
        return Err(PyTypeError::new_err("the column `target` must be uint64 without nulls"));
    }
    if prefixes.as_ref().is_some_and(|given| *given.data_type() != DataType::UInt32 || given.null_count() > 0)
    {
        return Err(PyTypeError::new_err("the column `prefixes` must be uint32 without nulls"));
    }
    for strings in [Some(&query), tenant.as_ref()].into_iter().flatten() {
        if !matches!(strings.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return Err(PyTypeError::new_err("the columns `query` and `tenant` must be strings"));
        }
    }
    Ok(Batch { target, query, tenant, prefixes })
}

/// A string; an empty one for a null. As a query, an empty string is refused.
fn text(strings: &ArrayRef, row: usize) -> &str {
    if strings.is_null(row) {
        return "";
    }
    match strings.data_type() {
        DataType::Utf8 => strings.as_string::<i32>().value(row),
        DataType::LargeUtf8 => strings.as_string::<i64>().value(row),
        _ => strings.as_string_view().value(row),
    }
}

/// The rows that a load refused.
pub fn refusals_of(refused: &[Refused]) -> RecordBatch {
    let mut refusals = ErrorTable::new("row");
    refused.iter().for_each(|refused| refusals.push_query(refused.row, &refused.error));
    refusals.finish()
}
