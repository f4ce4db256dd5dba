//! Arrow data in and out, by the C data interface: C structs in PyCapsules, as the methods `__arrow_c_array__`
//! and `__arrow_c_stream__` hand them over. Buffers are shared, not copied.
//!
//! The structs give addresses without lengths. `import` therefore trusts the producer that buffers are as
//! long as the array's type, length and offsets say. Everything else it checks before a value is read: types,
//! offsets (in order and within their buffer), null counts and UTF-8. That is O(rows), and O(bytes) for strings.

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_data::{ArrayData, layout};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Imports the arrays of an object that implements Arrow's PyCapsule protocol: one of an array, all of a stream.
///
/// `read_as` refuses their type, or returns the type to read them as: the same one, or one of equal layout
/// (strings as bytes, which need not be UTF-8).
pub fn import(
    producer: &Bound<'_, PyAny>,
    read_as: impl FnOnce(DataType) -> PyResult<DataType>,
) -> PyResult<Vec<ArrayData>> {
    match producer.hasattr(intern!(producer.py(), "__arrow_c_array__"))? {
        true => Ok(vec![import_array(producer, read_as)?]),
        false => import_stream(producer, read_as),
    }
}

/// Imports one array; `read_as` as in `import`.
pub fn import_array(
    producer: &Bound<'_, PyAny>,
    read_as: impl FnOnce(DataType) -> PyResult<DataType>,
) -> PyResult<ArrayData> {
    type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);
    let capsules = producer.call_method0(intern!(producer.py(), "__arrow_c_array__"))?;
    let (schema_capsule, array_capsule) = capsules.extract::<Capsules>()?;
    let schema_pointer = schema_capsule.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array_pointer = array_capsule.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of this name holds an initialised ArrowSchema; `schema_capsule` keeps it alive for as
    // long as the reference is used, and nothing moves out of it meanwhile.
    let schema = unsafe { schema_pointer.as_ref() };
    // SAFETY: a capsule of this name holds an initialised ArrowArray, and the interpreter's lock makes us
    // its only user. It is moved out, which leaves a released array in the capsule.
    let array = unsafe { FFI_ArrowArray::from_raw(array_pointer.as_ptr()) };
    if array.is_released() {
        return Err(consumed());
    }
    validate(array, data_type(schema, read_as)?)
}

fn import_stream(
    producer: &Bound<'_, PyAny>,
    read_as: impl FnOnce(DataType) -> PyResult<DataType>,
) -> PyResult<Vec<ArrayData>> {
    let capsule = producer.call_method0(intern!(producer.py(), "__arrow_c_stream__"))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an initialised ArrowArrayStream, and the interpreter's lock makes
    // us its only user. It is moved out, which leaves a released stream in the capsule.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(consumed());
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: a stream that is not released may be called; it writes to `schema` only.
    if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
        return Err(stream_error(&mut stream));
    }
    let data_type = data_type(&schema, read_as)?;
    let mut arrays = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: a stream that is not released may be called; it writes to `array` only.
        if unsafe { get_next(&mut stream, &mut array) } != 0 {
            return Err(stream_error(&mut stream));
        }
        if array.is_released() {
            return Ok(arrays);
        }
        arrays.push(validate(array, data_type.clone())?);
    }
}

fn data_type(
    schema: &FFI_ArrowSchema,
    read_as: impl FnOnce(DataType) -> PyResult<DataType>,
) -> PyResult<DataType> {
    if schema.release.is_none() {
        return Err(consumed());
    }
    let given = DataType::try_from(schema).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let expected = layout(&given);
    let data_type = read_as(given)?;
    assert_eq!(layout(&data_type), expected, "an array is read as a type of equal layout");
    Ok(data_type)
}

/// An array of a type that `data_type` returned.
fn validate(array: FFI_ArrowArray, data_type: DataType) -> PyResult<ArrayData> {
    if array.is_empty() {
        // An empty slice may keep an offset into buffers that `from_ffi_and_data_type` takes to be empty.
        return Ok(ArrayData::new_empty(&data_type));
    }
    // SAFETY: the producer guarantees buffers of the layout that its schema states, and `data_type` has the
    // same layout. The content of the buffers is validated below, before a value is read.
    let data = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(damaged)?;
    data.validate_data().map_err(damaged)?;
    Ok(data)
}

fn stream_error(stream: &mut FFI_ArrowArrayStream) -> PyErr {
    // SAFETY: the stream is not released, and its last call failed: then its producer has an error text.
    let text = stream.get_last_error.map(|get_last_error| unsafe { get_last_error(stream) });
    let text = text.filter(|text| !text.is_null()).map_or_else(String::new, |text| {
        // SAFETY: the producer keeps the text, which ends in a zero byte, until the next call.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    });
    PyValueError::new_err(format!("the Arrow stream failed: {text}"))
}

fn consumed() -> PyErr {
    PyValueError::new_err("the Arrow data has been consumed before")
}

/// A record batch, which is an array of structs. `column` validates the values of a column.
pub struct Columns(ArrayData);

impl Columns {
    /// The record batches of a table.
    pub fn import(table: &Bound<'_, PyAny>) -> PyResult<Vec<Columns>> {
        let batches = import(table, |given| match given {
            DataType::Struct(_) => Ok(given),
            other => Err(PyTypeError::new_err(format!("a table is expected, not {other}"))),
        })?;
        Ok(batches.into_iter().map(Columns).collect())
    }

    /// The column of a name, if there is one.
    pub fn column(&self, name: &str) -> PyResult<Option<ArrayRef>> {
        let DataType::Struct(fields) = self.0.data_type() else { return Ok(None) };
        let Some((place, _)) = fields.find(name) else { return Ok(None) };
        let column = self.0.child_data()[place].slice(self.0.offset(), self.0.len());
        column.validate_full().map_err(damaged)?;
        Ok(Some(arrow_array::make_array(column)))
    }
}

fn damaged(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow array is damaged: {error}"))
}

/// An array for Python: `pyarrow.array` and `pyarrow.record_batch` import it.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct Exported {
    field: Field,
    data: ArrayData,
}

#[pymethods]
impl Exported {
    /// The schema's capsule and the array's. The protocol lets a producer ignore `requested_schema`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let schema = FFI_ArrowSchema::try_from(&self.field).map_err(damaged)?;
        let array = FFI_ArrowArray::new(&self.data);
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

impl From<ArrayRef> for Exported {
    fn from(array: ArrayRef) -> Exported {
        Exported { field: Field::new("", array.data_type().clone(), true), data: array.to_data() }
    }
}

impl From<RecordBatch> for Exported {
    fn from(batch: RecordBatch) -> Exported {
        let metadata = batch.schema().metadata().clone();
        let rows = StructArray::from(batch);
        let field = Field::new("", rows.data_type().clone(), false).with_metadata(metadata);
        Exported { field, data: rows.to_data() }
    }
}
