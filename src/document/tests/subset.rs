//! Documents with an internal subset: entities and declared attributes, good and bad.

use super::{read_with, show};
use crate::error::ReadError;
use crate::limits::Limits;

fn subset(message: &str) -> Result<String, ReadError> {
    let limits = Limits { internal_subset: true, ..Limits::default() };
    let (document, reader) = read_with(message.as_bytes(), &limits)?;
    Ok(show::document(&document, reader.vocabulary()))
}

#[test]
fn entities_of_an_internal_subset_are_expanded() {
    for (message, expected) in [
        ("<!DOCTYPE a [<!ENTITY e 'x'>]><a b='1&e;2'>1&e;2</a>", "<a b=[1x2]>[1x2]</a>"),
        (
            "<!DOCTYPE a [<!ENTITY e '<b c=\"&#38;f;\">&f;</b>&f;'><!ENTITY f 'y'>]><a>&e;z</a>",
            "<a><b c=[y]>[y]</b>[yz]</a>",
        ),
        ("<!DOCTYPE a [<!ENTITY e '&#38;#60;&#60;b/>'>]><a>&e;</a>", "<a>[<]<b></b></a>"),
        ("<!DOCTYPE a [<!ENTITY e '1\r\n2&#13;\t'>]><a b='&e;'>&e;</a>", "<a b=[1 2  ]>[1\n2\r\t]</a>"),
        ("<!DOCTYPE a [<!ENTITY e ''>]><a b='&e;'>&e;&e;</a>", "<a b=[]></a>"),
        ("<!DOCTYPE a [<!ENTITY e \"'&#34;\">]><a b='&e;' c=\"&e;\"/>", "<a b=['\"] c=['\"]></a>"),
        (
            "<!DOCTYPE a [<!ENTITY e '<!--c--><?p q?><![CDATA[&#38;]]>'>]><a>x&e;y</a>",
            "<a>[x]<!--c--><?p q?>[&y]</a>",
        ),
        ("<!DOCTYPE a [<!ENTITY e '&#xE9;'><!ENTITY e 'second'>]><a>&e;</a>", "<a>[\u{E9}]</a>"),
        ("<!DOCTYPE a [<!ENTITY % p \"<!ENTITY e 'x'>\">%p;]><a>&e;</a>", "<a>[x]</a>"),
        ("<!DOCTYPE a[]><a/>", "<a></a>"),
    ] {
        assert_eq!(subset(message).as_deref(), Ok(expected), "{message}");
    }
}

#[test]
fn declared_attributes_get_defaults_and_tokens() {
    for (message, expected) in [
        (
            "<!DOCTYPE a [<!ATTLIST a b CDATA 'x' c NMTOKENS #IMPLIED>]><a c='  1   2 '/>",
            "<a c=[1 2] b=[x]></a>",
        ),
        ("<!DOCTYPE a [<!ATTLIST a b ID #IMPLIED>]><a b='&#32;1&#32;&#32;2&#10;'/>", "<a b=[1 2\n]></a>"),
        (
            "<!DOCTYPE a [<!ATTLIST a xmlns CDATA 'u' xmlns:p CDATA #FIXED 'v' p:q CDATA 'r'>]><a><a xmlns=''/></a>",
            "<{u}a {v}q=[r]><a {v}q=[r]></a></{u}a>",
        ),
        ("<!DOCTYPE a [<!ATTLIST b c CDATA 'x'>]><a><b/><b c='y'/></a>", "<a><b c=[x]></b><b c=[y]></b></a>"),
        ("<!DOCTYPE a [<!ATTLIST a b NMTOKEN '  x ' >]><a/>", "<a b=[x]></a>"),
    ] {
        assert_eq!(subset(message).as_deref(), Ok(expected), "{message}");
    }
}

#[test]
fn what_is_wrong_with_entities() {
    for (message, expected) in [
        ("<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>", "entity-recursion"),
        ("<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a b='&e;'/>", "entity-recursion"),
        ("<!DOCTYPE a [<!ENTITY e '<b>'>]><a>&e;</b></a>", "entity-boundary"),
        ("<!DOCTYPE a [<!ENTITY e '</a>'>]><a>&e;", "entity-boundary"),
        ("<!DOCTYPE a [<!ENTITY e '<b'>]><a>&e;/></a>", "truncated"),
        ("<!DOCTYPE a [<!ENTITY e '&#60;'>]><a b='&e;'/>", "less-than-in-attribute"),
        ("<!DOCTYPE a [<!ENTITY e '&#38;'>]><a b='&e;'/>", "truncated"),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 's'>]><a b='&e;'/>", "external-entity"),
        (
            "<!DOCTYPE a [<!NOTATION n SYSTEM 'n'><!ENTITY e SYSTEM 's' NDATA n>]><a>&e;</a>",
            "unparsed-entity",
        ),
        ("<!DOCTYPE a []><a>&e;</a>", "undeclared-entity"),
        ("<!DOCTYPE a [<!ENTITY e '&p:f;'>]><a/>", "bad-reference"),
        (
            "<?xml version='1.0' standalone='yes'?><!DOCTYPE a [<!ENTITY % p \"<!ENTITY e 'x'>\">%p;]><a>&e;</a>",
            "undeclared-entity",
        ),
        ("<!DOCTYPE a [<!ENTITY e ']]>'>]><a>&e;</a>", "section-end"),
        ("<!DOCTYPE a [<!ENTITY e '<?xml version=\"1.0\"?>'>]><a>&e;</a>", "bad-instruction"),
        ("<!DOCTYPE a [", "unclosed-declaration"),
        ("<!DOCTYPE a []", "truncated"),
    ] {
        assert_eq!(subset(message).map_err(|error| error.code), Err(expected), "{message}");
    }
}

