//! Files that Python splits into messages: their encoding, and bytes → UTF-8 in chunks.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::raise_read;
use crate::document::charset::{Charset, Decoder, declared_label, detect};
use crate::error::{Position, ReadError};

/// The label of a text's encoding by its first bytes, and the length of its byte order mark.
pub fn detect_encoding(py: Python<'_>, head: &[u8]) -> PyResult<(String, usize)> {
    let detected = detect(head).map_err(|name| unsupported(py, name))?;
    if let Some(detected) = detected {
        return Ok((detected.charset.label(), detected.mark));
    }
    let Some(label) = declared_label(head) else { return Ok((Charset::Utf8.label(), 0)) };
    let charset = Charset::for_label(label).ok_or_else(|| unsupported(py, label))?;
    // What agrees with ASCII so far is not UTF-16: the reader says so.
    let is_utf16 = matches!(charset, Charset::Utf16 | Charset::Utf16Le | Charset::Utf16Be);
    Ok((if is_utf16 { Charset::Utf8 } else { charset }.label(), 0))
}

fn unsupported(py: Python<'_>, name: &str) -> PyErr {
    let reason = format!("the encoding {name} is not supported; send UTF-8 or UTF-16");
    let position = Position { offset: 0, line: 1, column: 1 };
    raise_read(py, &ReadError { code: "unsupported-encoding", reason, position, exceeded: None })
}

/// Decodes a text in chunks, and tells how many of its bytes a part of the UTF-8 form came from.
///
/// The mapping back decodes the bytes a second time, so it costs as much as the decoding itself.
#[pyclass(module = "tamis._kernel")]
pub struct Transcoder {
    decoder: Decoder,
    /// A second decoder, which has read up to `start`.
    behind: Decoder,
    /// Bytes that are not consumed yet: those from `start`.
    bytes: Vec<u8>,
    start: usize,
}

#[pymethods]
impl Transcoder {
    /// For an encoding by its label; UTF-8 needs none.
    #[new]
    fn new(py: Python<'_>, label: &str) -> PyResult<Transcoder> {
        let decoder = || Charset::for_label(label).and_then(Charset::decoder);
        let (Some(decoder), Some(behind)) = (decoder(), decoder()) else {
            return Err(unsupported(py, label));
        };
        Ok(Transcoder { decoder, behind, bytes: Vec::new(), start: 0 })
    }

    /// The UTF-8 form of the next bytes, with U+FFFF for what cannot be decoded: XML does not allow it.
    fn utf8<'py>(&mut self, py: Python<'py>, bytes: &[u8], is_last: bool) -> Bound<'py, PyBytes> {
        self.bytes.extend_from_slice(bytes);
        let mut utf8 = Vec::new();
        py.detach(|| self.decoder.decode_all(bytes, is_last, &mut utf8));
        PyBytes::new(py, &utf8)
    }

    /// How many bytes the next `count` bytes of the UTF-8 form came from.
    fn consume(&mut self, count: usize) -> usize {
        let (mut at, mut decoded) = (self.start, Vec::new());
        while decoded.len() < count && at < self.bytes.len() {
            // A byte becomes four at most, and what the decoder holds back a few more: this never goes too far.
            let safe = ((count - decoded.len()) / 4).saturating_sub(4).clamp(1, self.bytes.len() - at);
            self.behind.decode_all(&self.bytes[at..at + safe], false, &mut decoded);
            at += safe;
        }
        let consumed = at - self.start;
        self.start = at;
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        consumed
    }
}
