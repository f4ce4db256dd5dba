//! The reader as its users see it: what is accepted, what it becomes, what is refused and where.

mod charset;
mod invariants;
mod random;
mod show;
mod subset;

use super::*;
use crate::error::ReadError;
use crate::limits::Limits;

fn read(message: &[u8]) -> Result<(Document, Reader), ReadError> {
    read_with(message, &Limits::default())
}

fn read_with(message: &[u8], limits: &Limits) -> Result<(Document, Reader), ReadError> {
    let (mut reader, mut document) = (Reader::new(), Document::default());
    reader.read(message, limits, &mut document)?;
    invariants::check(&document, reader.vocabulary());
    Ok((document, reader))
}

fn code(message: &str) -> &'static str {
    read(message.as_bytes()).err().map_or("accepted", |error| error.code)
}

/// Shows a document in one line: expanded names, sorted nothing, text in brackets.
fn shown(message: &str) -> String {
    let (document, reader) = read(message.as_bytes()).unwrap();
    show::document(&document, reader.vocabulary())
}

#[test]
fn elements_attributes_and_text() {
    assert_eq!(shown("<a/>"), "<a></a>");
    assert_eq!(shown("<a b='1' c = \"2\" ><d/>x<e></e >y</a >\n"), "<a b=[1] c=[2]><d></d>[x]<e></e>[y]</a>");
    assert_eq!(shown("<a>x<![CDATA[<&]]>y<!--c-->z<?p  q ?>w</a>"), "<a>[x<&y]<!--c-->[z]<?p q ?>[w]</a>");
    assert_eq!(shown("<a><![CDATA[]]></a>"), "<a></a>");
    assert_eq!(shown("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x42;&#x1F600;</a>"), "<a>[<&>\"'AB\u{1F600}]</a>");
    assert_eq!(shown("<!--c--><?p?><a/><!--d-->"), "<!--c--><?p ?><a></a><!--d-->");
    assert_eq!(
        shown("<\u{E9}l\u{E9}ment \u{4E2D}='\u{4E2D}'/>"),
        "<\u{E9}l\u{E9}ment \u{4E2D}=[\u{4E2D}]></\u{E9}l\u{E9}ment>"
    );
}

#[test]
fn line_ends_and_white_space_in_values() {
    assert_eq!(shown("<a>1\r\n2\r3\n\r4</a>"), "<a>[1\n2\n3\n\n4]</a>");
    assert_eq!(shown("<a><![CDATA[1\r\n2\r3]]><!--\r\n-\r--></a>"), "<a>[1\n2\n3]<!--\n-\n--></a>");
    assert_eq!(shown("<a b='1\r\n2\t3\r4 \n5&#10;&#9;&#13;6'/>"), "<a b=[1 2 3 4  5\n\t\r6]></a>");
}

