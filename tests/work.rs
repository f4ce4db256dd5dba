//! The work of a query on a message: counted, and bounded.

use tamis::engine::index::{Index, Subscription};
use tamis::engine::matcher::Matcher;
use tamis::ids::GenerationQuery;
use tamis::limits::Limits;
use tamis::matching::work::Work;
use tamis::query::Namespaces;
use tamis::tuning::{CACHE_BYTES, Tuning};

/// The queries that match a message, and the work.
fn matched(queries: &[String], message: &str) -> (Vec<u32>, Work) {
    let (matching, failed, work) = matched_within(queries, message, &Limits::default());
    assert_eq!(failed, [] as [u32; 0]);
    (matching, work)
}

/// The queries that match a message, those that exceeded the work limit, and the work.
fn matched_within(queries: &[String], message: &str, limits: &Limits) -> (Vec<u32>, Vec<u32>, Work) {
    let mut index = Index::new();
    let rows = queries.iter().enumerate().map(|(at, text)| Subscription::new(at as u64, text));
    assert!(index.load(rows).unwrap().is_empty());
    let generation = index.commit().unwrap();
    let mut outcome = None;
    Matcher::new(Tuning::new(CACHE_BYTES)).match_batch(
        &generation,
        "",
        std::iter::once(message.as_bytes()),
        limits,
        |matches| {
            let matches = matches.unwrap();
            let targets = |queries: &[GenerationQuery]| {
                generation.targets_of(queries).into_iter().map(|target| target as u32)
            };
            let (matching, failed) = (targets(&matches.queries), targets(&matches.failed));
            outcome = Some((matching.collect(), failed.collect(), matches.work));
        },
    );
    outcome.unwrap()
}

/// The work of matching one query, with thresholds of the test's choice.
fn work_of(query: &str, message: &str, tuning: Tuning) -> Work {
    let mut index = Index::new();
    index.insert(0, "", query, &Namespaces::new()).unwrap();
    let generation = index.commit().unwrap();
    let mut work = Work::default();
    let messages = std::iter::once(message.as_bytes());
    Matcher::new(tuning).match_batch(&generation, "", messages, &Limits::default(), |matches| {
        work = matches.unwrap().work;
    });
    work
}

/// Query, message, and how many candidates it is, of which settled and of which verified.
const STAGES: [(&str, &str, [u64; 3]); 12] = [
    // One condition decides the query: there is no row.
    ("//a[@x = 1]", "<a x='1'/>", [0, 0, 0]),
    ("//a/b", "<a><c/></a>", [0, 0, 0]),
    // The access test does not hold.
    ("//a[b][c = 'no']", "<a><b/><c>yes</c></a>", [0, 0, 0]),
    // The row decides: the branch point binds one element.
    ("//a[b][c]", "<r><a><b/><c/></a></r>", [1, 0, 0]),
    // Each alternative is a row.
    ("//a[b or c][d]", "<r><a><c/><d/></a></r>", [2, 0, 0]),
    ("not(//a)", "<b/>", [1, 0, 0]),
    // Several elements: the occurrences decide.
    ("//a[b][c]", "<r><a><b/></a><a><c/></a></r>", [1, 1, 0]),
    ("//a[@x = 1]//b[c]", "<r><a x='1'><b/></a><a><b><c/></b></a></r>", [1, 1, 0]),
    ("//a[b][2]", "<r><a><b/></a><a><b/></a></r>", [1, 1, 0]),
    // Elements of the branch point inside one another, a negation below it, a function: verified on the message.
    ("//a[b//x][.//c]", "<a><a><b><a><x/></a></b></a><c/></a>", [1, 0, 1]),
    ("//a[not(b)][c]", "<r><a><b/><c/></a><a><c/></a></r>", [1, 0, 1]),
    ("//a[contains(b, 'x')]", "<r><a><b>y</b></a></r>", [1, 0, 1]),
];

#[test]
fn each_query_is_decided_by_the_cheapest_stage_that_can() {
    let stages = STAGES.map(|(query, message, _)| {
        let work = work_of(query, message, Tuning::new(CACHE_BYTES));
        (query, message, [work.candidates, work.settled, work.verified])
    });
    assert_eq!(stages, STAGES);
    for (query, message, _) in STAGES {
        let work = work_of(query, message, Tuning::new(CACHE_BYTES));
        assert_eq!(work.steps > 0, work.verified > 0, "{query} on {message}: {work:?}");
        assert_eq!((work.looked_up, work.uncached), (0, 0), "{query} on {message}");
    }
}

