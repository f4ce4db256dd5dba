//! The classes of local data: records that queries join with messages, in memory or in files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::LimitsArg;
use super::error::{raise_data, raise_read};
use super::messages::Messages;
use crate::data::{Change, DataBuilder, DataSet, DataSets, Selection, TenantData, ValuePath, shown};
use crate::engine::data_files;
use crate::engine::generation::Generation;
use crate::engine::local_data::cause_of_failure;
use crate::error::{DataError, ReadError};
use crate::ids::GenerationQuery;
use crate::limits::Limits;

#[pyclass(frozen, module = "tamis._kernel")]
pub struct Data {
    pub set: Arc<DataSet>,
    selection: Selection,
}

#[pymethods]
impl Data {
    /// Reads records, each a document, into memory.
    #[new]
    fn new(py: Python<'_>, records: Messages, limits: LimitsArg) -> PyResult<Data> {
        let limits = records.limits(limits);
        let read = py.detach(|| DataSet::read(records.or_empty().map(|record| record.bytes), &limits));
        match read {
            Ok(set) => Ok(Data { set: Arc::new(set), selection: Selection::default() }),
            Err((record, error)) => {
                let error = records.error_at(record, error);
                let reason = format!("record {}: {}", record + 1, error.reason);
                Err(raise_read(py, &ReadError { reason, ..error }))
            }
        }
    }

    /// Opens a version that is stored in files.
    #[staticmethod]
    fn open(py: Python<'_>, directory: PathBuf, manifest: &str) -> PyResult<Data> {
        let opened = py.detach(|| data_files::open(&directory, manifest));
        let (set, selection) = opened.map_err(|error| raise_data(py, &error))?;
        Ok(Data { set: Arc::new(set), selection })
    }

    /// The number of records.
    #[getter]
    fn records(&self) -> usize {
        self.set.len()
    }

    /// The path of the record key.
    #[getter]
    fn key(&self) -> Option<&str> {
        self.selection.key.as_ref().map(ValuePath::text)
    }

    /// The paths whose values are indexed; all, if none are named.
    #[getter]
    fn indexed(&self) -> Option<Vec<&str>> {
        self.selection.indexed.as_ref().map(|indexed| indexed.iter().map(ValuePath::text).collect())
    }

    /// The places of some records, in their order: `count` of them, of those after a place.
    fn places(&self, py: Python<'_>, after: Option<u32>, count: usize) -> Vec<u32> {
        let is_after = |place: &u32| after.is_none_or(|after| *place > after);
        py.detach(|| self.set.places().skip_while(|place| !is_after(place)).take(count).collect())
    }

    /// The bytes of records, by their places.
    fn read<'py>(&self, py: Python<'py>, places: Vec<u32>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.set.check_size().map_err(|error| raise_data(py, &error))?;
        let record = |place| self.set.record(place).map_or(&b""[..], |(record, _)| record);
        Ok(places.into_iter().map(|place| PyBytes::new(py, record(place))).collect())
    }
}

/// The manifest; files with their sizes; records, segments, and stored records that are replaced or removed.
pub type Files = (String, Vec<(String, u64)>, usize, usize, usize);

/// Records of a new version, chunk by chunk.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct DataWriter {
    /// None once it is finished. Keys with the numbers of their records.
    state: Mutex<Option<DataBuilder>>,
}

#[pymethods]
impl DataWriter {
    #[new]
    fn new(
        py: Python<'_>,
        key: Option<&str>,
        indexed: Option<Vec<String>>,
        limits: LimitsArg,
    ) -> PyResult<DataWriter> {
        let path = |text: &str| ValuePath::parse(text).ok_or_else(|| raise_data(py, &no_path(text)));
        let key = key.map(path).transpose()?;
        let named = |named: Vec<String>| named.iter().map(|text| path(text)).collect::<PyResult<Vec<_>>>();
        let indexed = indexed.map(named).transpose()?;
        let builder = DataBuilder::new(Selection { key, indexed }, limits.0);
        Ok(DataWriter { state: Mutex::new(Some(builder)) })
    }

    /// Appends records.
    fn add(&self, py: Python<'_>, records: Messages) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let builder = state.as_mut().ok_or_else(finished)?;
        let added = py.detach(|| records.or_empty().try_for_each(|record| builder.add_last(record.bytes)));
        added.map_err(|error| raise_data(py, &error))
    }

    /// Writes the version.
    fn finish(&self, py: Python<'_>, directory: PathBuf) -> PyResult<Files> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let builder = state.take().ok_or_else(finished)?;
        let written = py.detach(|| data_files::write(builder, &directory));
        written.map(files).map_err(|error| raise_data(py, &error))
    }
}

/// Records of a version that are replaced, added and removed.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct DataChange {
    directory: PathBuf,
    state: Mutex<Option<Change>>,
}

#[pymethods]
impl DataChange {
    #[new]
    fn new(py: Python<'_>, directory: PathBuf, base: &str, limits: LimitsArg) -> PyResult<DataChange> {
        let change = py.detach(|| data_files::begin_change(&directory, base, limits.0));
        let change = change.map_err(|error| raise_data(py, &error))?;
        Ok(DataChange { directory, state: Mutex::new(Some(change)) })
    }

    fn upsert(&self, py: Python<'_>, records: Messages) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let change = state.as_mut().ok_or_else(finished)?;
        let done = py.detach(|| records.or_empty().try_for_each(|record| change.upsert(record.bytes)));
        done.map_err(|error| raise_data(py, &error))
    }

    fn remove(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let change = state.as_mut().ok_or_else(finished)?;
        let done = py.detach(|| keys.iter().try_for_each(|key| change.remove(key.as_bytes())));
        done.map_err(|error| raise_data(py, &error))
    }

    /// Writes the version.
    fn finish(&self, py: Python<'_>) -> PyResult<Files> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let change = state.take().ok_or_else(finished)?;
        let written = py.detach(|| data_files::write_change(change, &self.directory));
        written.map(files).map_err(|error| raise_data(py, &error))
    }
}

/// Writes a version of any format anew.
pub fn rebuild(py: Python<'_>, directory: PathBuf, manifest: &str, limits: Limits) -> PyResult<Files> {
    let written = py.detach(|| data_files::rebuild(&directory, manifest, limits));
    written.map(files).map_err(|error| raise_data(py, &error))
}

fn files(files: data_files::DataFiles) -> Files {
    (files.manifest, files.files, files.records, files.segments, files.removed)
}

fn finished() -> PyErr {
    PyValueError::new_err("the version is written")
}

fn no_path(text: &str) -> DataError {
    let reason = format!(
        "{} is no path of names to a value, such as /row/id or /company/@symbol",
        shown(text.as_bytes())
    );
    DataError::new("bad-key-path", reason)
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
        data.with(tenant, name, set.get().set.clone())
    };
    given.iter().fold(TenantData::default(), add)
}

/// Data sets by their names.
pub fn data_sets(given: &[(String, Py<Data>)]) -> DataSets {
    given.iter().fold(DataSets::default(), |sets, (name, data)| sets.with(name, data.get().set.clone()))
}
