//! Query → a weaker one that routes: a disjunction of conjunctions of absolute linear paths with value tests.
//! Every message that the query matches satisfies it. Disjunctive normal form, as for routing queries in ONYX
//! (seed 001, section 7.3.2).
//!
//! ```text
//! /nitf[head/pubdata[@area = 'SF']][.//series]   →  /nitf/head/pubdata/@area='SF' and /nitf//series
//! //a[b and not(c)][2] or contains(/d, 'x')      →  //a/b or /d
//! not(//a)                                       →  true()
//! ```
//!
//! It takes the alternatives of the decomposition and drops what cannot be said of one path: negated lines,
//! positions, and that lines part at one element. Then it drops an alternative with all lines of another one.
//! Cost: that of decomposing, and quadratic in the number of alternatives, which is bounded.

use std::collections::BTreeSet;

use super::ast::{Expr, Literal, Operator, Query, Test};
use super::canonical::canonicalise;
use super::decompose::{Check, Decomposition, LinearPath, Subject, decompose};

/// More alternatives are not compared with each other.
const COMPARED: usize = 64;

/// A linear path with its test, and without: both as canonical text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NecessaryLine {
    pub line: String,
    /// That the path selects something; equal to `line` if there is no test.
    pub path: String,
    /// The test at its end.
    pub test: Test,
    /// How many steps the path has; 0 if it is no path.
    pub steps: usize,
}

/// Some alternative holds, that is all its lines; none if the query never matches, an empty one if nothing
/// is necessary.
pub struct Weakening {
    pub alternatives: Vec<Vec<NecessaryLine>>,
    /// The same as canonical text.
    pub text: String,
}

/// Weakens a query.
pub fn weaken(query: &Query) -> Weakening {
    let parts = decompose(query);
    let mut found = BTreeSet::new();
    for alternative in &parts.alternatives {
        let lines = alternative.positive.iter().map(|&at| line_expr(&parts, &parts.lines[at as usize]));
        if let Expr::And(lines) = conjunction(lines.collect()) {
            found.insert(without_implied(lines));
        }
    }
    let kept: Vec<&BTreeSet<Expr>> = found.iter().filter(|one| !is_implied(one, &found)).collect();
    let alternatives = kept.iter().map(|lines| lines.iter().map(NecessaryLine::of).collect()).collect();
    let conjunctions = kept.iter().map(|lines| Expr::And(lines.iter().cloned().collect()));
    let text = canonical_text(Expr::Or(conjunctions.collect()));
    Weakening { alternatives, text }
}

impl NecessaryLine {
    fn of(line: &Expr) -> NecessaryLine {
        let (test, steps) = match line {
            Expr::Path(path, test) => (test.clone(), path.steps.len()),
            _ => (Test::Exists, 0),
        };
        NecessaryLine {
            line: canonical_text(line.clone()),
            path: canonical_text(existence(line)),
            test,
            steps,
        }
    }
}

/// A conjunction of canonical lines, without those that always hold; `FALSE` if one never does.
fn conjunction(lines: Vec<Expr>) -> Expr {
    let mut kept = Vec::with_capacity(lines.len());
    for line in lines {
        let mut query = Query::filter(line);
        canonicalise(&mut query);
        match query.expr {
            Expr::Or(operands) if operands.is_empty() => return Expr::FALSE,
            Expr::And(operands) if operands.is_empty() => {}
            line => kept.push(line),
        }
    }
    Expr::And(kept)
}

/// The lines of a conjunction, once each, without the paths that others of them imply: `/a` beside `/a/b`.
fn without_implied(lines: Vec<Expr>) -> BTreeSet<Expr> {
    let lines: BTreeSet<Expr> = lines.into_iter().collect();
    lines
        .iter()
        .filter(|&line| !lines.iter().any(|other| other != line && implies(other, line)))
        .cloned()
        .collect()
}

/// Whether a line implies another one because that is a beginning of its path, without a test.
fn implies(line: &Expr, weaker: &Expr) -> bool {
    match (line, weaker) {
        (Expr::Path(path, _), Expr::Path(start, Test::Exists)) => path.steps.starts_with(&start.steps),
        _ => false,
    }
}

/// Whether another alternative has only lines that this one has too.
fn is_implied(one: &BTreeSet<Expr>, all: &BTreeSet<BTreeSet<Expr>>) -> bool {
    all.len() <= COMPARED && all.iter().any(|other| other != one && other.is_subset(one))
}

/// The line without its test.
fn existence(line: &Expr) -> Expr {
    match line {
        Expr::Path(path, _) => Expr::Path(path.clone(), Test::Exists),
        other => other.clone(),
    }
}

fn canonical_text(expr: Expr) -> String {
    let mut query = Query::filter(expr);
    canonicalise(&mut query);
    query.canonical()
}

/// A line as an absolute path with its test.
fn line_expr(parts: &Decomposition, line: &LinearPath) -> Expr {
    let test = match line.check {
        Check::Equal(literal) => Test::Compare(Operator::Equal, literal.clone()),
        Check::Unequal(literal) => Test::Compare(Operator::NotEqual, literal.clone()),
        Check::Normalized(text) => Test::Normalized(text.to_string()),
        Check::Range(operator, bound) if !matches!(line.subject, Subject::Position(_)) => {
            Test::Compare(operator, Literal::Number(bound))
        }
        Check::Range(..) | Check::Position(_) | Check::Exists => Test::Exists,
    };
    Expr::Path(parts.path_of(line), test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Namespaces, parse};

    #[test]
    fn what_is_necessary_remains() {
        for (text, weak) in [
            ("/a", "/a"),
            ("/a[b]/b", "/a/b"),
            ("/a[b]/c = 'x'", "/a/b and /a/c='x'"),
            ("//a[@x = 1][c or not(d)]//e", "//a/@x=1 and //a//e"),
            ("//a[b][2]", "//a/b"),
            ("//a[3]", "//a"),
            ("not(//a)", "true()"),
            ("/a or not(/b)", "true()"),
            ("/a[@x > 5] or /a[@x > 5][b]", "/a/@x>5"),
            ("contains(/a/b, 'x')", "/a/b"),
            ("count(//a) > 1", "//a"),
            ("/a[0]", "false()"),
            ("//a/text() != 'x'", "//a/text()!='x'"),
            ("/a[p:b]", "/a/Q{u}b"),
            ("for $v in //a where $v/b = 'x' return <r>{ $v/c }</r>", "//a/b='x'"),
        ] {
            let mut namespaces = Namespaces::new();
            namespaces.bind("p", "u").unwrap();
            let found = weaken(&parse(text, &namespaces).unwrap());
            assert_eq!(found.text, weak, "{text}");
        }
    }

    #[test]
    fn a_weakening_is_its_own() {
        for text in ["/a[b]/c = 'x' or //d[@e < 2][f]", "//a[b][2]", "not(/a)", "/a[0]"] {
            let found = weaken(&parse(text, &Namespaces::new()).unwrap());
            let again = weaken(&parse(&found.text, &Namespaces::new()).unwrap());
            assert_eq!(again.text, found.text);
            assert_eq!(again.alternatives, found.alternatives);
        }
    }
}
