//! What docs/language.md claims.

mod support;

use std::collections::BTreeSet;

use tamis::naive;
use tamis::query::{self, Namespaces};

use support::{cases, message, namespaces};

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/language.md")).unwrap()
}

/// The cells of the table that begins with this header.
fn table(page: &str, header: &str) -> Vec<Vec<String>> {
    let start = page.find(header).unwrap_or_else(|| panic!("no table {header}"));
    let rows = page[start..].lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let row = row.trim_matches('|').replace("\\|", "\u{1}");
        row.split('|').map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|")).collect()
    })
    .collect()
}

#[test]
fn examples_match_as_they_say() {
    let page = page();
    let start = page.find("```xml\n").unwrap() + "```xml\n".len();
    let xml = page[start..].split("```").next().unwrap();
    let (document, reader) = message(xml.as_bytes());
    let rows = table(&page, "| query | matches |");
    assert!(rows.len() > 20);
    for row in rows {
        let query =
            query::parse(&row[0], &Namespaces::new()).unwrap_or_else(|error| panic!("{}: {error}", row[0]));
        let matched = naive::matches(&query, &document, reader.vocabulary());
        assert_eq!(if matched { "yes" } else { "no" }, row[1], "{}", row[0]);
    }
}

#[test]
fn canonical_texts_are_as_they_say() {
    for row in table(&page(), "| as written | canonical |") {
        let written = row[0].split('`').next().unwrap();
        let query = query::parse(written, &namespaces([("p", "urn:p")])).expect(written);
        assert_eq!(query.canonical(), row[1], "{written}");
    }
}

#[test]
fn every_code_is_listed() {
    let listed: BTreeSet<String> =
        table(&page(), "| code | what |").into_iter().map(|row| row[0].clone()).collect();
    let mut known: BTreeSet<String> = cases::refused().into_iter().map(|(_, code, ..)| code).collect();
    known
        .extend(["namespace", "text-limit", "depth-limit", "nodes-limit", "literal-limit"].map(String::from));
    assert_eq!(listed, known);
}
