//! Matches → a table; query numbers of matches → targets.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeListArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::error::ErrorColumns;
use super::tables::record_batch;
use crate::engine::generation::Generation;
use crate::engine::matcher::Matches;
use crate::error::ReadError;
use crate::matching::work::Work;

/// For each list of query numbers, the targets of these queries, ascending.
pub fn expand_targets(generation: &Generation, lists: &LargeListArray) -> ArrayRef {
    let mut offsets = vec![0];
    let mut targets = Vec::new();
    for row in 0..lists.len() {
        if lists.is_valid(row) {
            let numbers = lists.value(row);
            let numbers = numbers.as_any().downcast_ref::<UInt32Array>();
            if let Some(numbers) = numbers {
                targets.extend(generation.targets_of(bytemuck::cast_slice(numbers.values())));
            }
        }
        offsets.push(targets.len() as i64);
    }
    let item = Arc::new(Field::new("item", DataType::UInt64, false));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Arc::new(LargeListArray::new(item, offsets, Arc::new(UInt64Array::from(targets)), None))
}

/// One row per message: numbers of matching queries, of queries that exceeded the work limit, the work of each stage,
/// the number of skipped entities, or the error.
pub struct MatchRows {
    offsets: Vec<i64>,
    queries: Vec<u32>,
    failed_offsets: Vec<i64>,
    failed: Vec<u32>,
    work: Vec<Work>,
    skipped_entities: Vec<u32>,
    errors: ErrorColumns,
}

impl MatchRows {
    pub fn new(messages: usize) -> MatchRows {
        let mut offsets = Vec::with_capacity(messages + 1);
        offsets.push(0);
        MatchRows {
            failed_offsets: offsets.clone(),
            offsets,
            queries: Vec::new(),
            failed: Vec::new(),
            work: Vec::with_capacity(messages),
            skipped_entities: Vec::with_capacity(messages),
            errors: ErrorColumns::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.work.len()
    }

    pub fn push(&mut self, matches: &Matches) {
        self.queries.extend_from_slice(bytemuck::cast_slice(&matches.queries));
        self.offsets.push(self.queries.len() as i64);
        self.failed.extend_from_slice(bytemuck::cast_slice(&matches.failed));
        self.failed_offsets.push(self.failed.len() as i64);
        self.work.push(matches.work);
        self.skipped_entities.push(matches.skipped_entities);
        self.errors.succeed(1);
    }

    pub fn fail(&mut self, error: &ReadError) {
        self.offsets.push(self.queries.len() as i64);
        self.failed_offsets.push(self.failed.len() as i64);
        self.work.push(Work::default());
        self.skipped_entities.push(0);
        self.errors.fail(error);
    }

    pub fn finish(self, generation: u64) -> RecordBatch {
        let candidates = self.work.iter().map(|work| work.candidates.min(u64::from(u32::MAX)) as u32);
        let work = |of: fn(&Work) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(self.work.iter().map(of)))
        };
        let mut columns = vec![
            ("queries", lists(self.offsets, self.queries), false),
            ("failed", lists(self.failed_offsets, self.failed), false),
            ("candidates", Arc::new(UInt32Array::from_iter_values(candidates)) as ArrayRef, false),
            ("settled", work(|work| work.settled), false),
            ("verified", work(|work| work.verified), false),
            ("steps", work(|work| work.steps), false),
            ("looked_up", work(|work| work.looked_up), false),
            ("probes", work(|work| work.probes), false),
            ("records", work(|work| work.records), false),
            ("uncached", work(|work| work.uncached), false),
            ("skipped_entities", Arc::new(UInt32Array::from(self.skipped_entities)), false),
        ];
        columns.extend(self.errors.finish());
        record_batch(columns, [("generation", generation.to_string())])
    }
}

fn lists(offsets: Vec<i64>, numbers: Vec<u32>) -> ArrayRef {
    let item = Arc::new(Field::new("item", DataType::UInt32, false));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Arc::new(LargeListArray::new(item, offsets, Arc::new(UInt32Array::from(numbers)), None))
}
