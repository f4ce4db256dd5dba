//! Range families: queries that differ only in the constant of one range test. A message that matches one of them
//! matches all with an easier constant: the outcome is monotone, so a binary search over the family decides all of it
//! with a logarithmic number of verifications.
//!
//! ```text
//! //item[price > 10]/note    //item[price > 50]/note    //item[price > 80]/note
//! verified: > 50, which matches, so > 10 matches too; then > 80
//! ```

use rustc_hash::FxHashMap;

use crate::ids::SegmentQuery;
use crate::matching::budget::WorkLimit;
use crate::query::ast::Operator;
use crate::segment::twig::*;

/// Queries to verify, grouped by all but that constant.
#[derive(Default)]
pub struct RangeFamilies {
    /// By form: each query with its ease, the easiest first.
    families: FxHashMap<Box<[u32]>, Vec<(f64, SegmentQuery)>>,
    /// Queries of no family.
    single: Vec<SegmentQuery>,
    form: Form,
}

impl RangeFamilies {
    /// Replaces the queries, which are given with the offsets of their twigs.
    pub fn group(&mut self, words: &[u32], queries: impl Iterator<Item = (SegmentQuery, u32)>) {
        self.families.clear();
        self.single.clear();
        for (query, offset) in queries {
            let Some(ease) = self.form.of(words, offset) else {
                self.single.push(query);
                continue;
            };
            let words = self.form.words.as_slice();
            match self.families.get_mut(words) {
                Some(queries) => queries.push((ease, query)),
                None => drop(self.families.insert(words.into(), vec![(ease, query)])),
            }
        }
        self.families
            .values_mut()
            .for_each(|queries| queries.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a)));
    }

    /// Verifies some of the queries and calls `found` for all that match, `failed` for all that failed. If one of a
    /// family reaches the work limit, those that are not decided yet fail too: each would take as long.
    pub fn decide(
        &self,
        mut verify: impl FnMut(SegmentQuery) -> Result<bool, WorkLimit>,
        mut found: impl FnMut(SegmentQuery),
        mut failed: impl FnMut(SegmentQuery),
    ) {
        for &query in &self.single {
            match verify(query) {
                Ok(true) => found(query),
                Ok(false) => {}
                Err(WorkLimit) => failed(query),
            }
        }
        for queries in self.families.values() {
            // The queries before `matching` match, those from `others` on do not.
            let (mut matching, mut others) = (0, queries.len());
            while matching < others {
                let middle = matching.midpoint(others);
                match verify(queries[middle].1) {
                    Ok(true) => matching = middle + 1,
                    Ok(false) => others = middle,
                    Err(WorkLimit) => break,
                }
            }
            queries[..matching].iter().for_each(|&(_, query)| found(query));
            queries[matching..others].iter().for_each(|&(_, query)| failed(query));
        }
    }
}

/// A query without the constant of its range test.
#[derive(Default)]
struct Form {
    /// The words of the twig down to the range test; parts without it as their offsets.
    words: Vec<u32>,
    /// The constant, or its negative: the greater, the easier the test.
    ease: Option<f64>,
}

/// Instead of a tag: the offset of a part follows.
const BY_OFFSET: u32 = 0xFF;

/// The query is not monotone in one constant: it has several range tests, or one below `not` or a position.
struct NotMonotone;

impl Form {
    /// Finds the form of a query and returns its ease; `None` if it belongs to no family.
    fn of(&mut self, words: &[u32], offset: u32) -> Option<f64> {
        self.words.clear();
        self.ease = None;
        self.expr(words, offset).ok()?;
        self.ease
    }

    fn expr(&mut self, words: &[u32], offset: u32) -> Result<(), NotMonotone> {
        let (start, before) = (self.words.len(), self.ease.is_some());
        let word = words[offset as usize];
        match word & 0xFF {
            AND | OR => {
                self.words.push(word);
                for at in 1..=word >> 8 {
                    self.expr(words, part(words, offset, at))?;
                }
            }
            NOT => {
                self.expr(words, part(words, offset, 1))?;
                self.refuse_if(self.ease.is_some() != before)?;
            }
            COMPUTED => {}
            _ => self.path(words, offset)?,
        }
        if self.ease.is_some() == before {
            self.words.truncate(start);
            self.words.extend([BY_OFFSET, offset]);
        }
        Ok(())
    }

    fn path(&mut self, words: &[u32], offset: u32) -> Result<(), NotMonotone> {
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
            at = self.step(words, offset, at)?;
        }
        // These tests read the first selected node, which may be another one with another constant.
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

