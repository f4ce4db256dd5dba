//! The worked example of CONTRIBUTING.md: counts its candidates, settled and verified rows.

use tamis::engine::index::Index;
use tamis::engine::matcher::Matcher;
use tamis::limits::Limits;
use tamis::query::Namespaces;
use tamis::tuning::{CACHE_BYTES, Tuning};

/// Whether the query matches the message, and how many rows were candidates, settled and verified.
fn matched(query: &str, message: &str) -> (bool, [u64; 3]) {
    let mut index = Index::new();
    index.insert(1, "", query, &Namespaces::new()).unwrap();
    let generation = index.commit().unwrap();
    let mut outcome = None;
    let messages = std::iter::once(message.as_bytes());
    Matcher::new(Tuning::new(CACHE_BYTES)).match_batch(
        &generation,
        "",
        messages,
        &Limits::default(),
        |matches| {
            let matches = matches.unwrap();
            let work = matches.work;
            outcome = Some((!matches.queries.is_empty(), [work.candidates, work.settled, work.verified]));
        },
    );
    outcome.unwrap()
}

#[test]
fn the_worked_example_is_settled_and_not_verified() {
    let page = include_str!("../CONTRIBUTING.md");
    let message = page.split("```xml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(matched("//item[price > 50][tag = 'sale']", message), (true, [1, 1, 0]));
    assert_eq!(matched("//item[price > 50][tag = 'new']", message), (false, [1, 1, 0]));
    // No row is filed under a condition that holds.
    assert_eq!(matched("//item[price > 50][tag = 'old']", message), (false, [0, 0, 0]));
    // The anchor binds one element only.
    let one = "<order><item><price>99</price><tag>sale</tag></item></order>";
    assert_eq!(matched("//item[price > 50][tag = 'sale']", one), (true, [1, 0, 0]));
    // `contains` is no condition of the index, so the candidate is verified.
    assert_eq!(matched("//item[price > 50][contains(tag, 'al')]", message), (true, [1, 0, 1]));
}
