//! Escapes text and attribute values, so that a reader gets back the same characters.

/// Appends the text of an element.
pub fn text(value: &[u8], out: &mut Vec<u8>) {
    escaped(value, out, |byte| match byte {
        b'&' => Some(b"&amp;".as_slice()),
        b'<' => Some(b"&lt;"),
        // `>` too: two adjacent texts could give `]]>`.
        b'>' => Some(b"&gt;"),
        b'\r' => Some(b"&#13;"),
        _ => None,
    });
}

/// Appends an attribute value, for double quotes.
pub fn value(value: &[u8], out: &mut Vec<u8>) {
    escaped(value, out, |byte| match byte {
        b'&' => Some(b"&amp;".as_slice()),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'"' => Some(b"&quot;"),
        b'\t' => Some(b"&#9;"),
        b'\n' => Some(b"&#10;"),
        b'\r' => Some(b"&#13;"),
        _ => None,
    });
}

#[inline(always)]
fn escaped(value: &[u8], out: &mut Vec<u8>, reference: impl Fn(u8) -> Option<&'static [u8]>) {
    let mut plain = 0;
    for (at, &byte) in value.iter().enumerate() {
        if let Some(reference) = reference(byte) {
            out.extend_from_slice(&value[plain..at]);
            out.extend_from_slice(reference);
            plain = at + 1;
        }
    }
    out.extend_from_slice(&value[plain..]);
}