#[test]
fn namespaces_are_resolved() {
    assert_eq!(shown("<a xmlns='u'><b c='1'/></a>"), "<{u}a><{u}b c=[1]></{u}b></{u}a>");
    assert_eq!(
        shown("<p:a xmlns:p='u' p:b='1' b='2'><c p:b='3' xmlns:p='v'/><c p:b='4'/></p:a>"),
        "<{u}a {u}b=[1] b=[2]><c {v}b=[3]></c><c {u}b=[4]></c></{u}a>"
    );
    assert_eq!(shown("<a xmlns='u'><b xmlns=''/></a>"), "<{u}a><b></b></{u}a>");
    assert_eq!(
        shown("<a xml:lang='x' xmlns:xml='http://www.w3.org/XML/1998/namespace'/>"),
        "<a {http://www.w3.org/XML/1998/namespace}lang=[x]></a>"
    );
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for (message, expected) in [
        ("", "no-root"),
        ("  ", "no-root"),
        ("<!-- -->", "no-root"),
        ("x<a/>", "text-outside-root"),
        ("<a/>x", "text-outside-root"),
        ("<a/>&#32;", "text-outside-root"),
        ("<a/><b/>", "two-roots"),
        ("<a/></a>", "bad-tag"),
        ("<a/><![CDATA[]]>", "bad-tag"),
        ("<a", "truncated"),
        ("<a ", "truncated"),
        ("<a b", "truncated"),
        ("<a b=", "truncated"),
        ("<a b='", "truncated"),
        ("<a b='1'", "truncated"),
        ("<a/", "truncated"),
        ("<a>", "unclosed-element"),
        ("<a>text", "unclosed-element"),
        ("<a></a", "truncated"),
        ("<a></", "truncated"),
        ("<a><", "truncated"),
        ("<a><!", "truncated"),
        ("<a><!-- ", "truncated"),
        ("<a><![CDATA[ ]]", "truncated"),
        ("<a><?p ", "truncated"),
        ("<a>&", "truncated"),
        ("<a>&lt", "truncated"),
        ("<a>&#3", "truncated"),
        ("<a></b>", "mismatched-tag"),
        ("<a></ab>", "mismatched-tag"),
        ("<ab></a>", "mismatched-tag"),
        ("<a></ a>", "mismatched-tag"),
        ("< a/>", "bad-tag"),
        ("<a><1/></a>", "bad-name"),
        ("<-a/>", "bad-name"),
        ("<a:/>", "bad-name"),
        ("<:a/>", "bad-name"),
        ("<a:b:c/>", "bad-name"),
        ("<a:1 xmlns:a='u'/>", "bad-name"),
        ("<a\u{D7}/>", "bad-name"),
        ("<a / >", "bad-tag"),
        ("<a@b/>", "bad-name"),
        ("<a[]/>", "bad-name"),
        ("<a~ b=''/>", "bad-name"),
        ("<a\u{B7}/>", "accepted"),
        ("<\u{B7}a/>", "bad-name"),
        ("<a b=1/>", "bad-attribute"),
        ("<a b/>", "bad-attribute"),
        ("<a b='1'c='2'/>", "bad-tag"),
        ("<a b='<'/>", "less-than-in-attribute"),
        ("<a b='&'/>", "bad-reference"),
        ("<a b='1' b='2'/>", "duplicate-attribute"),
        ("<a xmlns:p='u' xmlns:q='u' p:b='' q:b=''/>", "duplicate-attribute"),
        ("<a xmlns:p='u' xmlns:p='v'/>", "duplicate-attribute"),
        ("<p:a/>", "unbound-prefix"),
        ("<a p:b=''/>", "unbound-prefix"),
        ("<a><b xmlns:p='u'/><p:c/></a>", "unbound-prefix"),
        ("<xmlns:a/>", "reserved-prefix"),
        ("<a xmlns:xmlns='u'/>", "reserved-prefix"),
        ("<a xmlns:xml='u'/>", "reserved-prefix"),
        ("<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", "reserved-namespace"),
        ("<a xmlns='http://www.w3.org/2000/xmlns/'/>", "reserved-namespace"),
        ("<a xmlns:p=''/>", "empty-namespace"),
        ("<a>]]></a>", "section-end"),
        ("<a><!-- -- --></a>", "bad-comment"),
        ("<a><!----->", "bad-comment"),
        ("<a><!ELEMENT a ANY></a>", "bad-tag"),
        ("<a>&x;</a>", "undeclared-entity"),
        ("<a b='&x;'/>", "undeclared-entity"),
        ("<a>& b</a>", "bad-reference"),
        ("<a>&#;</a>", "bad-reference"),
        ("<a>&#x;</a>", "bad-reference"),
        ("<a>&#0;</a>", "bad-reference"),
        ("<a>&#xD800;</a>", "bad-reference"),
        ("<a>&#xFFFE;</a>", "bad-reference"),
        ("<a>&#99999999999999999999;</a>", "bad-reference"),
        ("<a>&#X41;</a>", "bad-reference"),
        ("<a><?xml version='1.0'?></a>", "bad-instruction"),
        (" <?xml version='1.0'?><a/>", "bad-instruction"),
        ("<?XML ?><a/>", "bad-instruction"),
        ("<??><a/>", "bad-instruction"),
        ("<?p:q?><a/>", "bad-instruction"),
        ("<?p+?><a/>", "bad-instruction"),
        ("<a>\u{1}</a>", "illegal-character"),
        ("<a>\u{FFFF}</a>", "illegal-character"),
        ("<a b='\0'/>", "illegal-character"),
        ("<!DOCTYPE a [ ]><a/>", "internal-subset"),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", "bad-doctype"),
        ("<!DOCTYPE a SYSTEM><a/>", "bad-doctype"),
        ("<!DOCTYPE a PUBLIC 'p'><a/>", "bad-doctype"),
        ("<!DOCTYPE a PUBLIC '{' 's'><a/>", "bad-doctype"),
        ("<!DOCTYPEa><a/>", "bad-doctype"),
        ("<!DOCTYPE a", "truncated"),
        ("<?xml?><a/>", "bad-instruction"),
        ("<?xml encoding='UTF-8'?><a/>", "bad-declaration"),
        ("<?xml version='2.0'?><a/>", "bad-declaration"),
        ("<?xml version='1.'?><a/>", "bad-declaration"),
        ("<?xml version='1.0' standalone='maybe'?><a/>", "bad-declaration"),
        ("<?xml version='1.0' standalone='yes' encoding='UTF-8'?><a/>", "bad-declaration"),
        ("<?xml version='1.0'encoding='UTF-8'?><a/>", "bad-declaration"),
        ("<?xml version='1.0' ", "bad-declaration"),
        ("<?xml version='1.0' encoding='ISO-8859-99'?><a/>", "unsupported-encoding"),
        ("<?xml version='1.0' encoding='iso-2022-kr'?><a/>", "unsupported-encoding"),
        ("<?xml version='1.0' encoding='UTF-16'?><a/>", "encoding-mismatch"),
        ("<?xml version='1.0' encoding='us-ascii'?><\u{E9}/>", "encoding-mismatch"),
    ] {
        assert_eq!(code(message), expected, "{message}");
    }
}

