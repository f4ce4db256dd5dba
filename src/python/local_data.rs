//! The class `Data`: records that queries join with messages.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments::LimitsArg;
use super::error::raise_read;
use super::messages::Messages;
use crate::data::{DataSet, DataSets, TenantData};
use crate::engine::generation::Generation;
use crate::engine::local_data::cause_of_failure;
use crate::error::ReadError;
use crate::ids::GenerationQuery;

#[pyclass(frozen, module = "tamis._kernel")]
pub struct Data(pub Arc<DataSet>);

#[pymethods]
impl Data {
    /// Reads records, each a document.
    #[new]
    fn new(py: Python<'_>, records: Messages, limits: LimitsArg) -> PyResult<Data> {
        let limits = records.limits(limits);
        let read = py.detach(|| DataSet::read(records.or_empty().map(|record| record.bytes), &limits));
        match read {
            Ok(set) => Ok(Data(Arc::new(set))),
            Err((record, error)) => {
                let error = records.error_at(record, error);
                let reason = format!("record {}: {}", record + 1, error.reason);
                Err(raise_read(py, &ReadError { reason, ..error }))
            }
        }
    }

    /// The number of records.
    #[getter]
    fn records(&self) -> usize {
        self.0.records.len()
    }
}

/// Code and reason of a failure.
pub type Cause = (&'static str, String);

/// Why queries failed, if local data is the cause.
pub fn cause_of(failed: &[GenerationQuery], generation: &Generation, tenant: &str) -> Option<Cause> {
    let cause = failed.iter().find_map(|query| cause_of_failure(*query, generation, tenant))?;
    Some((cause.code, cause.reason))
}

/// Data of tenants, by tenant and name.
pub type GivenData<'py> = Vec<(String, String, Bound<'py, Data>)>;

/// Data sets by tenant and name.
pub fn tenant_data(given: &GivenData<'_>) -> TenantData {
    let add = |data: TenantData, (tenant, name, set): &(String, String, Bound<'_, Data>)| {
        data.with(tenant, name, set.get().0.clone())
    };
    given.iter().fold(TenantData::default(), add)
}

/// Data sets by their names.
pub fn data_sets(given: &[(String, Py<Data>)]) -> DataSets {
    given.iter().fold(DataSets::default(), |sets, (name, data)| sets.with(name, data.get().0.clone()))
}