/// Messages, what is left of them without the references, and how many references there are.
const UNREAD: [(&str, &str, u32); 9] = [
    ("<!DOCTYPE a SYSTEM 'x.dtd'><a b='p&bar;q'>x&foo;y</a>", "<a b=[pq]>[xy]</a>", 2),
    ("<!DOCTYPE a PUBLIC 'p' 'x.dtd' [<!ENTITY e 'z'>]><a>&e;&foo;</a>", "<a>[z]</a>", 1),
    ("<!DOCTYPE a [<!ENTITY e SYSTEM 'nowhere'>]><a>1&e;2</a>", "<a>[12]</a>", 1),
    ("<!DOCTYPE a [%p;]><a>1&e;2<b/>&e;</a>", "<a>[12]<b></b></a>", 2),
    ("<!DOCTYPE a [<!ENTITY % p SYSTEM 'x'>%p;]><a b='&e;'/>", "<a b=[]></a>", 1),
    ("<!DOCTYPE a SYSTEM 'x' [<!ENTITY e '1&f;2'>]><a b='&e;'>&e;</a>", "<a b=[12]>[12]</a>", 2),
    ("<!DOCTYPE a SYSTEM 'x' [<!ATTLIST a b CDATA 'p&e;q'>]><a/>", "<a b=[pq]></a>", 1),
    ("<!DOCTYPE a SYSTEM 'x' [%p;<!ATTLIST a b CDATA 'p&e;q'>]><a>&e;</a>", "<a></a>", 1),
    ("<!DOCTYPE p:a SYSTEM 'x'><p:a xmlns:p='u&e;v' p:b='&e;'/>", "<{uv}a {uv}b=[]></{uv}a>", 2),
];

#[test]
fn references_to_entities_that_were_not_read_are_refused() {
    for (message, ..) in UNREAD {
        let error = subset(message).unwrap_err();
        assert_eq!(error.code, "unread-entity", "{message}");
    }
    let error = subset("<!DOCTYPE a SYSTEM 'x'>\n<a>1&foo;</a>").unwrap_err();
    assert_eq!((error.position.line, error.position.column), (2, 5));
    assert!(error.reason.contains("entity foo"), "{}", error.reason);
    // An entity without references is not counted as unread.
    assert_eq!(subset("<!DOCTYPE a SYSTEM 'x' [%p;<!ENTITY e SYSTEM 'y'>]><a/>").as_deref(), Ok("<a></a>"));
}

#[test]
fn references_to_entities_that_were_not_read_are_left_out_and_counted_on_request() {
    let limits = Limits { internal_subset: true, skip_unread_entities: true, ..Limits::default() };
    for (message, expected, references) in UNREAD {
        let (document, reader) = read_with(message.as_bytes(), &limits).expect(message);
        assert_eq!(show::document(&document, reader.vocabulary()), expected, "{message}");
        assert_eq!(document.skipped_entities, references, "{message}");
    }
    // What XML itself forbids stays refused.
    for (message, expected) in [
        ("<a>&e;</a>", "undeclared-entity"),
        ("<?xml version='1.0' standalone='yes'?><!DOCTYPE a SYSTEM 'x'><a>&e;</a>", "undeclared-entity"),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 's'>]><a b='&e;'/>", "external-entity"),
    ] {
        assert_eq!(read_with(message.as_bytes(), &limits).map(|_| ()).map_err(|e| e.code), Err(expected));
    }
}

#[test]
fn expansion_is_bounded() {
    let mut laughs = String::from("<!DOCTYPE a [<!ENTITY e0 'ha'>");
    for n in 1..30 {
        laughs += &format!("<!ENTITY e{n} '{}'>", format!("&e{};", n - 1).repeat(10));
    }
    let quadratic = format!("<!DOCTYPE a [<!ENTITY e '{}'>", "x".repeat(50_000));
    let defaults = format!("<!DOCTYPE a [<!ATTLIST b c CDATA '{}'>", "x".repeat(50_000));
    let many = format!("<a>{}</a>", "&e;".repeat(1000));
    let many_values = format!("<a b='{}'/>", "&e;".repeat(1000));
    let many_defaults = format!("<a>{}</a>", "<b/>".repeat(1000));
    for message in [
        format!("{laughs}]><a>&e29;</a>"),
        format!("{laughs}]><a b='&e29;'/>"),
        format!("{laughs}<!ATTLIST a b CDATA '&e29;'>]><a/>"),
        format!("{quadratic}]>{many}"),
        format!("{quadratic}]>{many_values}"),
        format!("{defaults}]>{many_defaults}"),
    ] {
        let error = subset(&message).unwrap_err();
        assert_eq!(error.code, "expansion-limit");
        let exceeded = error.exceeded.unwrap();
        assert!(exceeded.limit == 1 << 20 && exceeded.value > 1 << 20 && exceeded.value < 2 << 20);
    }
    // A chain as long as the expansion allows: no recursion of ours follows it.
    let mut chain = String::from("<!DOCTYPE a [<!ENTITY e0 'x'>");
    for n in 1..20_000 {
        chain += &format!("<!ENTITY e{n} '&e{};'>", n - 1);
    }
    assert_eq!(subset(&format!("{chain}]><a b='&e19999;'>&e19999;</a>")).as_deref(), Ok("<a b=[x]>[x]</a>"));
}