    /// Adds a step and returns where the next one begins.
    fn step(&mut self, words: &[u32], path: u32, at: usize) -> Result<usize, NotMonotone> {
        let (word, label) = (words[at], words[at + 1]);
        let predicates = &words[at + 2..][..(word >> 8) as usize];
        self.words.extend([word, label]);
        let before = self.ease.is_some();
        for (place, &predicate) in (at as u32 + 2 - path..).zip(predicates) {
            match predicate & POSITION {
                0 => self.expr(words, part(words, path, place))?,
                _ => self.words.push(predicate),
            }
        }
        // Positions count the elements that pass.
        let counts = predicates.iter().any(|predicate| predicate & POSITION != 0);
        self.refuse_if(counts && self.ease.is_some() != before)?;
        Ok(at + 2 + predicates.len())
    }

    fn refuse_if(&self, refused: bool) -> Result<(), NotMonotone> {
        if refused { Err(NotMonotone) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelId;
    use crate::query::{Namespaces, parse};

    /// The families of some queries.
    fn families(queries: &[&str]) -> Vec<Vec<u32>> {
        let (mut twigs, mut labels) = (Twigs::default(), Vec::new());
        let mut offsets = Vec::new();
        for (number, text) in queries.iter().enumerate() {
            let query = parse(text, &Namespaces::default()).expect("a query");
            let mut label = |test: &crate::query::ast::NameTest| {
                let known = labels.iter().position(|other| other == test);
                LabelId::from(known.unwrap_or_else(|| {
                    labels.push(test.clone());
                    labels.len() - 1
                }))
            };
            offsets.push((SegmentQuery::from(number), twigs.compile(&query.expr, &mut label)));
        }
        let mut grouped = RangeFamilies::default();
        grouped.group(twigs.words(), offsets.into_iter());
        let of = |queries: &Vec<(f64, SegmentQuery)>| queries.iter().map(|&(_, query)| query.0).collect();
        let mut families: Vec<Vec<u32>> = grouped.families.values().map(of).collect();
        families.extend(grouped.single.iter().map(|&query| vec![query.0]));
        families.sort();
        families
    }

    #[test]
    fn the_easiest_comes_first() {
        assert_eq!(families(&["//a[@x > 7][@y]", "//a[@x > 5][@y]", "//a[@x > 6][@y]"]), [[1, 2, 0]]);
        assert_eq!(families(&["//a[b//c <= 7 or d]", "//a[b//c <= -5 or d]"]), [[0, 1]]);
        assert_eq!(families(&["//a[@x > 1][contains(., 'b')][2]/@y >= 7", "//a[@x > 1]"]), [[0], [1]]);
        assert_eq!(
            families(&["//a[contains(., 'b')][2]/@y >= 7", "//a[contains(., 'b')][2]/@y >= 5"]),
            [[1, 0]]
        );
    }

    #[test]
    fn queries_that_differ_otherwise_are_in_different_families() {
        let other =
            ["//a[@x >= 1][@y]", "//a[@x > 1][@z]", "//a[@z > 1][@y]", "//a[@x > 1]/@y", "//a[@x < 1][@y]"];
        for query in other {
            assert_eq!(families(&["//a[@x > 2][@y]", query]), [[0], [1]], "{query}");
        }
        assert_eq!(families(&["//a[@x > 2][@y = 'b']", "//a[@x > 1][@y = 'c']"]), [[0], [1]]);
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
            assert_eq!(families(&[&queries[0], &queries[1]]), [[0], [1]], "{form}");
        }
    }

    #[test]
    fn few_are_verified_for_many() {
        let texts: Vec<String> = (0..1000).map(|constant| format!("//a[@x > {constant}][@y]")).collect();
        let mut twigs = Twigs::default();
        let queries = texts.iter().enumerate().map(|(number, text)| {
            let query = parse(text, &Namespaces::default()).expect("a query");
            (SegmentQuery::from(number), twigs.compile(&query.expr, &mut |_| LabelId(1)))
        });
        let queries: Vec<_> = queries.collect();
        let mut grouped = RangeFamilies::default();
        grouped.group(twigs.words(), queries.into_iter());
        let (mut verified, mut found) = (0, Vec::new());
        let mut verify = |query: SegmentQuery| {
            verified += 1;
            query.0 < 617
        };
        grouped.decide(|query| Ok(verify(query)), |query| found.push(query.0), |_| {});
        found.sort_unstable();
        assert_eq!(found, (0..617).collect::<Vec<_>>());
        assert!(verified <= 11);
    }
}
