//! Regular expressions of XPath, as the crate `regex` finds them.

use tamis::query::pattern::{BadPattern, Pattern};
use tamis::query::replacement::{Replacement, tokenize};

fn matches(pattern: &str, flags: &str, text: &str) -> bool {
    let pattern = Pattern::parse(pattern, flags).unwrap();
    let regex = pattern.compile().expect("every pattern that is read compiles");
    assert_eq!(regex.is_match(b""), pattern.matches_empty, "{pattern:?}");
    regex.is_match(text.as_bytes())
}

#[test]
fn patterns_mean_what_xpath_says() {
    let holding = [
        ("b", "", "abc"),
        ("^a.c$", "", "abc"),
        ("^[a-z-[aeiou]]+$", "", "xyz"),
        ("^\\i\\c*$", "", "a-1.b"),
        ("^\\d{2,3}$", "", "123"),
        ("HELLO", "i", "say hello"),
        ("a.b", "s", "a\nb"),
        ("^b$", "m", "a\nb\nc"),
        ("a b # c", "x", "ab#c"),
        ("a.c", "q", "xa.cx"),
        ("^(a|b|)$", "", ""),
        ("^[^a-c]$", "", "d"),
        ("^\\p{Lu}\\P{Lu}$", "", "Äb"),
        ("^[\\d\\-]+$", "", "1-2"),
        ("^[-a]+$", "", "-a"),
        ("^[a-]+$", "", "a-"),
        ("^(?:ab)+?$", "", "abab"),
        ("^\\w+$", "", "äb1"),
        ("x{0}", "", ""),
        ("^a{2}$", "", "aa"),
        ("[\\^x]", "", "^"),
        ("[.]", "", "."),
        ("^^a$$", "", "a"),
        ("^*a", "", "ba"),
        ("[a&&b]", "", "&"),
        ("[a~~b]", "", "~"),
    ];
    for (pattern, flags, text) in holding {
        assert!(matches(pattern, flags, text), "{pattern} {text}");
    }
    let failing = [
        ("^[a-z-[aeiou]]+$", "", "xay"),
        ("a.c", "", "a\nc"),
        ("^b$", "", "a\nb\nc"),
        ("a.c", "q", "abc"),
        ("a", "", "A"),
        ("^\\d{2,3}$", "", "1234"),
        ("^\\w$", "", "-"),
        ("^\\s$", "", "\u{a0}"),
        ("^[^\\d]$", "", "1"),
        ("[.]", "", "x"),
        ("a$", "", "a\n"),
        ("[a&&b]", "", "x"),
        ("^\\i$", "", "1"),
    ];
    for (pattern, flags, text) in failing {
        assert!(!matches(pattern, flags, text), "{pattern} {text}");
    }
}

#[test]
fn bad_patterns_say_why() {
    let cases = [
        ("(a)\\1", "back-references"),
        ("(?=a)", "look-around"),
        ("(?<!a)", "look-around"),
        ("a**", "repeats a quantifier"),
        ("*a", "repeats nothing"),
        ("[a", "not closed"),
        ("(a", "not closed"),
        ("a)", "closes no group"),
        ("[]", "empty"),
        ("[b-a]", "ends before"),
        ("\\b", "no escape"),
        ("\\p{Greek}", "no category"),
        ("\\p{IsGreek}", "blocks"),
        ("a{2,1}", "smaller"),
        ("a{,2}", "needs a number"),
        ("]", "closes nothing"),
        ("[[a]]", "is written"),
        ("\\", "ends in"),
        ("a{x}", "needs a number"),
        ("\\p", "needs a category"),
        ("a*+", "repeats a quantifier"),
    ];
    for (pattern, words) in cases {
        match Pattern::parse(pattern, "") {
            Err(BadPattern::Syntax(reason)) => assert!(reason.contains(words), "{pattern}: {reason}"),
            other => panic!("{pattern}: {other:?}"),
        }
    }
    assert!(matches!(Pattern::parse("a", "g"), Err(BadPattern::Syntax(_))));
    for pattern in ["((a{100}){100}){100}", "a{99999}", "(\\w{300}){2}"] {
        assert!(matches!(Pattern::parse(pattern, ""), Err(BadPattern::TooLarge(_))), "{pattern}");
    }
}

#[test]
fn matches_are_replaced_and_split_at() {
    let replaced = |text: &str, pattern: &str, with: &str| {
        let pattern = Pattern::parse(pattern, "").unwrap();
        let replacement = Replacement::parse(with, pattern.groups, false).unwrap();
        let regex = pattern.compile().unwrap();
        String::from_utf8(replacement.replace(&regex, text.as_bytes(), 100).unwrap()).unwrap()
    };
    assert_eq!(replaced("abracadabra", "bra", "*"), "a*cada*");
    assert_eq!(replaced("abracadabra", "a(.)", "a$1$1"), "abbraccaddabbra");
    assert_eq!(replaced("AAAA", "A+?", "b"), "bbbb");
    assert_eq!(replaced("a.b", "\\.", "\\$\\\\"), "a$\\b");
    assert_eq!(replaced("ab", "(a)", "$12"), "a2b");
    assert!(Replacement::parse("$", 0, false).is_err());
    let regex = Pattern::parse("\\s*,\\s*", "").unwrap().compile().unwrap();
    assert_eq!(tokenize(&regex, b"a , b,c,"), [&b"a"[..], b"b", b"c", b""]);
    assert!(tokenize(&regex, b"").is_empty());
}
