//! Shards: writing them, placing queries, and the shards that messages visit.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{LargeListBuilder, LargeStringBuilder, UInt32Builder, UInt64Builder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::NamespacesArg;
use super::arrow::Exported;
use super::error::raise_generation_error;
use super::subscriptions::Subscriptions;
use super::tables::record_batch;
use crate::engine::generation::Generation;
use crate::engine::shards::{Placement, RouteWork, ShardSet, place};
use crate::engine::snapshot::{self, ShardName};
use crate::error::GenerationError;
use crate::query::parse;

/// One row per message: the shards that it visits, and how many values were looked up. No shards for a bad message.
#[derive(Default)]
pub struct VisitRows {
    shards: LargeListBuilder<UInt32Builder>,
    probes: UInt32Builder,
    rows: usize,
}

impl VisitRows {
    pub fn push(&mut self, shards: &ShardSet, work: RouteWork) {
        self.shards.append_value(shards.iter().map(Some));
        self.probes.append_value(work.probes);
        self.rows += 1;
    }

    pub fn push_none(&mut self) {
        self.shards.append_value([]);
        self.probes.append_value(0);
        self.rows += 1;
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn finish(mut self) -> Exported {
        let columns = [
            ("shards", Arc::new(self.shards.finish()) as _, false),
            ("probes", Arc::new(self.probes.finish()) as _, false),
        ];
        record_batch(columns, []).into()
    }
}

/// The targets of a generation, each with its tenant and the canonical text of its query.
pub fn rows(generation: &Generation) -> Result<Exported, GenerationError> {
    let (mut targets, mut tenants) = (UInt64Builder::new(), LargeStringBuilder::new());
    let mut queries = LargeStringBuilder::new();
    for part in generation.parts() {
        for query in part.segment.view().all_queries() {
            for target in part.targets(query) {
                targets.append_value(target);
                tenants.append_value(part.tenant_of(query));
                queries.append_value(part.segment.text(query)?);
            }
        }
    }
    let columns = [
        ("target", Arc::new(targets.finish()) as _, false),
        ("tenant", Arc::new(tenants.finish()) as _, false),
        ("query", Arc::new(queries.finish()) as _, false),
    ];
    Ok(record_batch(columns, []).into())
}

/// The place of each query among all, as two numbers; a query that is refused has the first one.
#[pyfunction]
pub fn place_queries(
    py: Python<'_>,
    subscriptions: Subscriptions,
    namespaces: Vec<NamespacesArg>,
    placement: &str,
) -> PyResult<Exported> {
    let placement = match placement {
        "hash" => Placement::Hash,
        "test" => Placement::Test,
        other => return Err(PyValueError::new_err(format!("there is no placement {other:?}"))),
    };
    let rows = subscriptions.rows(&namespaces)?;
    let columns = py.detach(|| {
        let (mut high, mut low) = (UInt64Builder::new(), UInt64Builder::new());
        for row in rows {
            let placed = parse(row.query, row.namespaces).map(|query| place(&query, row.tenant, placement));
            let placed = placed.unwrap_or_default();
            high.append_value((placed >> 64) as u64);
            low.append_value(placed as u64);
        }
        [("high", Arc::new(high.finish()) as _, false), ("low", Arc::new(low.finish()) as _, false)]
    });
    Ok(record_batch(columns, []).into())
}

/// Writes the routing index of shards; the names of its files, and of shards whose summary is damaged.
#[pyfunction]
pub fn write_routing(
    py: Python<'_>,
    directory: PathBuf,
    shards: Vec<ShardName>,
    key_bits: u32,
) -> PyResult<((String, String), Vec<String>)> {
    py.detach(|| snapshot::write_routing(&directory, &shards, key_bits))
        .map_err(|error| raise_generation_error(py, &error))
}

/// Writes the manifest of a generation of shards.
#[pyfunction]
pub fn write_shards(
    py: Python<'_>,
    directory: PathBuf,
    number: u64,
    shards: Vec<ShardName>,
    removed: Vec<u64>,
    routing: Option<(String, String)>,
) -> PyResult<()> {
    py.detach(|| snapshot::write_shards(&directory, number, &shards, &removed, routing.as_ref()))
        .map_err(|error| raise_generation_error(py, &error))
}

/// The names of the files of a shard.
#[pyfunction]
pub fn shard_files(py: Python<'_>, directory: PathBuf, name: &str) -> PyResult<Vec<String>> {
    snapshot::shard_files(&directory, name).map_err(|error| raise_generation_error(py, &error))
}
