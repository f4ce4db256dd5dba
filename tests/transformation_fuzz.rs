//! Transformations at random: broken ones are refused and never more, whole ones keep their meaning as
//! canonical text, and what they make is well-formed.

mod support;

use tamis::document::{Document, Reader};
use tamis::limits::Limits;
use tamis::limits::{QUERY_DEPTH_LIMIT, QUERY_NODES_LIMIT, QUERY_TEXT_LIMIT};
use tamis::naive;
use tamis::query::{self, Namespaces, Query};

use support::mutation::{self, check_mutated};
use support::random::Random;
use support::{cases, message, namespaces};

const MESSAGES: [&str; 5] = [
    "<r><a i='1' j='&lt;'>s<b k='3'>t<!--c-->u</b><?p i?>v<b k='4'/></a><a><b/></a></r>",
    "<p:r xmlns:p='urn:p'><a p:i='1'><b/><p:c xml:lang='en'/></a><e xmlns='urn:e'><a xmlns=''/></e></p:r>",
    "<a xmlns='urn:p' xmlns:q='urn:q'><b x='1' q:x='2'/><c xmlns=''>2<b/><a>]]&gt;</a></c></a>",
    "<a><a><b>x</b></a><![CDATA[<a>]]><b>y</b></a>",
    "<!DOCTYPE r [<!ENTITY e '<a k=\"1\">&amp;</a>'> <!ATTLIST b x CDATA '0'>]><r>&e;<b xmlns:p='urn:p'/>&e;</r>",
];

/// Words that mutation puts together.
#[rustfmt::skip]
const WORDS: [&str; 64] = [
    "for $v in ", "for $x in ", "//a", "/r", "//p:a", "//*", "//b[2]", "//Q{urn:p}b", " where ", "$v/b", "$v", "$x",
    "$v/@*", "$v/@i", "$v//@x", "$v/text()", "$v//b", " = 'x'", " and ", "not(", ")", " return ", "<o>", "</o>", "<o/>",
    "<p:o>", "</p:o>", "<o ", ">", "/>", " i='1'", " i=\"{ $v/b }\"", " xmlns='urn:x'", " xmlns=''", " xmlns:p='urn:2'",
    " p:i='2'", "{", "}", "{{", "}}", "{ $v }", "{ $v/b }", "{ $v/@* }", "{ $v/@i }", "{ count($v/b) }",
    "{ string($v/b) }", "{ for $v in //a return $v }", "&lt;", "&#32;", "&", "<![CDATA[ ]]>", "<![CDATA[", "]]>", " ",
    "\n", "\r", "text", "é", "'", "\"", "(", "[b]", "$doc", "<!-- c -->",
];

fn messages() -> Vec<(Document, Reader)> {
    let limits = Limits { internal_subset: true, ..Limits::default() };
    let read = |xml: &&str| {
        let (mut document, mut reader) = (Document::default(), Reader::new());
        reader.read(xml.as_bytes(), &limits, &mut document).unwrap();
        (document, reader)
    };
    MESSAGES.iter().map(read).collect()
}

/// Checks all that is true of any text; says whether it is a transformation.
fn check(text: &str, prefixes: &Namespaces, messages: &[(Document, Reader)]) -> bool {
    let query = match query::parse_storable(text, prefixes) {
        Ok(durable) => durable.query,
        Err(error) => {
            assert!(error.position.offset <= text.len(), "{text:?} {error}");
            assert!(
                text.is_char_boundary(error.position.offset) && !error.reason.is_empty(),
                "{text:?} {error}"
            );
            return false;
        }
    };
    let canonical = query.canonical();
    let again = query::parse(&canonical, &Namespaces::new())
        .unwrap_or_else(|error| panic!("{text:?} → {canonical:?}: {error}"));
    assert_eq!(again, query, "{text:?} → {canonical:?}");
    if query.transformation.is_none() {
        return false;
    }
    let written = query::parse_as_written(text, prefixes).unwrap();
    for (document, reader) in messages {
        let output = |query: &Query| naive::transform(query, document, reader.vocabulary(), 1 << 20);
        let made = output(&query);
        assert_eq!(output(&written), made, "{text:?} → {canonical:?}");
        if let Ok(Some(output)) = made {
            let wrapped = [b"<w>", output.as_slice(), b"</w>"].concat();
            let read = Reader::new().read(&wrapped, &Limits::default(), &mut Document::default());
            let shown = String::from_utf8_lossy(&wrapped);
            read.unwrap_or_else(|error| panic!("{text:?} makes {shown:?}: {error}"));
        }
    }
    true
}

/// Whole transformations, and some that are nearly that.
fn seeds() -> Vec<String> {
    let mut queries: Vec<String> =
        cases::transforms().into_iter().flat_map(|case| case.queries).map(|(query, _)| query).collect();
    queries.extend(cases::refused().into_iter().map(|(query, ..)| query));
    queries.extend(cases::same().into_iter().flat_map(|(_, queries)| queries));
    queries.retain(|query| query.contains("return"));
    queries
}

