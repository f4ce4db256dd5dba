//! From the bytes of a message to its UTF-8 form.

use super::fault::{ReadResult, exceeded, fault};
use super::scan::find_control;
use crate::limits::Limits;

/// What the first bytes of a message say about its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// UTF-8 or something that looks like it in an XML declaration.
    Bytes {
        marked: bool,
    },
    Utf16 {
        marked: bool,
        little_endian: bool,
    },
}

/// What any limit in bytes comes down to: offsets are 32 bits wide, and a document's buffers may grow to
/// a few times the message and what entities add to it.
pub(super) const MAX_BYTES: usize = 1 << 29;

/// Puts the UTF-8 form of `message` into `source`, without a byte order mark.
///
/// What `Form::Bytes` gives is not yet known to be UTF-8: the XML declaration may name another
/// encoding, which is then the better thing to complain about. `validate` decides.
pub(super) fn decode(message: &[u8], limits: &Limits, source: &mut Vec<u8>) -> ReadResult<Form> {
    let limit = limits.document.min(MAX_BYTES);
    if message.len() > limit {
        return Err(exceeded("document-limit", "bytes in the message", message, limit, message.len(), limit));
    }
    let form = match message {
        [0, 0, 0xFE, 0xFF, ..] | [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0, b'<', ..] | [b'<', 0, 0, 0, ..] => {
            return Err(fault("unsupported-encoding", "UTF-32 is not supported; send UTF-8", message, 0));
        }
        [0x4C, 0x6F, 0xA7, 0x94, ..] => {
            return Err(fault("unsupported-encoding", "EBCDIC is not supported; send UTF-8", message, 0));
        }
        [0xEF, 0xBB, 0xBF, rest @ ..] => {
            source.extend_from_slice(rest);
            return Ok(Form::Bytes { marked: true });
        }
        [0xFF, 0xFE, ..] => Form::Utf16 { marked: true, little_endian: true },
        [0xFE, 0xFF, ..] => Form::Utf16 { marked: true, little_endian: false },
        [b'<', 0, ..] => Form::Utf16 { marked: false, little_endian: true },
        [0, b'<', ..] => Form::Utf16 { marked: false, little_endian: false },
        _ => {
            source.extend_from_slice(message);
            return Ok(Form::Bytes { marked: false });
        }
    };
    let Form::Utf16 { marked, little_endian } = form else { unreachable!("the other form has returned") };
    let units = message[if marked { 2 } else { 0 }..].chunks(2).map(|unit| match *unit {
        [low, high] if little_endian => u16::from_le_bytes([low, high]),
        [high, low] => u16::from_be_bytes([high, low]),
        // Half a unit at the end: a lone surrogate stands for it and is refused below.
        _ => 0xD800,
    });
    for decoded in char::decode_utf16(units) {
        let Ok(c) = decoded else {
            return Err(fault("bad-utf16", "not UTF-16: half a character", source, source.len()));
        };
        source.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    if source.len() > limit {
        return Err(exceeded("document-limit", "bytes in UTF-8", source, limit, source.len(), limit));
    }
    Ok(form)
}

/// Refuses a `declared` encoding that is not the one of `form`, or that is not supported.
pub(super) fn agree(form: Form, declared: Option<&str>, source: &[u8], at: usize) -> ReadResult<()> {
    let Some(name) = declared else {
        return match form {
            Form::Utf16 { marked: false, .. } => {
                let reason = "UTF-16 without a byte order mark must be declared";
                Err(fault("encoding-mismatch", reason, source, at))
            }
            _ => Ok(()),
        };
    };
    let mismatch = |found: &str| {
        let reason = format!("the declared encoding is {name}, but the message is in {found}");
        Err(fault("encoding-mismatch", reason, source, at))
    };
    let actual = match form {
        Form::Bytes { .. } => "UTF-8",
        Form::Utf16 { little_endian: true, .. } => "UTF-16LE",
        Form::Utf16 { .. } => "UTF-16BE",
    };
    match (name.to_ascii_uppercase().as_str(), form) {
        ("UTF-8", Form::Bytes { .. }) | ("UTF-16", Form::Utf16 { .. }) => Ok(()),
        ("UTF-16LE" | "UTF-16BE", Form::Utf16 { .. }) if name.eq_ignore_ascii_case(actual) => Ok(()),
        ("US-ASCII" | "ASCII", Form::Bytes { marked: false }) => {
            match source.iter().position(|b| !b.is_ascii()) {
                None => Ok(()),
                Some(at) => Err(fault(
                    "encoding-mismatch",
                    format!("the declared encoding is {name}, this is not"),
                    source,
                    at,
                )),
            }
        }
        ("UTF-8" | "UTF-16" | "UTF-16LE" | "UTF-16BE" | "US-ASCII" | "ASCII", _) => mismatch(actual),
        // A byte order mark, or two bytes a character, is proof against whatever is declared.
        (_, Form::Bytes { marked: true } | Form::Utf16 { .. }) => mismatch(actual),
        _ => {
            let reason = format!("the encoding {name} is not supported; send UTF-8 or UTF-16");
            Err(fault("unsupported-encoding", reason, source, at))
        }
    }
}

/// Refuses what is not UTF-8 and every character that no XML document contains, so that the
/// reader proper need not look for either. `padded` is the source, which ends at `end`.
pub(super) fn validate(padded: &[u8], end: usize) -> ReadResult<()> {
    let source = &padded[..end];
    if let Err(error) = std::str::from_utf8(source) {
        return Err(fault("bad-utf8", "not UTF-8", source, error.valid_up_to()));
    }
    if let Some(at) = find_control(padded, end) {
        let reason = format!("the character U+{:04X} is not allowed in XML", source[at]);
        return Err(fault("illegal-character", reason, source, at));
    }
    // U+FFFE and U+FFFF, and nothing else, begin with EF BF and BE or BF.
    let mut from = 0;
    while let Some(found) = memchr::memchr(0xEF, &source[from..]) {
        let at = from + found;
        if source[at + 1] == 0xBF && source[at + 2] >= 0xBE {
            let reason = format!("the character U+FFF{:X} is not allowed in XML", 0xE + (source[at + 2] & 1));
            return Err(fault("illegal-character", reason, source, at));
        }
        from = at + 3;
    }
    Ok(())
}