#[test]
fn a_doctype_without_internal_subset_is_passed_over() {
    for doctype in
        ["<!DOCTYPE a>", "<!DOCTYPE a SYSTEM 'http://nowhere/'>", "<!DOCTYPE a PUBLIC \"-//x\" '' >"]
    {
        assert_eq!(shown(&format!("{doctype}<a/>")), "<a></a>");
    }
    assert_eq!(code("<!DOCTYPE a><a>&x;</a>"), "undeclared-entity");
    assert_eq!(
        code("<?xml version='1.0' standalone='yes'?><!DOCTYPE a SYSTEM 's'><a>&x;</a>"),
        "undeclared-entity"
    );
}

#[test]
fn encodings() {
    let message = "<?xml version='1.0' encoding='UTF-16'?><a>\u{E9}\u{1F600}</a>";
    let expected = "<a>[\u{E9}\u{1F600}]</a>";
    let units: Vec<u16> = message.encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    let show = |message: &[u8]| {
        read(message).map(|(document, reader)| show::document(&document, reader.vocabulary()))
    };
    let code = |message: &[u8]| read(message).err().map_or("accepted", |error| error.code);
    for (mark, bytes) in [(&[0xFF, 0xFE][..], &little), (&[0xFE, 0xFF], &big), (&[], &little), (&[], &big)] {
        assert_eq!(show(&[mark, bytes].concat()).unwrap(), expected);
    }
    assert_eq!(code(&[&[0xFF, 0xFE][..], &little[..little.len() - 1]].concat()), "bad-utf16");
    assert_eq!(code(&[&[0xFE, 0xFF][..], &big[..big.len() - 14], b"\xDC\x00"].concat()), "bad-utf16");
    assert_eq!(show("\u{FEFF}<a>\u{E9}</a>".as_bytes()).unwrap(), "<a>[\u{E9}]</a>");
    assert_eq!(code("\u{FEFF}<?xml version='1.0' encoding='UTF-16'?><a/>".as_bytes()), "encoding-mismatch");
    assert_eq!(code(b"<\0a\0/\0>\0"), "encoding-mismatch");
    assert_eq!(code(b"\0\0\xFE\xFF"), "unsupported-encoding");
    assert_eq!(code(b"<a>\xE9</a>"), "bad-utf8");
    assert_eq!(code(b"<a>\xC0\x80</a>"), "bad-utf8");
    assert_eq!(code(b"<a>\xED\xA0\x80</a>"), "bad-utf8");
}

