//! Checks the examples and tables of docs/language.md.

mod support;

use std::collections::BTreeSet;

use tamis::document::{Document, Reader};
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

/// The message of all examples.
fn example(page: &str) -> (Document, Reader) {
    let start = page.find("```xml\n").unwrap() + "```xml\n".len();
    message(page[start..].split("```").next().unwrap().as_bytes())
}

#[test]
fn examples_make_what_they_say() {
    let page = page();
    let (document, reader) = example(&page);
    let rows = table(&page, "| transformation | makes |");
    assert!(rows.len() > 8);
    for row in rows {
        let query =
            query::parse(&row[0], &Namespaces::new()).unwrap_or_else(|error| panic!("{}: {error}", row[0]));
        let made = naive::transform(&query, &document, reader.vocabulary(), 1 << 16).unwrap();
        match made {
            Some(output) => assert_eq!(String::from_utf8(output).unwrap(), row[1], "{}", row[0]),
            None => assert!(row[1].starts_with("nothing"), "{}", row[0]),
        }
    }
}

#[test]
fn examples_match_as_they_say() {
    let page = page();
    let (document, reader) = example(&page);
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
