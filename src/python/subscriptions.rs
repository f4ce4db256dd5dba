//! Subscriptions to load: an Arrow table with the columns `target`, `query` and, optionally, `tenant`.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arrow::Columns;

/// Borrows rows (target, tenant, query text) from Arrow's buffers.
pub struct Subscriptions {
    batches: Vec<Batch>,
}

struct Batch {
    target: ArrayRef,
    query: ArrayRef,
    tenant: Option<ArrayRef>,
}

impl<'py> FromPyObject<'_, 'py> for Subscriptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Subscriptions> {
        let batches = Columns::import(&given)?;
        Ok(Subscriptions { batches: batches.iter().map(checked).collect::<PyResult<_>>()? })
    }
}

impl Subscriptions {
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str, &str)> + Clone {
        self.batches.iter().flat_map(|batch| {
            let targets = batch.target.as_primitive::<UInt64Type>();
            (0..targets.len()).map(move |row| {
                let tenant = batch.tenant.as_ref().map_or("", |tenants| text(tenants, row));
                (targets.value(row), tenant, text(&batch.query, row))
            })
        })
    }
}

fn checked(columns: &Columns) -> PyResult<Batch> {
    let missing = |name: &str| PyValueError::new_err(format!("the table has no column `{name}`"));
    let target = columns.column("target")?.ok_or_else(|| missing("target"))?;
    let query = columns.column("query")?.ok_or_else(|| missing("query"))?;
    let tenant = columns.column("tenant")?;
    if *target.data_type() != DataType::UInt64 || target.null_count() > 0 {
        return Err(PyTypeError::new_err("the column `target` must be uint64 without nulls"));
    }
    for strings in [Some(&query), tenant.as_ref()].into_iter().flatten() {
        if !matches!(strings.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return Err(PyTypeError::new_err("the columns `query` and `tenant` must be strings"));
        }
    }
    Ok(Batch { target, query, tenant })
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
