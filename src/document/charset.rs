//! Character encodings other than UTF-8: their labels, and bytes → UTF-8.
//!
//! The labels and tables are those of the WHATWG Encoding Standard (crate `encoding_rs`), with two exceptions,
//! where an XML parser follows the names as IANA registered them:
//!
//! - The standard reads `iso-8859-1`, `iso-8859-9` and `iso-8859-11` as windows-1252, -1254 and -874. Here the bytes
//!   80 to 9F of the ISO encodings are the control characters U+0080 to U+009F, as in lxml and expat.
//! - The standard maps bytes that a Windows encoding does not define to control characters. Here they cannot be
//!   decoded.
//!
//! ```text
//! Charset::for_label("latin1")        bytes 80 … 9F → U+0080 … U+009F, A0 … FF → U+00A0 … U+00FF
//! Charset::for_label("windows-1252")  80 → €, 81 cannot be decoded
//! Charset::for_label("us-ascii")      Charset::Ascii: 80 … FF are refused
//! ```

use encoding_rs::{DecoderResult, Encoding};

use crate::util::xml_chars::is_space;

/// A character that XML does not allow, in UTF-8: it stands for bytes that cannot be decoded.
pub const UNDECODABLE: &[u8] = "\u{FFFF}".as_bytes();

const PIECE_BYTES: usize = 16 << 10;

/// The charset that a label stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charset {
    Utf8,
    /// 7 bits: a subset of UTF-8.
    Ascii,
    /// UTF-16 in either byte order: a byte order mark tells which.
    Utf16,
    Utf16Le,
    Utf16Be,
    Legacy(Legacy),
}

/// An encoding that agrees with ASCII below 80, except for escape sequences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Legacy {
    encoding: &'static Encoding,
    upper_half: UpperHalf,
}

/// The meaning of the bytes from 80 of an encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UpperHalf {
    /// As in the table.
    Table,
    /// The same, but 80 to 9F are control characters.
    IsoControls,
    /// The same, but those of 80 to 9F that are control characters in the table are undefined.
    NoControls,
    /// They are all undefined.
    Undefined,
}

impl Charset {
    /// The encoding that a label names, in upper or lower case.
    pub fn for_label(label: &str) -> Option<Charset> {
        let label = label.to_ascii_lowercase();
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        Some(match label.as_str() {
            "us-ascii" | "ascii" | "ansi_x3.4-1968" => Charset::Ascii,
            "utf-16le" => Charset::Utf16Le,
            "utf-16be" | "unicodefffe" => Charset::Utf16Be,
            _ if encoding == encoding_rs::UTF_8 => Charset::Utf8,
            _ if encoding == encoding_rs::UTF_16LE => Charset::Utf16,
            _ => Charset::Legacy(Legacy { encoding, upper_half: UpperHalf::of(encoding, &label) }),
        })
    }

    /// The decoder of an encoding; `None` for UTF-8, which needs none, and for UTF-16 without a byte order.
    pub fn decoder(self) -> Option<Decoder> {
        let (encoding, upper_half) = match self {
            Charset::Utf8 | Charset::Utf16 => return None,
            Charset::Ascii => (encoding_rs::WINDOWS_1252, UpperHalf::Undefined),
            Charset::Utf16Le => (encoding_rs::UTF_16LE, UpperHalf::Table),
            Charset::Utf16Be => (encoding_rs::UTF_16BE, UpperHalf::Table),
            Charset::Legacy(legacy) => (legacy.encoding, legacy.upper_half),
        };
        Some(Decoder { inner: encoding.new_decoder_without_bom_handling(), upper_half })
    }

    /// The one label of an encoding that has several.
    pub fn label(self) -> String {
        let name = match self {
            Charset::Utf8 => "utf-8",
            Charset::Ascii => "us-ascii",
            Charset::Utf16 => "utf-16",
            Charset::Utf16Le => "utf-16le",
            Charset::Utf16Be => "utf-16be",
            Charset::Legacy(Legacy { encoding, upper_half: UpperHalf::IsoControls }) => match encoding.name()
            {
                "windows-1252" => "iso-8859-1",
                "windows-1254" => "iso-8859-9",
                _ => "iso-8859-11",
            },
            Charset::Legacy(legacy) => legacy.encoding.name(),
        };
        name.to_ascii_lowercase()
    }
}

impl UpperHalf {
    fn of(encoding: &'static Encoding, label: &str) -> UpperHalf {
        let is_windows_name =
            ["windows", "cp125", "x-cp", "dos"].iter().any(|prefix| label.starts_with(prefix));
        match encoding.name().starts_with("windows-") {
            true if is_windows_name => UpperHalf::NoControls,
            true => UpperHalf::IsoControls,
            false => UpperHalf::Table,
        }
    }
}

/// Why a decoder stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// All bytes are decoded; the last ones may be the beginning of a character.
    End,
    /// The last bytes that were read cannot be decoded.
    Undecodable,
}

/// An incremental decoder: linear in the bytes.
pub struct Decoder {
    inner: encoding_rs::Decoder,
    upper_half: UpperHalf,
}

