//! Queries that differ in one constant only, that of a range test: the message that matches one of them
//! matches all with an easier constant. So of many such, a few are verified, and these say it of all.

use rustc_hash::FxHashMap;

use crate::query::ast::Operator;
use crate::segment::twig::*;

/// Queries to verify, by what they have in common.
#[derive(Default)]
pub struct Alike {
    kinds: FxHashMap<Box<[u32]>, Vec<(f64, u32)>>,
    /// The others.
    single: Vec<u32>,
    form: Form,
}

impl Alike {
    /// Takes queries, which are given with the offsets of their twigs, in the place of those before.
    pub fn sort(&mut self, words: &[u32], queries: impl Iterator<Item = (u32, u32)>) {
        self.kinds.clear();
        self.single.clear();
        for (query, offset) in queries {
            let Some(ease) = self.form.of(words, offset) else {
                self.single.push(query);
                continue;
            };
            let words = self.form.words.as_slice();
            match self.kinds.get_mut(words) {
                Some(queries) => queries.push((ease, query)),
                None => drop(self.kinds.insert(words.into(), vec![(ease, query)])),
            }
        }
        self.kinds.values_mut().for_each(|queries| queries.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a)));
    }

    /// Hands over the queries that match, as `verify` says of some of them.
    pub fn matching(&self, mut verify: impl FnMut(u32) -> bool, mut found: impl FnMut(u32)) {
        self.single.iter().filter(|&&query| verify(query)).for_each(|&query| found(query));
        for queries in self.kinds.values() {
            let count = queries.partition_point(|&(_, query)| verify(query));
            queries[..count].iter().for_each(|&(_, query)| found(query));
        }
    }
}

/// What a query is but for the constant of its range test.
#[derive(Default)]
struct Form {
    /// The twig, its parts in their places; parts without the range test as their offsets.
    words: Vec<u32>,
    /// The constant, or its negative: the greater, the easier to pass.
    ease: Option<f64>,
}

/// In the place of a tag: what follows is the offset of a part.
const ELSEWHERE: u32 = 0xFF;

/// There are several range tests, or one whose passing more often does not make a match more likely.
struct Other;

impl Form {
    /// Finds the form of a query, and how easy its range test is; none if there is not one such test.
    fn of(&mut self, words: &[u32], offset: u32) -> Option<f64> {
        self.words.clear();
        self.ease = None;
        self.expr(words, offset).ok()?;
        self.ease
    }

    fn expr(&mut self, words: &[u32], offset: u32) -> Result<(), Other> {
        let (start, before) = (self.words.len(), self.ease.is_some());
        let word = words[offset as usize];
        match word & 0xFF {
            AND | OR => {
                self.words.push(word);
                for at in 1..=word >> 8 {
                    self.expr(words, words[(offset + at) as usize])?;
                }
            }
            NOT => {
                self.expr(words, words[offset as usize + 1])?;
                self.refuse_if(self.ease.is_some() != before)?;
            }
            _ => self.path(words, offset)?,
        }
        if self.ease.is_some() == before {
            self.words.truncate(start);
            self.words.extend([ELSEWHERE, offset]);
        }
        Ok(())
    }

    fn path(&mut self, words: &[u32], offset: u32) -> Result<(), Other> {
        let (word, test) = (words[offset as usize], words[offset as usize + 1]);
        self.words.extend([word, test]);
        let kind = test & 0xFF;
        let literal = match kind {
            TEST_EXISTS => 0,
            TEST_NUMBER => 2,
            _ => (test >> 16).div_ceil(4),
        };
        let mut at = offset as usize + 2;
        let (literal, operator) = (&words[at..at + literal as usize], test >> 8 & 0xFF);
        at += literal.len();
        let before = self.ease.is_some();
        for _ in 0..word >> 16 {
            at = self.step(words, at)?;
        }
        // Of what is selected these see the first node, which may be another one.
        let sees_first = matches!(kind, TEST_CONTAINS | TEST_STARTS_WITH);
        self.refuse_if(sees_first && self.ease.is_some() != before)?;
        if kind == TEST_NUMBER && operator >= operator_code(Operator::Less) {
            let constant = f64::from_bits(literal[0] as u64 | (literal[1] as u64) << 32);
            self.refuse_if(self.ease.is_some() || constant.is_nan())?;
            let is_upper = operator <= operator_code(Operator::LessOrEqual);
            self.ease = Some(if is_upper { constant } else { -constant });
        } else {
            self.words.extend_from_slice(literal);
        }
        Ok(())
    }

