//! The outputs of transformations.

mod support;

use tamis::document::{Document, Reader};
use tamis::engine::index::{Index, Subscription};
use tamis::engine::matcher::Matcher;
use tamis::limits::Limits;
use tamis::naive;
use tamis::query::{self, Namespaces};
use tamis::tuning::{CACHE_BYTES, Tuning};

use support::cases::{self, Transform};
use support::{message, namespaces};

/// More than any case needs.
const LIMIT: usize = 1 << 20;

/// The output of a query on a document: bytes, nothing, or an error code.
fn output(query: &query::Query, document: &Document, reader: &Reader) -> Result<Option<String>, String> {
    let made = naive::transform(query, document, reader.vocabulary(), LIMIT);
    made.map(|output| output.map(|bytes| String::from_utf8(bytes).unwrap()))
        .map_err(|error| error.code.to_string())
}

#[test]
fn outputs_are_as_expected() {
    let mut wrong = Vec::new();
    let mut assertions = 0;
    for Transform { name, xml, namespaces, queries } in cases::transforms() {
        let (document, reader) = message(xml.as_bytes());
        for (text, expected) in queries {
            let query =
                query::parse(&text, &namespaces).unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
            let got = output(&query, &document, &reader);
            if got != expected {
                wrong.push(format!("{name}: {text}\n  expected {expected:?}\n  got      {got:?}"));
            }
            // An error is no answer to whether a message concerns a query.
            if let Ok(made) = &expected {
                assert_eq!(
                    naive::matches(&query, &document, reader.vocabulary()),
                    made.is_some(),
                    "{name}: {text}"
                );
            }
            let canonical = query.canonical();
            let again = query::parse(&canonical, &Namespaces::new()).expect(&canonical);
            assert_eq!(again, query, "{text} → {canonical}");
            let written = query::parse_as_written(&text, &namespaces).unwrap();
            assert_eq!(output(&written, &document, &reader), got, "{text} is not {canonical}");
            assertions += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(assertions > 120, "{assertions}");
}

/// Bytes of a message with an internal subset stand for more than they say.
#[test]
fn entities_and_attributes_of_a_dtd_are_written_out() {
    let xml = r#"<!DOCTYPE r [
        <!ENTITY e "<b k='1'>&amp;&#38;lt;</b>t"> <!ENTITY u "urn:u">
        <!ATTLIST a xmlns:p CDATA #FIXED "urn:p" p:i CDATA "0" n NMTOKENS #IMPLIED>
        <!ATTLIST c xmlns CDATA #FIXED "urn:c"> ]>
        <r xmlns:q="urn:q" xmlns:u="&u;"><a n="  x   y " q:j="&quot;">s&e;<!--c--><?p i?><?t?><![CDATA[<]]></a><c><d/></c><u:f/></r>"#;
    let mut reader = Reader::new();
    let mut document = Document::default();
    let limits = Limits { internal_subset: true, ..Limits::default() };
    reader.read(xml.as_bytes(), &limits, &mut document).unwrap();
    let prefixes = namespaces([("c", "urn:c"), ("p", "urn:p"), ("q", "urn:q"), ("u", "urn:u")]);
    for (text, expected) in [
        (
            "for $v in //a return $v",
            r#"<a xmlns:q="urn:q" n="x y" q:j="&quot;" xmlns:ns="urn:p" ns:i="0">s<b k="1">&amp;&lt;</b>t<!--c--><?p i?><?t?>&lt;</a>"#,
        ),
        ("for $v in //b return $v", r#"<b xmlns:q="urn:q" k="1">&amp;&lt;</b>"#),
        (
            "for $v in //b return <o xmlns='urn:o'>{ $v }</o>",
            r#"<o xmlns="urn:o"><b xmlns:q="urn:q" xmlns="" k="1">&amp;&lt;</b></o>"#,
        ),
        (
            "for $v in //a return <o>{ $v/@n }{ $v/@p:i }{ $v/@q:j }</o>",
            r#"<o n="x y" xmlns:ns="urn:p" ns:i="0" xmlns:q="urn:q" q:j="&quot;"/>"#,
        ),
        ("for $v in //c:c return $v", r#"<c xmlns:q="urn:q" xmlns="urn:c"><d/></c>"#),
        ("for $v in //c:d return $v", r#"<d xmlns:q="urn:q" xmlns="urn:c"/>"#),
        ("for $v in //u:f return $v", r#"<u:f xmlns:q="urn:q" xmlns:u="urn:u"/>"#),
        ("for $v in //a return <o>{ $v/text() }</o>", "<o>st&lt;</o>"),
    ] {
        let query = query::parse(text, &prefixes).expect(text);
        assert_eq!(output(&query, &document, &reader), Ok(Some(expected.to_string())), "{text}");
    }
}

#[test]
fn an_output_past_the_limit_is_an_error_with_both_numbers() {
    let (document, reader) = message(format!("<r><a>{}</a><a i='1'/><a/></r>", "x".repeat(1000)).as_bytes());
    for text in [
        "for $v in //a return $v",
        "for $v in //a return <o c='{ $v }'/>",
        "for $v in //a return <o>{ $v/text() }</o>",
        "for $v in /r return <o>{ string($v) }</o>",
        "for $v in //a return <o>{ $v/@i }</o>",
    ] {
        let query = query::parse(text, &Namespaces::new()).unwrap();
        let made = |limit| naive::transform(&query, &document, reader.vocabulary(), limit);
        let length = made(LIMIT).unwrap().unwrap().len();
        assert_eq!(made(length).unwrap().unwrap().len(), length, "{text}");
        let error = made(length - 1).unwrap_err();
        assert_eq!(error.code, "output-limit");
        let exceeded = error.exceeded.unwrap();
        assert_eq!(exceeded.limit, length as u64 - 1, "{text}");
        assert!(
            exceeded.value >= length as u64 && error.reason.contains(&exceeded.value.to_string()),
            "{error}"
        );
    }
}

/// Plans and buffers count as cache and stay within the capacity, and outputs do not depend on it.
#[test]
fn caches_of_transformations_are_bounded() {
    let mut index = Index::new();
    let texts: Vec<String> = (0..2_000)
        .map(|number| format!("for $b in //b[@n = '{number}'] return <o>{{$b/text()}}</o>"))
        .collect();
    let rows = texts.iter().enumerate().map(|(at, text)| Subscription::new(at as u64, text));
    assert!(index.load(rows).unwrap().is_empty());
    let generation = index.commit().unwrap();
    let messages: Vec<Vec<u8>> = (0..20)
        .map(|first| {
            let elements = (0..100).map(|at| format!("<b n='{}'>{at}</b>", first * 100 + at));
            format!("<a>{}</a>", elements.collect::<String>()).into_bytes()
        })
        .collect();
    let transform = |capacity: usize| {
        let mut matcher = Matcher::new(Tuning::new(capacity));
        let (mut outputs, mut most) = (Vec::new(), 0);
        for message in &messages {
            let message = std::iter::once(message.as_slice());
            matcher.transform_batch(&generation, "", message, &Limits::default(), None, |outcome| {
                outputs.push(outcome.unwrap().1.bytes().to_vec());
            });
            most = most.max(matcher.cache_stats().bytes.bounded());
        }
        (outputs, most)
    };
    let (outputs, unbounded) = transform(CACHE_BYTES);
    assert!(outputs.iter().all(|output| !output.is_empty()));
    let capacity = unbounded / 2;
    let (again, bounded) = transform(capacity);
    assert_eq!(again, outputs);
    assert!(bounded <= capacity, "{bounded} bytes of {capacity}");
}
