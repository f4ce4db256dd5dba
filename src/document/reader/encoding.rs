//! The bytes of a message → its UTF-8 form: detect the encoding, check the declaration, decode, validate.
//!
//! ```text
//! FF FE 3C 00 61 00 …                     a byte order mark: UTF-16, decoded at once
//! <?xml encoding="ISO-8859-1"?><a>E9</a>  read as ASCII up to the declaration, then E9 → C3 A9
//! <a>C3 A9</a>                            no declaration: UTF-8, only validated
//! ```

use super::read_error::{ReadResult, exceeded, read_error};
use super::scan::find_control;
use crate::document::charset::{Charset, Decoder, Detected, Legacy, Stop, detect};
use crate::limits::Limits;

/// The form of a message's encoding before its XML declaration is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Bytes that agree with ASCII: the declaration decides, and without one they are UTF-8.
    Bytes,
    /// UTF-8 by a byte order mark, or because the message came as a string.
    Utf8,
    Utf16 {
        marked: bool,
        little_endian: bool,
    },
}

/// The upper bound of every limit in bytes: offsets are 32 bits wide, and a document's buffers may grow to
/// a few times the message and what entities add to it.
pub(super) const MAX_BYTES: usize = 1 << 29;

/// Puts the UTF-8 form of `message` into `source`, without a byte order mark.
///
/// The bytes of `Form::Bytes` are not yet known to be UTF-8: the XML declaration may name another
/// encoding. `agree` decides, and `transcode` follows.
pub(super) fn decode(message: &[u8], limits: &Limits, source: &mut Vec<u8>) -> ReadResult<Form> {
    let limit = limits.document.min(MAX_BYTES);
    if message.len() > limit {
        return Err(exceeded("document-limit", "bytes in the message", message, limit, message.len(), limit));
    }
    if limits.known_utf8 {
        source.extend_from_slice(message.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(message));
        return Ok(Form::Utf8);
    }
    let detected = detect(message).map_err(|name| {
        read_error("unsupported-encoding", format!("{name} is not supported; send UTF-8"), message, 0)
    })?;
    let Some(Detected { charset, mark }) = detected else {
        source.extend_from_slice(message);
        return Ok(Form::Bytes);
    };
    let Some(decoder) = charset.decoder() else {
        source.extend_from_slice(&message[mark..]);
        return Ok(Form::Utf8);
    };
    transcode_to(source, &message[mark..], decoder, limits, "bad-utf16", "not UTF-16: half a character")?;
    Ok(Form::Utf16 { marked: mark > 0, little_endian: charset == Charset::Utf16Le })
}

/// Checks that the `declared` encoding is that of the message. If the message is yet to be decoded, returns from what.
pub(super) fn agree(
    form: Form,
    declared: Option<&str>,
    source: &[u8],
    at: usize,
) -> ReadResult<Option<Legacy>> {
    let Some(name) = declared else {
        return match form {
            Form::Utf16 { marked: false, .. } => {
                let reason = "UTF-16 without a byte order mark must be declared";
                Err(read_error("encoding-mismatch", reason, source, at))
            }
            _ => Ok(None),
        };
    };
    let mismatch = |found: &str, at: usize| {
        let reason = format!("the declared encoding is {name}, but the message is {found}");
        Err(read_error("encoding-mismatch", reason, source, at))
    };
    let (actual, little_endian) = match form {
        Form::Bytes | Form::Utf8 => ("in UTF-8", false),
        Form::Utf16 { little_endian: true, .. } => ("in UTF-16LE", true),
        Form::Utf16 { .. } => ("in UTF-16BE", false),
    };
    match (Charset::for_label(name), form) {
        (Some(Charset::Utf8), Form::Bytes | Form::Utf8) | (Some(Charset::Utf16), Form::Utf16 { .. }) => {
            Ok(None)
        }
        (Some(Charset::Utf16Le), Form::Utf16 { .. }) if little_endian => Ok(None),
        (Some(Charset::Utf16Be), Form::Utf16 { .. }) if !little_endian => Ok(None),
        (Some(Charset::Legacy(legacy)), Form::Bytes) => Ok(Some(legacy)),
        (Some(Charset::Ascii), Form::Bytes) => match first_beyond_ascii(source) {
            None => Ok(None),
            Some(at) => mismatch("not: a byte is above 7F", at),
        },
        // The text says the same in both encodings.
        (Some(Charset::Ascii | Charset::Legacy(_)), Form::Utf8) if first_beyond_ascii(source).is_none() => {
            Ok(None)
        }
        (None, Form::Bytes) => {
            let reason = format!("the encoding {name} is not supported; send UTF-8 or UTF-16");
            Err(read_error("unsupported-encoding", reason, source, at))
        }
        // A byte order mark, two bytes a character, or having come as a string overrides the declaration.
        _ => mismatch(actual, at),
    }
}

fn first_beyond_ascii(source: &[u8]) -> Option<usize> {
    source.iter().position(|byte| !byte.is_ascii())
}

/// Puts the UTF-8 form of a `message` whose declaration names an encoding into `source`.
pub(super) fn transcode(
    message: &[u8],
    encoding: Legacy,
    limits: &Limits,
    source: &mut Vec<u8>,
) -> ReadResult<()> {
    let Some(decoder) = Charset::Legacy(encoding).decoder() else { return Ok(()) };
    source.clear();
    transcode_to(
        source,
        message,
        decoder,
        limits,
        "bad-encoding",
        "these bytes are not in the declared encoding",
    )
}

/// Appends to `source`; where bytes cannot be decoded, the position is the end of what could.
fn transcode_to(
    source: &mut Vec<u8>,
    message: &[u8],
    mut decoder: Decoder,
    limits: &Limits,
    code: &'static str,
    reason: &str,
) -> ReadResult<()> {
    if let (_, Stop::Undecodable) = decoder.decode(message, true, source) {
        return Err(read_error(code, reason, source, source.len()));
    }
    let limit = limits.document.min(MAX_BYTES);
    if source.len() > limit {
        return Err(exceeded("document-limit", "bytes in UTF-8", source, limit, source.len(), limit));
    }
    Ok(())
}

/// Refuses what is not UTF-8 and every character that no XML document contains, so that the
/// reader proper need not look for either. `padded` is the source, which ends at `end`.
pub(super) fn validate(padded: &[u8], end: usize) -> ReadResult<()> {
    let source = &padded[..end];
    if let Err(error) = std::str::from_utf8(source) {
        return Err(read_error("bad-utf8", "not UTF-8", source, error.valid_up_to()));
    }
    if let Some(at) = find_control(padded, end) {
        let reason = format!("the character U+{:04X} is not allowed in XML", source[at]);
        return Err(read_error("illegal-character", reason, source, at));
    }
    // U+FFFE and U+FFFF, and nothing else, begin with EF BF and BE or BF.
    let mut from = 0;
    while let Some(found) = memchr::memchr(0xEF, &source[from..]) {
        let at = from + found;
        if source[at + 1] == 0xBF && source[at + 2] >= 0xBE {
            let reason = format!("the character U+FFF{:X} is not allowed in XML", 0xE + (source[at + 2] & 1));
            return Err(read_error("illegal-character", reason, source, at));
        }
        from = at + 3;
    }
    Ok(())
}
