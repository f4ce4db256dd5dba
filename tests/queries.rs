//! Behaviour as data: the meaning of queries, refusals, canonical forms.

mod support;

use tamis::document::NodeRef;
use tamis::naive;
use tamis::query::{self, Namespaces};

use support::cases::{self, Case};
use support::{message, namespaces};

/// The prefixes that canonical.toml and refused.toml use.
fn prefixes() -> Namespaces {
    namespaces([("p", "urn:p"), ("r", "urn:p")])
}

#[test]
fn queries_mean_what_xpath_says() {
    let mut assertions = 0;
    for Case { name, xml, namespaces, queries } in cases::behaviour() {
        let (document, reader) = message(xml.as_bytes());
        for (text, expected) in queries {
            let place = format!("{name}: {text}");
            let written = query::parse_as_written(&text, &namespaces).expect(&place);
            let canonical = query::parse(&text, &namespaces).expect(&place);
            let vocabulary = reader.vocabulary();
            assert_eq!(naive::matches(&written, &document, vocabulary), expected, "{place}");
            assert_eq!(naive::matches(&canonical, &document, vocabulary), expected, "{place}, {canonical:?}");
            if naive::select(&canonical, &document, vocabulary).is_empty() == expected {
                // Nothing is selected by a true query only if some of it is not about presence.
                let written = canonical.canonical();
                let computed = format!("{:?}", canonical.expr).contains("Computed");
                assert!(expected && (computed || written.contains("not(") || written == "true()"), "{place}");
            }
            assertions += 1;
        }
    }
    assert!(assertions > 1000, "{assertions}");
}

/// Which nodes a query selects, as their place in the message.
#[test]
fn selected_nodes_are_in_document_order() {
    let (document, reader) = message(b"<a x='1'><b y='2'>t</b><a x='3'><b>u</b></a>v</a>");
    let written = |node: NodeRef| match node {
        NodeRef::Document => "document".to_string(),
        NodeRef::Element(id) => format!("element {}", id.0),
        NodeRef::Attribute(id, place) => format!("attribute {place} of {}", id.0),
        NodeRef::Text(place) => format!("text {place}"),
        NodeRef::Other(place) => format!("other {place}"),
    };
    for (text, expected) in [
        ("//b", "element 1, element 3"),
        ("//a//b", "element 1, element 3"),
        ("//b | //a", "element 0, element 1, element 2, element 3"),
        (
            "//a/@x | //b | //text()",
            "attribute 0 of 0, element 1, text 0, attribute 2 of 2, element 3, text 1, text 2",
        ),
        ("//b = 'u'", "element 3"),
        ("//b[. = 'u']", "element 3"),
        ("//b and //@y", "element 1, attribute 1 of 1, element 3"),
        ("//b and //z", ""),
        ("//z and //b or //@y", "attribute 1 of 1"),
        ("//b and not(//z)", "element 1, element 3"),
        ("not(not(//a[b]))", "element 0, element 2"),
        ("not(//z)", ""),
        ("contains(//b, 't')", "element 1"),
        ("contains(//b, 'u')", ""),
        ("//@*[. > 1]", "attribute 1 of 1, attribute 2 of 2"),
        ("/ = 'tuv'", "element 0"),
    ] {
        let query = query::parse(text, &Namespaces::new()).expect(text);
        let nodes = naive::select(&query, &document, reader.vocabulary());
        assert_eq!(nodes.into_iter().map(written).collect::<Vec<_>>().join(", "), expected, "{text}");
    }
}

#[test]
fn canonical_text_is_the_same_query_again() {
    for Case { name, namespaces, queries, .. } in cases::behaviour() {
        for (text, _) in queries {
            let query = query::parse(&text, &namespaces).expect(&name);
            let canonical = query.canonical();
            let again = query::parse(&canonical, &Namespaces::new()).expect(&canonical);
            assert_eq!(again, query, "{text} → {canonical}");
            assert_eq!(again.id(), query.id());
            let unchanged = query::parse_as_written(&canonical, &Namespaces::new()).expect(&canonical);
            assert_eq!(unchanged, query, "{text} → {canonical} is rewritten once more");
        }
    }
}

#[test]
fn spellings_of_one_query_are_one() {
    for (canonical, spellings) in cases::same() {
        for spelling in spellings {
            let query = query::parse(&spelling, &prefixes()).expect(&spelling);
            assert_eq!(query.canonical(), canonical, "{spelling}");
        }
        let again = query::parse(&canonical, &Namespaces::new()).expect(&canonical);
        assert_eq!(again.canonical(), canonical);
    }
}

#[test]
fn queries_that_differ_stay_apart() {
    for queries in cases::distinct() {
        let mut ids: Vec<_> =
            queries.iter().map(|text| query::parse(text, &prefixes()).expect(text).id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), queries.len(), "{queries:?}");
    }
}

#[test]
fn refusals_have_code_position_and_reason() {
    let mut wrong = Vec::new();
    for (text, code, offset, reason) in cases::refused() {
        match query::parse(&text, &prefixes()) {
            Ok(query) => wrong.push(format!("{text:?} is accepted: {}", query.canonical())),
            Err(error) => {
                if (error.code, error.position.offset) != (&code, offset) || !error.reason.contains(&reason) {
                    wrong.push(format!("{text:?} at {}: {error}", error.position.offset));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ids are kept in files and compared between machines: they may not change.
#[test]
fn ids_are_stable() {
    for (text, id) in
        [("/a/b", "c739dc4eb95ab935930cd8aa5324574c"), ("//a[@x='1'][b]", "f643e559ffc16257638aa93838badd39")]
    {
        let query = query::parse(text, &Namespaces::new()).expect(text);
        assert_eq!(query.id().to_string(), id, "{text}");
    }
}

#[test]
fn prefixes_are_checked() {
    let mut namespaces = Namespaces::new();
    for (prefix, uri) in [
        ("1a", "urn:a"),
        ("a:b", "urn:a"),
        ("a b", "urn:a"),
        ("xmlns", "urn:a"),
        ("xml", "urn:a"),
        ("a", "http://www.w3.org/XML/1998/namespace"),
        ("a", ""),
        ("a", "urn:{a}"),
    ] {
        assert_eq!(namespaces.bind(prefix, uri).expect_err(prefix).code, "namespace", "{prefix} {uri}");
    }
    assert!(namespaces.bind("xml", "http://www.w3.org/XML/1998/namespace").is_ok());
    assert!(namespaces.bind("", "urn:default").is_ok());
    namespaces.bind("a", "urn:1").unwrap();
    namespaces.bind("a", "urn:2").unwrap();
    assert_eq!(namespaces.uri("a"), Some("urn:2"));
    assert_eq!(namespaces.uri("b"), None);
}