#[test]
fn mutated_transformations_are_refused_or_keep_their_meaning() {
    let prefixes = namespaces([("p", "urn:p"), ("q", "urn:q"), ("r", "urn:p"), ("d", "urn:p")]);
    let (messages, seeds) = (messages(), seeds());
    let mutate = |text: &mut String, random: &mut Random| mutate(text, &seeds, random);
    check_mutated(&seeds, 17, 40_000, mutate, |text| check(text, &prefixes, &messages));
}

/// Breaks a transformation, puts a word in, or wraps a part of it.
fn mutate(text: &mut String, seeds: &[String], random: &mut Random) {
    mutation::mutate(text, seeds, 20, random, |text, start, random| match random.below(6) {
        0 if text.starts_with("for") => *text = format!("<w>{{ {text} }}</w>"),
        1 => {
            *text = text.replacen(
                "<o>",
                random.pick::<&str>(&["<o xmlns='urn:x'>", "<o><n>x</n>", "<o>{ $v/@* }", "<o i='{ $v }'>"]),
                1,
            )
        }
        2 => *text = text.replacen("return $v", "return <o>{ $v }</o>", 1),
        _ => text.insert_str(start, random.pick::<&str>(&WORDS)),
    });
}

#[test]
fn words_at_random_are_refused_or_keep_their_meaning() {
    let prefixes = namespaces([("p", "urn:p")]);
    let messages = messages();
    let mut random = Random::new(19);
    for _ in 0..60_000 {
        let head = *random.pick(&[
            "for $v in //a return ",
            "for $v in //* return <o>",
            "<o>{ for $v in //b return ",
            "",
        ]);
        let body: String = (0..random.below(6)).map(|_| *random.pick(&WORDS)).collect();
        let tail = match head {
            "for $v in //* return <o>" => "</o>",
            "<o>{ for $v in //b return " => " }</o>",
            _ => "",
        };
        check(&format!("{head}{body}{tail}"), &prefixes, &messages);
    }
}

/// The code of the limit that a transformation passes.
fn exceeded(text: &str) -> &'static str {
    let error = query::parse_storable(text, &Namespaces::new()).err().expect("past a limit");
    assert!(error.exceeded.is_some(), "{error}");
    error.code
}

#[test]
fn limits_hold_for_templates() {
    let nested = |depth: usize| {
        format!("for $v in //a return {}{{ $v }}{}", "<o>".repeat(depth), "</o>".repeat(depth))
    };
    assert!(query::parse_storable(&nested(QUERY_DEPTH_LIMIT - 1), &Namespaces::new()).is_ok());
    assert_eq!(exceeded(&nested(QUERY_DEPTH_LIMIT)), "depth-limit");
    assert_eq!(exceeded(&format!("for $v in //a return {}", "<o>".repeat(20_000))), "depth-limit");
    for many in ["<o/>", "{ $v }", "{ $v/b }", "<o i='1'/>"] {
        assert_eq!(
            exceeded(&format!("for $v in //a return <o>{}</o>", many.repeat(QUERY_NODES_LIMIT))),
            "nodes-limit"
        );
    }
    let attributes: String = (0..QUERY_NODES_LIMIT).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(exceeded(&format!("for $v in //a return <o{attributes}/>")), "nodes-limit");
    let blocks = "{ for $v in //a return $v }".repeat(2000);
    assert_eq!(exceeded(&format!("<o>{blocks}</o>")), "nodes-limit");
    assert_eq!(
        exceeded(&format!("for $v in //a return <o>{}</o>", "x".repeat(QUERY_TEXT_LIMIT))),
        "text-limit"
    );
    // Written out, a brace is two characters and a prefix of the map a declaration.
    let braces = format!("for $v in //a return <o><![CDATA[{}]]></o>", "{".repeat(QUERY_TEXT_LIMIT / 2));
    assert_eq!(exceeded(&braces), "text-limit");
    let prefixes = namespaces([("p", "u".repeat(1000).as_str())]);
    let text = format!("for $v in //a return <o>{}</o>", "<p:o/>".repeat(100));
    assert_eq!(query::parse(&text, &prefixes).unwrap_err().code, "text-limit");
}

/// The largest templates that the limits let through are parsed, written and carried out on a small stack,
/// and their outputs end at the limit on outputs.
#[test]
fn large_templates_are_survived() {
    let run = || {
        let (document, reader) = message(format!("<r>{}</r>", "<a><b/></a>".repeat(2000)).as_bytes());
        let deep = QUERY_DEPTH_LIMIT - 2;
        for text in [
            format!("<o>{}{{ for $v in //a return $v }}{}</o>", "<o>".repeat(deep), "</o>".repeat(deep)),
            format!("for $v in //a return <o>{}</o>", "{ $v }".repeat(1000)),
            format!("for $v in //* return <o>{}</o>", "{ $v//* }".repeat(1000)),
            format!("for $v in //a return <o i='{}'/>", "{ $v//* }".repeat(1000)),
            format!("<o>{}</o>", "{ for $v in //* return $v }".repeat(500)),
            format!("for $v in //a return <o>{}</o>", "x".repeat(60_000)),
        ] {
            let query = query::parse_storable(&text, &Namespaces::new()).map(|parsed| parsed.query);
            let query = query.unwrap_or_else(|error| panic!("{error}"));
            if let Err(error) = naive::transform(&query, &document, reader.vocabulary(), 1 << 20) {
                assert_eq!(error.code, "output-limit");
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}