#[test]
fn without_a_cache_what_would_be_settled_is_verified() {
    let message = "<r><a><b/></a><a><c/></a></r>";
    let work = work_of("//a[b][c]", message, Tuning::new(0));
    assert_eq!((work.candidates, work.settled, work.verified, work.uncached), (1, 0, 1, 1));
}

#[test]
fn elements_with_a_value_are_looked_up_once_many_were_tried() {
    let elements: String = (0..100).map(|number| format!("<e x='{number}'>text</e>")).collect();
    let message = format!("<r>{elements}</r>");
    let query = "//e[@x = '7'][contains(., 'none')]";
    let scanned = work_of(query, &message, Tuning::new(CACHE_BYTES));
    assert_eq!((scanned.verified, scanned.looked_up), (1, 0));
    assert!(scanned.steps >= 100, "{scanned:?}");
    let looked_up = work_of(query, &message, Tuning { scan_elements: 0, ..Tuning::new(CACHE_BYTES) });
    assert_eq!((looked_up.verified, looked_up.looked_up), (1, 1));
    assert!(looked_up.steps < 10, "{looked_up:?}");
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

/// Elements of one parent, each with two kinds of children: every query below has to look at all of them.
fn wide(elements: usize) -> String {
    let element = "<e x='1'><f>one</f><f>two</f></e>";
    format!("<r>{}</r>", element.repeat(elements))
}

#[test]
fn a_query_past_the_work_limit_fails_alone() {
    let hard = "//*[contains(., 'a0') or contains(., 'a1') or contains(., 'a2')]";
    let queries = ["//e", hard, "/r[e/@x = 1]", "//e[f = 'one'][f = 'two']", "not(//e[f = 'one'])"];
    let queries = queries.map(String::from);
    let message = wide(1_000);
    let (matching, failed, _) = matched_within(&queries, &message, &Limits::default());
    assert_eq!((matching.as_slice(), failed.as_slice()), (&[0, 2, 3][..], &[][..]));
    let limits = Limits { work: 1_000, ..Limits::default() };
    let (matching, failed, _) = matched_within(&queries, &message, &limits);
    assert_eq!((matching.as_slice(), failed.as_slice()), (&[0, 2, 3][..], &[1][..]));
}

#[test]
fn what_a_query_past_the_limit_leaves_behind_does_not_change_others() {
    // The same predicates, decided for the second query after the first has failed in the middle of them.
    let failing = "//*[contains(., 'a0') or contains(., 'a1') or .//f[not(. = 'two')][not(. = 'one')]]";
    let same = "/r/e[7][not(contains(., 'a0'))][not(contains(., 'a1'))]";
    let limits = Limits { work: 4_000, ..Limits::default() };
    let queries = [failing, same].map(String::from);
    let (matching, failed, _) = matched_within(&queries, &wide(1_000), &limits);
    assert_eq!((matching, failed), (vec![1], vec![0]));
}

#[test]
fn a_range_family_past_the_limit_fails_as_far_as_it_is_undecided() {
    let queries: Vec<String> =
        (0..200).map(|number| format!("//e[contains(f, 'none') or @x > {number}]/g")).collect();
    let message = wide(2_000).replace("</r>", "<e x='100'><g/></e></r>");
    let (matching, failed, _) = matched_within(&queries, &message, &Limits::default());
    assert_eq!((matching, failed), ((0..100).collect(), vec![]));
    let limits = Limits { work: 100, ..Limits::default() };
    let (matching, failed, work) = matched_within(&queries, &message, &limits);
    assert_eq!((matching.len(), failed.len()), (0, 200));
    assert!(work.verified < 200, "{work:?}");
}

#[test]
fn ordinary_queries_on_a_million_elements_are_within_the_default_limit() {
    let queries = [
        "//e[@x = 1][f = 'two'][f = 'one']",
        "//e[f[. = 'one']][not(f = 'three')]//f[contains(., 'x') or starts-with(., 'y')]",
        "/r/*[f > 5 or f = 'three' or @x > 2]",
        "//*[contains(., 'zzz')]",
        "/r/e[300000]/f[2][text() = 'two']",
    ]
    .map(String::from);
    let limits = Limits { document: 64 << 20, ..Limits::default() };
    let (_, failed, _) = matched_within(&queries, &wide(333_333), &limits);
    assert_eq!(failed, [] as [u32; 0]);
}
