//! Arrow tables from columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};

/// A name, the values, and whether there may be nulls among them.
pub type Column = (&'static str, ArrayRef, bool);

/// A table of equally long columns, with notes about the whole.
pub fn record_batch(
    columns: impl IntoIterator<Item = Column>,
    notes: impl IntoIterator<Item = (&'static str, String)>,
) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, array, nullable)| (Field::new(name, array.data_type().clone(), nullable), array))
        .unzip();
    let notes = notes.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    let schema = Arc::new(Schema::new(fields).with_metadata(notes));
    RecordBatch::try_new(schema, arrays).expect("the columns of a table are made row by row")
}
