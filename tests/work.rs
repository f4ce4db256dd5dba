//! How much work a query is on a message: bounded, and counted.

use tamis::engine::index::Index;
use tamis::engine::matcher::Matcher;
use tamis::limits::Limits;
use tamis::matching::candidates::Work;
use tamis::query::Namespaces;
use tamis::tuning::{CACHE_BYTES, Tuning};

/// The queries that match a message, and the work.
fn matched(queries: &[String], message: &str) -> (Vec<u32>, Work) {
    let mut index = Index::new();
    let rows = queries.iter().enumerate().map(|(at, text)| (at as u64, "", text.as_str()));
    assert!(index.load(rows, &Namespaces::default()).unwrap().is_empty());
    let generation = index.commit().unwrap();
    let mut outcome = None;
    Matcher::new(Tuning::new(CACHE_BYTES)).match_batch(
        &generation,
        "",
        std::iter::once(message.as_bytes()),
        &Limits::default(),
        |matches| {
            let matches = matches.unwrap();
            outcome = Some((matches.queries.clone(), matches.work));
        },
    );
    outcome.unwrap()
}

/// A query over `count` disjuncts, in which `%` is the number of the disjunct.
fn disjunction(template: &str, disjunct: &str, count: usize) -> String {
    let disjuncts: Vec<String> =
        (0..count).map(|number| disjunct.replace('%', &number.to_string())).collect();
    template.replace('?', &disjuncts.join(" or "))
}

const DISJUNCTIONS: [(&str, &str); 7] = [
    ("//*[?]", "contains(., 'a%')"),
    ("//*[?]", "starts-with(., 'a%')"),
    ("//*[?]", "contains(@x, 'a%')"),
    ("//*[?]", "contains(text(), 'a%')"),
    ("?", "//e[contains(., 'a%')]"),
    ("//*[?]", "contains(y%, 'a')"),
    ("//*[?]", "e[y%][@x]"),
];

#[test]
fn a_query_is_verified_once_however_many_alternatives_it_has() {
    let ys: String = (0..40).map(|number| format!("<y{number}/>")).collect();
    for (template, disjunct) in DISJUNCTIONS {
        let none = format!("<r>{ys}<e>b</e><e x='b'>b</e></r>");
        let (queries, work) = matched(&[disjunction(template, disjunct, 40)], &none);
        assert_eq!(queries, [] as [u32; 0], "{template} {disjunct}");
        assert!(work.verified <= 1, "{template} {disjunct}: {work:?}");
        let one = format!("<r>{ys}<e>b</e><e x='a7'>a7<y0>a</y0></e></r>");
        let (queries, work) = matched(&[disjunction(template, disjunct, 40)], &one);
        assert_eq!(queries, [0], "{template} {disjunct}");
        assert!(work.verified <= 1, "{template} {disjunct}: {work:?}");
    }
}

#[test]
fn equal_alternatives_are_one_candidate() {
    for (template, disjunct) in &DISJUNCTIONS[..5] {
        let (_, work) = matched(&[disjunction(template, disjunct, 40)], "<r><e x='b'>b</e></r>");
        assert!(work.candidates <= 1, "{template} {disjunct}: {work:?}");
    }
}
