//! Labels, and bytes in chunks.

use crate::document::charset::{Charset, declared_label};

fn decoded(label: &str, bytes: &[u8]) -> String {
    let mut utf8 = Vec::new();
    Charset::for_label(label).and_then(Charset::decoder).unwrap().decode_all(bytes, true, &mut utf8);
    String::from_utf8(utf8).unwrap()
}

#[test]
fn labels() {
    for (label, charset) in [
        ("UTF8", Some(Charset::Utf8)),
        ("utf-8", Some(Charset::Utf8)),
        ("US-ASCII", Some(Charset::Ascii)),
        ("ISO-10646-UCS-2", Some(Charset::Utf16)),
        ("UTF-16BE", Some(Charset::Utf16Be)),
        ("iso-2022-kr", None),
        ("utf-7", None),
        ("", None),
    ] {
        assert_eq!(Charset::for_label(label), charset, "{label}");
    }
    let canonical =
        [("latin1", "iso-8859-1"), ("CP1252", "windows-1252"), ("l5", "iso-8859-9"), ("utf8", "utf-8")];
    for (label, canonical) in canonical {
        let charset = Charset::for_label(label).unwrap();
        assert_eq!(charset.label(), canonical);
        assert_eq!(Charset::for_label(canonical), Some(charset));
    }
}

#[test]
fn controls_of_iso_encodings_and_undefined_bytes_of_windows_encodings() {
    let bytes = b"a\x80\x81\xE9\x9Fz";
    for label in ["ISO-8859-1", "latin1", "iso-8859-9"] {
        assert_eq!(decoded(label, bytes), "a\u{80}\u{81}\u{E9}\u{9F}z", "{label}");
    }
    assert_eq!(decoded("windows-1252", bytes), "a\u{20AC}\u{FFFF}\u{E9}\u{178}z");
    assert_eq!(decoded("Cp1252", bytes), decoded("windows-1252", bytes));
    assert_eq!(decoded("us-ascii", bytes), "a\u{FFFF}\u{FFFF}\u{FFFF}\u{FFFF}z");
    assert_eq!(decoded("koi8-r", b"\x80\xC1"), "\u{2500}\u{430}");
    assert_eq!(decoded("iso-8859-3", b"\xA1\xA5"), "\u{126}\u{FFFF}");
}

#[test]
fn chunks_of_any_length_decode_alike() {
    for (label, bytes) in [
        ("shift_jis", &b"\x93\xFA\x96{<\xFF\x81>\x93"[..]),
        ("gb18030", b"a\x81\x30\x81\x30\xB0\xA1<\x81\x30<"),
        ("iso-2022-jp", b"\x1B$B\x46\x7C\x1B(Ba>\x1B"),
        ("utf-16le", b"<\0\x3D\xD8\x00\xDEa\0\x00\xDCb\0<"),
        ("windows-1252", b"a\x80\x81\xE9\x9Fz"),
    ] {
        let whole = decoded(label, bytes);
        for size in 1..bytes.len() {
            let mut decoder = Charset::for_label(label).and_then(Charset::decoder).unwrap();
            let mut utf8 = Vec::new();
            for chunk in bytes.chunks(size) {
                decoder.decode_all(chunk, false, &mut utf8);
            }
            decoder.decode_all(&[], true, &mut utf8);
            assert_eq!(String::from_utf8(utf8).unwrap(), whole, "{label} in chunks of {size}");
        }
    }
}

#[test]
fn declared_labels() {
    for (text, label) in [
        ("<?xml version='1.0' encoding = \"a-b\" ?><r/>", Some("a-b")),
        ("<?xml encoding='x'?>", Some("x")),
        ("<?xml version='1.0'?><r encoding='x'/>", None),
        ("<?xml version='1.0' encoding='x", None),
        ("<?xmlencoding='x'?>", None),
        (" <?xml encoding='x'?>", None),
    ] {
        assert_eq!(declared_label(text.as_bytes()), label, "{text}");
    }
}