#[test]
fn declared_encodings() {
    let declared = |label: &str, content: &[u8]| {
        [format!("<?xml version='1.0' encoding='{label}'?>\n<a>").as_bytes(), content, b"</a>"].concat()
    };
    let shown = |label: &str, content: &[u8]| {
        let (document, reader) = read(&declared(label, content)).unwrap();
        show::document(&document, reader.vocabulary())
    };
    for (label, content, expected) in [
        ("ISO-8859-1", &b"\xE9\x85"[..], "\u{E9}\u{85}"),
        ("Windows-1252", b"\xE9\x80", "\u{E9}\u{20AC}"),
        ("UTF8", "\u{E9}".as_bytes(), "\u{E9}"),
        ("US-ASCII", b"e", "e"),
        ("ISO-8859-15", b"\xA4", "\u{20AC}"),
        ("koi8-r", b"\xC1", "\u{430}"),
        ("Shift_JIS", b"\x93\xFA", "\u{65E5}"),
        ("GB18030", b"\x81\x30\x81\x30\xB0\xA1", "\u{80}\u{554A}"),
        ("ISO-2022-JP", b"\x1B$B\x46\x7C\x1B(B", "\u{65E5}"),
    ] {
        assert_eq!(shown(label, content), format!("<a>[{expected}]</a>"), "{label}");
    }
    for (label, content, code, column) in [
        ("windows-1252", &b"\xE9\x81"[..], "bad-encoding", 5),
        ("iso-8859-3", b"\xE9\xA5", "bad-encoding", 5),
        ("Shift_JIS", b"\x93\xFA\xFF", "bad-encoding", 5),
        ("us-ascii", "x\u{E9}".as_bytes(), "encoding-mismatch", 5),
        ("iso-8859-1", b"\xE9\x1F", "illegal-character", 5),
        ("iso-8859-1", b"\xE9</b>", "mismatched-tag", 5),
    ] {
        let error = read(&declared(label, content)).map(|_| ()).unwrap_err();
        assert_eq!(
            (error.code, error.position.line, error.position.column),
            (code, 2, column),
            "{label}: {error}"
        );
    }
    let bytes = declared("iso-8859-1", &[0xE9; 40]);
    let limits = |document| Limits { document, ..Limits::default() };
    assert!(read_with(&bytes, &limits(bytes.len() + 40)).is_ok());
    let error = read_with(&bytes, &limits(bytes.len())).map(|_| ()).unwrap_err();
    let exceeded = error.exceeded.unwrap();
    assert_eq!((error.code, exceeded.value as usize), ("document-limit", bytes.len() + 40));
}

/// A string has no encoding to declare: what it says of one must not change its characters.
#[test]
fn strings_are_utf8_even_if_they_declare_another_encoding() {
    let limits = Limits { known_utf8: true, ..Limits::default() };
    let code = |text: &str| read_with(text.as_bytes(), &limits).err().map_or("accepted", |error| error.code);
    assert_eq!(code("<?xml version='1.0' encoding='ISO-8859-1'?><a>e</a>"), "accepted");
    assert_eq!(code("<?xml version='1.0' encoding='ISO-8859-1'?><a>\u{E9}</a>"), "encoding-mismatch");
    assert_eq!(code("<?xml version='1.0' encoding='UTF-16'?><a/>"), "encoding-mismatch");
    assert_eq!(code("<?xml version='1.0' encoding='utf8'?><a>\u{E9}</a>"), "accepted");
    assert_eq!(code("\u{FEFF}<a>\u{E9}</a>"), "accepted");
    assert_eq!(code("<\0a\0/\0>\0"), "illegal-character");
}