    /// Takes a step, and returns where the next one stands.
    fn step(&mut self, words: &[u32], at: usize) -> Result<usize, Other> {
        let (word, label) = (words[at], words[at + 1]);
        let predicates = &words[at + 2..][..(word >> 8) as usize];
        self.words.extend([word, label]);
        let before = self.ease.is_some();
        for &predicate in predicates {
            match predicate & POSITION {
                0 => self.expr(words, predicate)?,
                _ => self.words.push(predicate),
            }
        }
        // What passes is counted.
        let counts = predicates.iter().any(|predicate| predicate & POSITION != 0);
        self.refuse_if(counts && self.ease.is_some() != before)?;
        Ok(at + 2 + predicates.len())
    }

    fn refuse_if(&self, refused: bool) -> Result<(), Other> {
        if refused { Err(Other) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Namespaces, parse};

    /// Which of some queries stand for others.
    fn kinds(queries: &[&str]) -> Vec<Vec<u32>> {
        let (mut twigs, mut labels) = (Twigs::default(), Vec::new());
        let mut offsets = Vec::new();
        for (number, text) in queries.iter().enumerate() {
            let query = parse(text, &Namespaces::default()).expect("a query");
            let mut label = |test: &crate::query::ast::NameTest| {
                let known = labels.iter().position(|other| other == test);
                known.unwrap_or_else(|| {
                    labels.push(test.clone());
                    labels.len() - 1
                }) as u32
            };
            offsets.push((number as u32, twigs.compile(&query.expr, &mut label)));
        }
        let mut alike = Alike::default();
        alike.sort(twigs.words(), offsets.into_iter());
        let of = |queries: &Vec<(f64, u32)>| queries.iter().map(|&(_, query)| query).collect();
        let mut kinds: Vec<Vec<u32>> = alike.kinds.values().map(of).collect();
        kinds.extend(alike.single.iter().map(|&query| vec![query]));
        kinds.sort();
        kinds
    }

    #[test]
    fn the_easiest_comes_first() {
        assert_eq!(kinds(&["//a[@x > 7][@y]", "//a[@x > 5][@y]", "//a[@x > 6][@y]"]), [[1, 2, 0]]);
        assert_eq!(kinds(&["//a[b//c <= 7 or d]", "//a[b//c <= -5 or d]"]), [[0, 1]]);
        assert_eq!(kinds(&["//a[@x > 1][contains(., 'b')][2]/@y >= 7", "//a[@x > 1]"]), [[0], [1]]);
        assert_eq!(
            kinds(&["//a[contains(., 'b')][2]/@y >= 7", "//a[contains(., 'b')][2]/@y >= 5"]),
            [[1, 0]]
        );
    }

    #[test]
    fn queries_that_differ_otherwise_are_not_alike() {
        let other =
            ["//a[@x >= 1][@y]", "//a[@x > 1][@z]", "//a[@z > 1][@y]", "//a[@x > 1]/@y", "//a[@x < 1][@y]"];
        for query in other {
            assert_eq!(kinds(&["//a[@x > 2][@y]", query]), [[0], [1]], "{query}");
        }
        assert_eq!(kinds(&["//a[@x > 2][@y = 'b']", "//a[@x > 1][@y = 'c']"]), [[0], [1]]);
    }

    #[test]
    fn where_more_passing_may_match_less_each_is_verified() {
        for form in [
            "//a[not(@x > %)][@y]",
            "//a[@x > %][2][@y]",
            "//a[b[@x > %]][2][@y]",
            "//a[contains(b[@x > %], 'c')]",
            "//a[@x > %][@y < %]",
        ] {
            let queries = ["1", "2"].map(|constant| form.replace('%', constant));
            assert_eq!(kinds(&[&queries[0], &queries[1]]), [[0], [1]], "{form}");
        }
    }

    #[test]
    fn few_are_verified_for_many() {
        let texts: Vec<String> = (0..1000).map(|constant| format!("//a[@x > {constant}][@y]")).collect();
        let mut twigs = Twigs::default();
        let queries = texts.iter().enumerate().map(|(number, text)| {
            let query = parse(text, &Namespaces::default()).expect("a query");
            (number as u32, twigs.compile(&query.expr, &mut |_| 1))
        });
        let queries: Vec<_> = queries.collect();
        let mut alike = Alike::default();
        alike.sort(twigs.words(), queries.into_iter());
        let (mut verified, mut found) = (0, Vec::new());
        let verify = |query| {
            verified += 1;
            query < 617
        };
        alike.matching(verify, |query| found.push(query));
        found.sort_unstable();
        assert_eq!(found, (0..617).collect::<Vec<_>>());
        assert!(verified <= 11);
    }
}
