//! Conditions on the name of the context node → equivalent name tests.
//!
//! ```text
//! local-name() = 'a'        *:a
//! namespace-uri() = 'u'     Q{u}*
//! self::a                   a, for elements
//! name() = 'p:a'            necessary: *:a
//! ```
//!
//! So `*[local-name() = 'a']` is `*:a`, which an index can look up. The equivalence is of the step with its
//! predicate: a predicate before the first position can become part of the name test.

use super::ast::{Expr, Literal, Name, NameTest, Operator, Path, Predicate};
use super::value::{Function, NodeTest, Value, WalkAxis};
use crate::util::xml_chars::{is_name_char, is_name_start};

/// A condition on the name of its context node, an element or an attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OwnName {
    /// It holds for no name.
    Never,
    /// It holds for the names that pass.
    Exactly(NameTest),
    /// It holds only for names that pass.
    Within(NameTest),
}

/// Reads a condition as one on the own name; `None` if it is another one.
pub fn of_value(value: &Value) -> Option<OwnName> {
    match value {
        Value::Compare(Operator::Equal, left, right) => match (&**left, &**right) {
            (Value::Call(function, arguments), Value::Literal(Literal::Text(text)))
            | (Value::Literal(Literal::Text(text)), Value::Call(function, arguments)) => {
                matches!(arguments.as_slice(), [Value::Nodes(path)] if *path == Path::CONTEXT)
                    .then(|| equal(*function, text))
                    .flatten()
            }
            _ => None,
        },
        // For an attribute it is never true.
        Value::Walk(walk) => match (&walk.start, walk.steps.as_slice()) {
            (Value::Nodes(path), [step]) if *path == Path::CONTEXT && step.axis == WalkAxis::Itself => {
                match &step.test {
                    NodeTest::Name(test) if step.predicates.is_empty() => Some(OwnName::Within(test.clone())),
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    }
}

fn equal(function: Function, text: &str) -> Option<OwnName> {
    match function {
        Function::LocalName if is_ncname(text) => Some(OwnName::Exactly(NameTest::Local(text.to_string()))),
        Function::LocalName => Some(OwnName::Never),
        Function::NamespaceUri if is_writable(text) => {
            Some(OwnName::Exactly(NameTest::AnyIn(text.to_string())))
        }
        Function::Name => {
            let (prefix, local) = text.split_once(':').unwrap_or(("p", text));
            Some(match is_ncname(prefix) && is_ncname(local) {
                true => OwnName::Within(NameTest::Local(local.to_string())),
                false => OwnName::Never,
            })
        }
        _ => None,
    }
}

/// Makes a condition before the first position part of the name test of its step. What is left of the condition
/// is returned: `true()` if nothing is.
pub fn narrow(test: &mut NameTest, of_elements: bool, condition: Expr) -> Expr {
    match condition {
        Expr::And(operands) if !operands.is_empty() => {
            let narrowed = operands.into_iter().map(|operand| narrow(test, of_elements, operand));
            let mut left: Vec<Expr> = narrowed.filter(|operand| *operand != Expr::TRUE).collect();
            if left.len() == 1 { left.remove(0) } else { Expr::And(left) }
        }
        Expr::Computed(computed) => {
            let (own, is_exact) = match &computed.own_name {
                None => return Expr::Computed(computed),
                Some(OwnName::Never) => return Expr::FALSE,
                Some(OwnName::Exactly(own)) => (own, true),
                Some(OwnName::Within(own)) => (own, false),
            };
            let is_exact = match &computed.value {
                Value::Walk(_) if !of_elements => return Expr::FALSE,
                Value::Walk(_) => true,
                _ => is_exact,
            };
            match both(test, own) {
                None => Expr::FALSE,
                Some(narrower) => {
                    *test = narrower;
                    if is_exact { Expr::TRUE } else { Expr::Computed(computed) }
                }
            }
        }
        other => other,
    }
}

/// The test that names pass if they pass both; `None` if no name does.
pub(super) fn both(one: &NameTest, other: &NameTest) -> Option<NameTest> {
    let name =
        |uri: &str, local: &str| NameTest::Name(Name { uri: uri.to_string(), local: local.to_string() });
    match (one, other) {
        (NameTest::Any, test) | (test, NameTest::Any) => Some(test.clone()),
        (NameTest::AnyIn(uri), NameTest::Local(local)) | (NameTest::Local(local), NameTest::AnyIn(uri)) => {
            Some(name(uri, local))
        }
        (NameTest::AnyIn(uri), NameTest::Name(named)) | (NameTest::Name(named), NameTest::AnyIn(uri)) => {
            (named.uri == *uri).then(|| NameTest::Name(named.clone()))
        }
        (NameTest::Local(local), NameTest::Name(named)) | (NameTest::Name(named), NameTest::Local(local)) => {
            (named.local == *local).then(|| NameTest::Name(named.clone()))
        }
        (one, other) => (one == other).then(|| one.clone()),
    }
}

/// A name without a colon.
fn is_ncname(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c != ':' && is_name_start(c))
        && characters.all(|c| c != ':' && is_name_char(c))
}

/// Whether the canonical text can contain the URI: `Q{uri}*` cannot have braces, nor white space that
/// is normalised.
fn is_writable(uri: &str) -> bool {
    !uri.contains(['{', '}']) && uri.split_ascii_whitespace().collect::<Vec<_>>().join(" ") == uri
}

/// The names that the predicates of a step before its first position leave: `*[self::a or self::b]` is an `a` or a `b`.
pub fn own_names(predicates: &[Predicate]) -> Option<Vec<&NameTest>> {
    let conditions = predicates.iter().map_while(|predicate| match predicate {
        Predicate::Condition(expr) => Some(expr),
        Predicate::Position(_) => None,
    });
    conditions.filter_map(names_of).min_by_key(Vec::len)
}

/// The names that an element may have if a condition on it holds; `None` if the condition says nothing of them.
fn names_of(expr: &Expr) -> Option<Vec<&NameTest>> {
    match expr {
        Expr::Computed(computed) => match computed.own_name.as_ref()? {
            OwnName::Never => Some(Vec::new()),
            OwnName::Exactly(name) | OwnName::Within(name) => Some(vec![name]),
        },
        Expr::Or(operands) => {
            let names: Option<Vec<Vec<&NameTest>>> = operands.iter().map(names_of).collect();
            let mut names = names?.concat();
            names.sort_unstable();
            names.dedup();
            Some(names)
        }
        Expr::And(operands) => operands.iter().filter_map(names_of).min_by_key(Vec::len),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::query::{Namespaces, parse};

    #[test]
    fn conditions_on_the_own_name_become_name_tests() {
        let cases = [
            ("//*[local-name() = 'a']/b", "//*:a/b"),
            ("//*['a' = local-name(.)]", "//*:a"),
            ("//*[local-name() = 'a' and namespace-uri() = 'u']", "//Q{u}a"),
            ("//*[namespace-uri() = 'u'][c][local-name() = 'a']", "//Q{u}a[c]"),
            ("//*[namespace-uri() = 'u']", "//Q{u}*"),
            ("//*[namespace-uri() = '']", "//Q{}*"),
            ("//@*[local-name() = 'a']", "//@*:a"),
            ("//*[self::a]", "//a"),
            ("//*[self::*:a][self::Q{u}*]", "//Q{u}a"),
            ("//@*[self::a]", "false()"),
            ("//*[local-name() = 'a'][2]", "//*:a[2]"),
            ("//*[2][local-name() = 'a']", "//*[2][local-name(.)='a']"),
            ("//*[name() = 'p:a']", "//*:a[name(.)='p:a']"),
            ("//a[local-name() = 'b']", "false()"),
            ("//a[local-name() = 'a']", "//a"),
            ("//*[local-name() = 'a b']", "false()"),
            ("//*[local-name() = '']", "false()"),
            ("//b/ancestor::*[local-name() = 'a'][1]", "//b/ancestor::*:a[1]"),
            ("//b/ancestor::*[1][local-name() = 'a']", "//b/ancestor::*[1][local-name(.)='a']"),
            ("//node()[local-name() = 'a']", "//node()[local-name(.)='a']"),
            ("//*[not(local-name() = 'a')]", "//*[not(local-name(.)='a')]"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, &Namespaces::default()).unwrap().canonical(), expected, "{text}");
        }
    }
}