#[test]
fn every_limit_has_its_code_its_place_and_both_numbers() {
    let small = Limits {
        document: 100,
        depth: 3,
        attributes: 2,
        namespaces: 1,
        name: 8,
        text: 10,
        ..Limits::default()
    };
    let long = format!("<a>{}</a>", " ".repeat(100));
    for (message, code, line, column, value, limit) in [
        (long.as_str(), "document-limit", 1, 101, 107, 100),
        ("<a>\n<b><c><d/></c></b></a>", "depth-limit", 2, 7, 4, 3),
        ("<a>\n<b c='' d='' e=''/></a>", "attributes-limit", 2, 1, 3, 2),
        ("<a xmlns='u' xmlns:p='v'/>", "namespaces-limit", 1, 1, 2, 1),
        ("<a><b123456789/></a>", "name-limit", 1, 5, 10, 8),
        ("<a b123456789=''/>", "name-limit", 1, 4, 10, 8),
        ("<a>x<b/>12345<![CDATA[67890]]>&#65;<b/></a>", "text-limit", 1, 9, 11, 10),
        ("<a b='12345678901'/>", "text-limit", 1, 7, 11, 10),
        ("<a><!--12345678901--></a>", "text-limit", 1, 8, 11, 10),
        ("<a><?p 12345678901?></a>", "text-limit", 1, 8, 11, 10),
    ] {
        let error = read_with(message.as_bytes(), &small).map(|_| ()).unwrap_err();
        let exceeded = error.exceeded.expect(message);
        let found = (error.code, error.position.line, error.position.column, exceeded.value, exceeded.limit);
        assert_eq!(found, (code, line, column, value, limit), "{message}");
    }
}

#[test]
fn positions_count_lines_and_characters() {
    let error = read("<a>\n \u{E9}<b></c></a>".as_bytes()).map(|_| ()).unwrap_err();
    assert_eq!((error.position.offset, error.position.line, error.position.column), (10, 2, 6));
}

#[test]
fn a_reader_recovers_from_a_refused_message() {
    let (mut reader, mut document) = (Reader::new(), Document::default());
    let limits = Limits::default();
    for bad in ["<a xmlns='u' xmlns:p='v'><b p:c='1' q:d='2'", "<a xmlns:p='u' p:b='' p:b=''/>", "<a><b>text"]
    {
        assert!(reader.read(bad.as_bytes(), &limits, &mut document).is_err());
        assert!(document.elements.is_empty() && document.source.is_empty() && document.values.is_empty());
        reader.read(b"<a b='1'>x</a>", &limits, &mut document).unwrap();
        assert_eq!(show::document(&document, reader.vocabulary()), "<a b=[1]>[x]</a>");
        assert!(reader.read(b"<p:a/>", &limits, &mut document).is_err());
    }
}

#[test]
fn a_full_vocabulary_is_emptied_between_messages() {
    let vocabulary = Vocabulary::with_capacity(Capacity { names: 10, ..Capacity::default() });
    let (mut reader, mut document) = (Reader::with_vocabulary(vocabulary), Document::default());
    for n in 0..100 {
        let message = format!("<p:a{n} xmlns:p='u' b{n}='1'/>");
        reader.read(message.as_bytes(), &Limits::default(), &mut document).unwrap();
        invariants::check(&document, reader.vocabulary());
        assert_eq!(
            show::document(&document, reader.vocabulary()),
            format!("<{{u}}a{n} b{n}=[1]></{{u}}a{n}>")
        );
        assert!(reader.vocabulary().names() <= 14);
    }
    assert!(reader.vocabulary().epoch() > 10);

    // Ever new prefixes for one name, and ever new namespaces.
    for n in 0..100 {
        let message = format!("<p{n}:a xmlns:p{n}='u' xmlns:q='v{n}' p{n}:b='1'/>");
        reader.read(message.as_bytes(), &Limits::default(), &mut document).unwrap();
        assert_eq!(show::document(&document, reader.vocabulary()), "<{u}a {u}b=[1]></{u}a>");
        assert!(reader.vocabulary().stats().uris <= 14);
    }
}