impl Decoder {
    /// Appends the UTF-8 form of `bytes` to `utf8`, up to the first bytes that cannot be decoded; returns how many were
    /// read, and why it stopped. After `Undecodable` it can continue with the rest. `is_last`: no other bytes follow.
    pub fn decode(&mut self, bytes: &[u8], is_last: bool, utf8: &mut Vec<u8>) -> (usize, Stop) {
        if self.upper_half == UpperHalf::Table {
            return self.decode_by_table(bytes, is_last, utf8);
        }
        // One byte a character, so the decoder has no state and may get the bytes in runs.
        let last = if self.upper_half == UpperHalf::Undefined { 0xFF } else { 0x9F };
        let is_special = |byte: &u8| (0x80..=last).contains(byte);
        let mut at = 0;
        while at < bytes.len() {
            let run = &bytes[at..];
            let run = &run[..run.iter().position(is_special).unwrap_or(run.len())];
            let (read, stop) = self.decode_by_table(run, false, utf8);
            at += read;
            if stop == Stop::Undecodable {
                return (at, stop);
            }
            if let Some(&byte) = bytes.get(at) {
                at += 1;
                if self.decode_special(byte, utf8) == Stop::Undecodable {
                    return (at, Stop::Undecodable);
                }
            }
        }
        (at, Stop::End)
    }

    fn decode_special(&mut self, byte: u8, utf8: &mut Vec<u8>) -> Stop {
        let before = utf8.len();
        match self.upper_half {
            UpperHalf::Undefined => return Stop::Undecodable,
            UpperHalf::IsoControls => {
                utf8.extend_from_slice(char::from(byte).encode_utf8(&mut [0; 2]).as_bytes());
            }
            UpperHalf::NoControls | UpperHalf::Table => {
                self.decode_by_table(&[byte], false, utf8);
                if matches!(utf8[before..], [0xC2, 0x80..=0x9F]) {
                    utf8.truncate(before);
                    return Stop::Undecodable;
                }
            }
        }
        Stop::End
    }

    /// Appends the UTF-8 form of all of `bytes`, with `UNDECODABLE` for each sequence that cannot be decoded.
    pub fn decode_all(&mut self, bytes: &[u8], is_last: bool, utf8: &mut Vec<u8>) {
        let mut at = 0;
        while let (read, Stop::Undecodable) = self.decode(&bytes[at..], is_last, utf8) {
            at += read;
            utf8.extend_from_slice(UNDECODABLE);
        }
    }

    fn decode_by_table(&mut self, bytes: &[u8], is_last: bool, utf8: &mut Vec<u8>) -> (usize, Stop) {
        let mut at = 0;
        loop {
            // In pieces, because the buffer must have room for the worst case.
            let piece = &bytes[at..bytes.len().min(at + PIECE_BYTES)];
            let is_end = at + piece.len() == bytes.len();
            let start = utf8.len();
            let most = self.inner.max_utf8_buffer_length_without_replacement(piece.len());
            utf8.resize(start + most.expect("a piece is small"), 0);
            let (result, read, written) =
                self.inner.decode_to_utf8_without_replacement(piece, &mut utf8[start..], is_last && is_end);
            utf8.truncate(start + written);
            at += read;
            if matches!(result, DecoderResult::Malformed(..)) {
                return (at, Stop::Undecodable);
            }
            if is_end {
                return (at, Stop::End);
            }
        }
    }
}

/// The encoding of a text by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detected {
    pub charset: Charset,
    /// Bytes of the byte order mark.
    pub mark: usize,
}

/// Detects the encoding of an XML document or entity by its first bytes, before any declaration is read; an error
/// is the name of an encoding that is not supported. `None`: bytes that agree with ASCII.
pub fn detect(bytes: &[u8]) -> Result<Option<Detected>, &'static str> {
    let (charset, mark) = match bytes {
        [0, 0, 0xFE, 0xFF, ..] | [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0, b'<', ..] | [b'<', 0, 0, 0, ..] => {
            return Err("UTF-32");
        }
        [0x4C, 0x6F, 0xA7, 0x94, ..] => return Err("EBCDIC"),
        [0xEF, 0xBB, 0xBF, ..] => (Charset::Utf8, 3),
        [0xFF, 0xFE, ..] => (Charset::Utf16Le, 2),
        [0xFE, 0xFF, ..] => (Charset::Utf16Be, 2),
        [b'<', 0, ..] => (Charset::Utf16Le, 0),
        [0, b'<', ..] => (Charset::Utf16Be, 0),
        _ => return Ok(None),
    };
    Ok(Some(Detected { charset, mark }))
}

/// The encoding that an XML or text declaration at the beginning of `bytes` names. It need not be well-formed otherwise: the
/// reader checks it.
pub fn declared_label(bytes: &[u8]) -> Option<&str> {
    // Longer than any declaration; without a bound, one that does not end would cost a pass over the text.
    let head = &bytes[..bytes.len().min(1 << 10)];
    let rest = head.strip_prefix(b"<?xml").filter(|rest| rest.first().is_some_and(|&byte| is_space(byte)))?;
    let rest = &rest[..memchr::memmem::find(rest, b"?>")?];
    let after = &rest[memchr::memmem::find(rest, b"encoding")? + b"encoding".len()..];
    let after = after.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = after.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    let label = &value[..memchr::memchr(quote, value)?];
    std::str::from_utf8(label).ok()
}
