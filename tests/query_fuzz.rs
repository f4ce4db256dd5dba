//! Queries at random: broken ones are refused and never more, whole ones keep their meaning
//! through every pass, and nothing in a query is too much for the stack.

mod support;

use tamis::document::{Document, Reader};
use tamis::limits::{QUERY_DEPTH_LIMIT, QUERY_LITERAL_LIMIT, QUERY_NODES_LIMIT, QUERY_TEXT_LIMIT};
use tamis::naive;
use tamis::query::{self, Namespaces};

use support::mutation::{self, check_mutated};
use support::random::Random;
use support::{cases, message, namespaces};

const MESSAGES: [&str; 6] = [
    "<a><a x='1'><b>1</b><b>2</b></a><b><a><c x='2'>1</c></a></b><c/></a>",
    "<a x='1' y=''>1<b>2</b>x<!--c-->3<b x='2'><c>1</c><c>x</c></b></a>",
    "<b><b><b><c/><a x='1'/></b><a>x</a></b><a>1</a></b>",
    "<a xmlns='urn:p'><b x='1'/><c xmlns=''>2<b/></c></a>",
    "<c>1</c>",
    "<a><b><c><a><b x='x'>1</b></a></c></b><b><c>2</c></b></a>",
];

/// Words that mutation puts together; most of the grammar is within two or three of them.
const WORDS: [&str; 64] = [
    "/",
    "//",
    "a",
    "b",
    "c",
    "*",
    "@x",
    "@*",
    "text()",
    ".",
    "[",
    "]",
    "[1]",
    "[2]",
    "[0]",
    "[b]",
    "[.//c]",
    "[@x = 1]",
    "[. = '1']",
    "[not(b)]",
    "[text()]",
    "(",
    ")",
    " and ",
    " or ",
    "not(",
    " | ",
    "=",
    "!=",
    "<",
    ">=",
    "'1'",
    "'x'",
    "''",
    "1",
    "2",
    "-1",
    "1.5",
    "contains(",
    "starts-with(",
    ", 'x')",
    ", '')",
    "true()",
    "false()",
    "$doc",
    "$x",
    "p:a",
    "p:*",
    "Q{urn:p}a",
    "Q{}*",
    "child::",
    "descendant::",
    "self::node()",
    "descendant-or-self::node()",
    "ancestor::",
    "..",
    "last()",
    " ",
    "é",
    "\"",
    "'",
    "[b and c]",
    "[b or @x]",
    "[/a]",
];

/// What the property needs of all messages: some are enough to tell two queries apart.
fn messages() -> Vec<(Document, Reader)> {
    MESSAGES.iter().map(|xml| message(xml.as_bytes())).collect()
}

/// Checks all that is true of any text; says whether it is a query.
fn check(text: &str, prefixes: &Namespaces, messages: &[(Document, Reader)]) -> bool {
    let written = match query::parse_as_written(text, prefixes) {
        Ok(written) => written,
        Err(error) => {
            assert!(
                error.position.offset <= text.len() && text.is_char_boundary(error.position.offset),
                "{text:?} {error}"
            );
            assert!(!error.reason.is_empty() && error.position.line > 0, "{text:?} {error}");
            return false;
        }
    };
    let query = query::parse(text, prefixes).unwrap();
    let canonical = query.canonical();
    let again = query::parse_as_written(&canonical, &Namespaces::new())
        .unwrap_or_else(|error| panic!("{text:?} → {canonical:?}: {error}"));
    match &query.transformation {
        Some(transformation) => assert_eq!(again.transformation.as_ref(), Some(transformation), "{text:?}"),
        None => assert_eq!(again, query, "{text:?} → {canonical:?}"),
    }
    assert_eq!(query::parse(&canonical, &Namespaces::new()).unwrap(), query, "{text:?} → {canonical:?}");
    let spelled = query::parse(&written.canonical(), &Namespaces::new()).unwrap();
    assert_eq!(spelled, query, "{text:?} and {:?} are one", written.canonical());
    for (document, reader) in messages {
        let truth = naive::matches(&written, document, reader.vocabulary());
        let kept = naive::matches(&query, document, reader.vocabulary());
        assert_eq!(kept, truth, "{text:?} → {canonical:?} on {}", String::from_utf8_lossy(&document.source));
    }
    true
}

#[test]
fn mutated_queries_are_refused_or_keep_their_meaning() {
    let prefixes = namespaces([("p", "urn:p"), ("q", "urn:q"), ("r", "urn:p")]);
    let messages = messages();
    let mut queries: Vec<String> =
        cases::behaviour().into_iter().flat_map(|case| case.queries).map(|(query, _)| query).collect();
    queries.extend(cases::refused().into_iter().map(|(query, ..)| query));
    queries.extend(cases::same().into_iter().flat_map(|(_, queries)| queries));
    let mutate = |text: &mut String, random: &mut Random| mutate(text, &queries, random);
    check_mutated(&queries, 7, 60_000, mutate, |text| check(text, &prefixes, &messages));
}

/// Breaks a query, puts a word in, or makes a condition of it.
fn mutate(text: &mut String, queries: &[String], random: &mut Random) {
    mutation::mutate(text, queries, 12, random, |text, start, random| match random.below(5) {
        0 => *text = format!("{text}[{}]", random.pick(queries)),
        1 => {
            *text = format!("{}[{text}]", random.pick(&["//a", "//b[2]", "//*", "a[b]", "//@x", "//text()"]))
        }
        2 => {
            *text = format!(
                "{}({text}) {} {}",
                random.pick(&["", "not"]),
                random.pick(&["and", "or"]),
                random.pick(queries)
            )
        }
        _ => text.insert_str(start, random.pick::<&str>(&WORDS)),
    });
}

