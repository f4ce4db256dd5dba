//! Columns → record batch.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};

/// A name, the values, and whether they may be null.
pub type Column = (&'static str, ArrayRef, bool);

/// A record batch of columns of equal length, with metadata.
pub fn record_batch(
    columns: impl IntoIterator<Item = Column>,
    metadata: impl IntoIterator<Item = (&'static str, String)>,
) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, array, nullable)| (Field::new(name, array.data_type().clone(), nullable), array))
        .unzip();
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
    RecordBatch::try_new(schema, arrays).expect("the columns of a table have equal lengths")
}