#[test]
fn words_at_random_are_refused_or_keep_their_meaning() {
    let prefixes = namespaces([("p", "urn:p")]);
    let messages = messages();
    let mut random = Random::new(11);
    for _ in 0..60_000 {
        let text: String = (0..1 + random.below(9)).map(|_| *random.pick(&WORDS)).collect();
        check(&text, &prefixes, &messages);
    }
}

#[test]
fn bytes_at_random_are_refused_or_keep_their_meaning() {
    let messages = messages();
    let mut random = Random::new(13);
    let alphabet: Vec<char> =
        "ab/@*.[]()'\"=<>!|$:,{}Q-+ 019\t\n&#;é日\u{0}\u{7f}\u{ffff}😀".chars().collect();
    for _ in 0..60_000 {
        let text: String = (0..random.below(14)).map(|_| *random.pick(&alphabet)).collect();
        check(&text, &Namespaces::new(), &messages);
    }
}

/// Code and both numbers of the limit that a query passes.
fn exceeded(text: &str) -> (&'static str, u64, u64) {
    let error = query::parse(text, &Namespaces::new()).expect_err("past a limit");
    let exceeded = error.exceeded.unwrap_or_else(|| panic!("{error}"));
    assert!(error.reason.contains(&exceeded.limit.to_string()), "{error}");
    (error.code, exceeded.value, exceeded.limit)
}

#[test]
fn limits() {
    let accepted =
        |text: &str| query::parse(text, &Namespaces::new()).map(|query| query.canonical()).unwrap();
    let (text, depth, nodes, literal) =
        (QUERY_TEXT_LIMIT, QUERY_DEPTH_LIMIT, QUERY_NODES_LIMIT, QUERY_LITERAL_LIMIT);

    assert_eq!(exceeded(&" ".repeat(text + 1)), ("text-limit", text as u64 + 1, text as u64));
    assert_eq!(accepted(&format!("a{}", " ".repeat(text - 1))), "/a");

    for (open, inner, close) in [
        ("(", "a", ")"),
        ("not(", "a", ")"),
        ("a[", "b", "]"),
        ("not((", "a", "))"),
        ("contains(a[", "b", "], 'x')"),
    ] {
        let levels = open.matches(['(', '[']).count();
        let nested = |count: usize| format!("{}{inner}{}", open.repeat(count), close.repeat(count));
        accepted(&nested(depth / levels));
        let deep = exceeded(&nested(depth / levels + 1));
        assert_eq!(deep, ("depth-limit", depth as u64 + 1, depth as u64), "{open}");
        assert_eq!(exceeded(&nested(text / (open.len() + close.len()) - 1)).0, "depth-limit");
        let unclosed = query::parse(&open.repeat(text / open.len()), &Namespaces::new()).unwrap_err();
        assert_eq!(unclosed.code, "depth-limit");
    }

    for many in ["/a", "[a]", "[1]", " and a", " or a", " | a", "//@x | a", " or not(a)", " or a = 1"] {
        let error = query::parse(&format!("a{}", many.repeat(nodes)), &Namespaces::new()).unwrap_err();
        assert_eq!(error.code, "nodes-limit", "{many}");
        assert_eq!(error.exceeded.unwrap().limit, nodes as u64);
    }
    accepted(&format!("a{}", "/a".repeat(nodes - 2)));

    assert_eq!(
        exceeded(&format!("a = '{}'", "x".repeat(literal + 1))),
        ("literal-limit", literal as u64 + 1, literal as u64)
    );
    accepted(&format!("a = '{}'", "x".repeat(literal)));
    // A union repeats its literal, a prefix its URI.
    let union = format!("(a{}) = '{}'", " | a".repeat(1000), "x".repeat(1000));
    assert_eq!(exceeded(&union).0, "text-limit");
    let prefixes = namespaces([("p", "u".repeat(1000).as_str())]);
    let error = query::parse(&"/p:a".repeat(100), &prefixes).unwrap_err();
    assert_eq!(error.code, "text-limit");
}

/// The largest queries the limits let through are parsed, rewritten, written, hashed and evaluated
/// in little time, on a small stack.
#[test]
fn large_queries_are_survived() {
    let run = || {
        let deep = format!("{}{}", "<a>".repeat(200), "</a>".repeat(200));
        let (document, reader) = message(deep.as_bytes());
        let half = QUERY_DEPTH_LIMIT / 2;
        for text in [
            format!("{}b{}", "a[".repeat(QUERY_DEPTH_LIMIT), "]".repeat(QUERY_DEPTH_LIMIT)),
            format!("{}b{}", "a[b or not(".repeat(half), ")]".repeat(half)),
            format!("{}b{}", "not(a or ".repeat(QUERY_DEPTH_LIMIT), ")".repeat(QUERY_DEPTH_LIMIT)),
            format!("{}b{}", ".//*[".repeat(QUERY_DEPTH_LIMIT), "]".repeat(QUERY_DEPTH_LIMIT)),
            format!("{}b{}", "a[b][".repeat(QUERY_DEPTH_LIMIT), "][c]".repeat(QUERY_DEPTH_LIMIT)),
            format!("//a{}", "[b]".repeat(1000)),
            format!("//a{}", "[b][1]".repeat(600)),
            format!("//*{}", "//*".repeat(4000)),
            (0..600).map(|n| format!("//a[@x = {n}]")).collect::<Vec<_>>().join(" or "),
            (0..1000).rev().map(|n| format!("not(a/b{n})")).collect::<Vec<_>>().join(" and "),
            (0..60).fold("a".to_string(), |inner, n| format!("not({inner} and b{n})")),
        ] {
            let query = query::parse(&text, &Namespaces::new()).unwrap_or_else(|error| panic!("{error}"));
            query.id();
            naive::matches(&query, &document, reader.vocabulary());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}
