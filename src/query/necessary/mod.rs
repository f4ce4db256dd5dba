//! A condition that is necessary for a value to be true, in terms that an index can look up.
//!
//! ```text
//! count(//a/b) > 2               //a/b
//! normalize-space(//a) = 'x'     //a[normalize-space(.)='x']
//! contains(concat(a, b), 'x')    a or b
//! //b/parent::a/c[last()]        //b and //a/c
//! not(count(a) = 1)              true()
//! ```
//!
//! Three rules. If a value is false once a node set in it is empty, that set must have a node. Each node on the way of a
//! path must exist (`way.rs`). And what a value says of one node when it is compared with a literal must be true of one
//! of the nodes (`compared.rs`).
//!
//! Nodes of local data say nothing of the message, nor do nodes that are reached from a variable along other axes than
//! those of paths: the variable may be bound to local data.
//!
//! Conditions inside predicates are replaced by what is necessary for them, so that the size of the result
//! does not exceed that of the value.

mod compared;
mod way;

use super::ast::{Expr, Path, Predicate, Start, Test, Variable};
use super::constant::constant;
use super::value::{Clause, Function, Kind, Value};
use super::variables::Uses;
use compared::{compared, matched};
use way::exists;

/// What is necessary for `boolean()` of a value.
pub fn of_value(value: &Value) -> Expr {
    match value {
        Value::Condition(expr) => weakened(expr),
        Value::Some(clauses) => of_clauses(clauses),
        Value::If(parts) => {
            let then = Expr::And(vec![of_value(&parts[0]), of_value(&parts[1])]);
            Expr::Or(vec![then, of_value(&parts[2])])
        }
        _ if value.kind() == Kind::Nodes => exists(value),
        _ => of_one_node(value).unwrap_or_else(|| of_sets(value)),
    }
}

/// What is necessary for a value that is true because of one node.
fn of_one_node(value: &Value) -> Option<Expr> {
    match value {
        Value::Compare(operator, left, right) => compared(*operator, left, right),
        Value::Call(Function::Matches, arguments) => matched(arguments),
        _ => None,
    }
}

/// The node sets that a value is computed from must have a node, if it is false without them.
fn of_sets(value: &Value) -> Expr {
    let mut sets = Vec::new();
    node_sets(value, &mut sets);
    let fails_without =
        |empty: &dyn Fn(&Value) -> bool| constant(value, empty).is_some_and(|constant| !constant.boolean());
    let needed: Vec<Expr> = sets
        .iter()
        .filter(|set| fails_without(&|value| std::ptr::eq(value, **set)))
        .map(|set| exists(set))
        .collect();
    match needed.is_empty() {
        false => Expr::And(needed),
        true if fails_without(&|_| true) => Expr::Or(sets.into_iter().map(exists).collect()),
        true => Expr::TRUE,
    }
}

/// A variable is replaced by the path of its nodes if that has at most so many name tests: a path may name variables
/// several times, whose paths name others.
const SUBSTITUTED_NAME_TESTS: usize = 64;

/// The variables of a tuple, each with the path of its nodes, or of more nodes, if it is known.
type Bound = Vec<(Variable, Option<Path>)>;

/// What is necessary for clauses to let a tuple pass: each `for` has a node, and each condition holds of some node.
///
/// Example: `$o in //order, $i in $o/item` with the condition `$i/@n > 5` needs `//order/item/@n > 5`.
fn of_clauses(clauses: &[Clause]) -> Expr {
    let mut all = Vec::new();
    let mut bound = Bound::new();
    for clause in clauses {
        match clause {
            Clause::For(variable, nodes) => {
                let needed = match nodes.kind() {
                    Kind::Nodes => of_value(nodes),
                    // A sequence with an item may be false.
                    _ => of_value(&Value::Call(Function::Exists, vec![nodes.clone()])),
                };
                all.push(substituted(&needed, &bound, false).0);
                let path = substituted_path(nodes, &bound);
                bound.push((*variable, path));
            }
            Clause::Let(variable, nodes) => {
                let path = substituted_path(nodes, &bound);
                bound.push((*variable, path));
            }
            Clause::Where(passes) => all.push(substituted(&of_value(passes), &bound, false).0),
        }
    }
    Expr::And(all)
}

/// A path without variables of the tuple that selects the nodes of a value, and maybe more.
fn substituted_path(nodes: &Value, bound: &Bound) -> Option<Path> {
    let Value::Nodes(path) = nodes else { return None };
    let exists = Expr::Path(weakened_path(path).0, Test::Exists);
    let (Expr::Path(path, _), _) = substituted(&exists, bound, false) else { return None };
    let mut name_tests = 0;
    path.for_each_name_test(&mut |_| name_tests += 1);
    (name_tests <= SUBSTITUTED_NAME_TESTS).then_some(path)
}

/// Replaces variables by the paths of their nodes; also tells whether that changed the condition. The result holds
/// wherever the condition does.
fn substituted(expr: &Expr, bound: &Bound, is_nested: bool) -> (Expr, bool) {
    let free = Uses::of(expr).free;
    if !bound.iter().any(|(variable, _)| free.has(*variable)) {
        return (expr.clone(), false);
    }
    let all =
        |operands: &[Expr]| operands.iter().map(|operand| substituted(operand, bound, is_nested).0).collect();
    let substituted = match expr {
        Expr::Path(path, test) => path_substituted(path, test, bound, is_nested),
        Expr::And(operands) => Expr::And(all(operands)),
        Expr::Or(operands) => Expr::Or(all(operands)),
        Expr::Not(_) | Expr::Computed(_) => Expr::TRUE,
    };
    (substituted, true)
}

fn path_substituted(path: &Path, test: &Test, bound: &Bound, is_nested: bool) -> Expr {
    let test = match test {
        Test::Contains(text) | Test::StartsWith(text) if text.is_empty() => return Expr::TRUE,
        // There may be other nodes before the one that is tested.
        Test::Contains(_) | Test::StartsWith(_) => Test::Exists,
        test => test.clone(),
    };
    let mut path = path.clone();
    for step in &mut path.steps {
        let mut counts_others = false;
        step.predicates.retain_mut(|predicate| match predicate {
            Predicate::Position(_) => !counts_others,
            Predicate::Condition(condition) => {
                let (substituted, is_changed) = substituted(condition, bound, true);
                *condition = substituted;
                counts_others |= is_changed;
                true
            }
        });
    }
    let variable = |(variable, _): &&(Variable, Option<Path>)| path.start == Start::Variable(*variable);
    match bound.iter().find(variable) {
        None => Expr::Path(path, test),
        Some((_, Some(nodes))) if nodes.start == Start::Context && is_nested => Expr::TRUE,
        Some((_, Some(nodes))) if nodes.ends_in_leaf() && !path.steps.is_empty() => Expr::FALSE,
        Some((_, Some(nodes))) => {
            let steps = [nodes.steps.as_slice(), &path.steps].concat();
            Expr::Path(Path { start: nodes.start, steps }, test)
        }
        Some((_, None)) => Expr::TRUE,
    }
}

/// The node sets that a value is computed from.
fn node_sets<'v>(value: &'v Value, sets: &mut Vec<&'v Value>) {
    match value {
        _ if value.kind() == Kind::Nodes => sets.push(value),
        Value::Call(_, operands) | Value::Sequence(operands) => {
            operands.iter().for_each(|operand| node_sets(operand, sets));
        }
        Value::Negative(operand)
        | Value::Castable { operand, .. }
        | Value::Each(operand, _)
        | Value::Filter(operand, _) => node_sets(operand, sets),
        Value::Arithmetic(_, left, right) | Value::Compare(_, left, right) => {
            node_sets(left, sets);
            node_sets(right, sets);
        }
        _ => {}
    }
}

/// A condition with each computed one replaced by what is necessary for it.
fn weakened(expr: &Expr) -> Expr {
    match expr {
        Expr::Path(path, test) => match (weakened_path(path), test) {
            ((path, false), test) => Expr::Path(path, test.clone()),
            ((_, true), Test::Contains(text) | Test::StartsWith(text)) if text.is_empty() => Expr::TRUE,
            // Another node may be the first now.
            ((path, true), Test::Contains(_) | Test::StartsWith(_)) => Expr::Path(path, Test::Exists),
            ((path, true), test) => Expr::Path(path, test.clone()),
        },
        Expr::Not(operand) if is_computed(operand) => Expr::TRUE,
        Expr::Not(_) => expr.clone(),
        Expr::And(operands) => Expr::And(operands.iter().map(weakened).collect()),
        Expr::Or(operands) => Expr::Or(operands.iter().map(weakened).collect()),
        Expr::Computed(computed) => computed.necessary.clone(),
    }
}

/// The path, and whether it selects more than before.
fn weakened_path(path: &Path) -> (Path, bool) {
    let mut path = path.clone();
    let mut weaker = false;
    for step in &mut path.steps {
        let mut counts_others = false;
        step.predicates.retain_mut(|predicate| match predicate {
            Predicate::Position(_) => !counts_others,
            Predicate::Condition(expr) => {
                if is_computed(expr) {
                    *expr = weakened(expr);
                    counts_others = true;
                }
                true
            }
        });
        weaker |= counts_others;
    }
    (path, weaker)
}

fn is_computed(expr: &Expr) -> bool {
    match expr {
        Expr::Path(path, _) => path.steps.iter().any(|step| {
            step.predicates
                .iter()
                .any(|predicate| matches!(predicate, Predicate::Condition(expr) if is_computed(expr)))
        }),
        Expr::Not(operand) => is_computed(operand),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().any(is_computed),
        Expr::Computed(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::query::{Namespaces, Query, parse};

    fn necessary(text: &str) -> String {
        let query = parse(text, &Namespaces::default()).unwrap();
        match &query.expr {
            crate::query::ast::Expr::Computed(computed) => {
                let mut query = Query::filter(computed.necessary.clone());
                crate::query::canonical::canonicalise(&mut query);
                query.canonical()
            }
            _ => panic!("{text} is not computed"),
        }
    }

    #[test]
    fn what_must_be_there() {
        let cases = [
            ("count(//a/b) > 2", "//a/b"),
            ("count(//a/b) < 3", "true()"),
            ("normalize-space(//a) = 'x'", "//a[normalize-space(.)='x']"),
            (
                "normalize-space(//a) = ('x', 'y')",
                "//a[normalize-space(.)='x'] or //a[normalize-space(.)='y']",
            ),
            ("normalize-space(//a) = 5", "//a=5"),
            ("string(//a) = 'x'", "//a='x'"),
            ("string(//a) != 'x'", "true()"),
            ("max(//a/@n) > 5", "//a/@n>5"),
            ("max(//a/@n) > 'x'", "//a/@n"),
            ("distinct-values(//a/@n) != 5", "//a/@n!=5"),
            ("//a/string(@n) = 'x'", "//a[@n='x']"),
            ("(//a | //b)[2] = 'x'", "//a='x' or //b='x'"),
            ("//a/following::b = 'x'", "//a and //b='x'"),
            ("//a/following::b//. = 'x'", "//a and //b"),
            ("matches(//a/@c, '^(EUR|a\\.b)$')", "//a/@c='EUR' or //a/@c='a.b'"),
            ("matches(//a/@c, '^EUR$', 'i')", "//a/@c"),
            ("matches(//a/@c, '^E.R$')", "//a/@c"),
            ("normalize-space(//a) = ''", "true()"),
            ("contains(concat(//a, //b), 'x')", "//a or //b"),
            ("//a = //b", "//a and //b"),
            ("//a[@x = 1]/.. = 'x'", "//a[@x=1] and (/*='x' or //*[a/@x=1]='x')"),
            ("//b/parent::a/c[last()]", "//a[b]/c"),
            ("//b[@x][1]/../c[last()]", "//b[@x][1] and (/c or //*[b/@x]/c)"),
            ("//b/ancestor::a/@x = 'y'", "//a[.//b]/@x='y'"),
            ("/r/b[@x]/ancestor::a/@x = 'y'", "/r/b[@x] and //a[.//b/@x]/@x='y'"),
            ("/r/b[@x]/following-sibling::c[1] = 'y'", "/r[b/@x]/c='y'"),
            ("//b/preceding-sibling::c = 'y'", "//b and //c='y'"),
            ("/b/preceding-sibling::c = 'y'", "/b and /c='y'"),
            ("(//a | //b)[2]/c", "//a/c or //b/c"),
            ("string-length(//a) > 3", "//a"),
            ("sum(//a) + 1 > 5", "//a"),
            ("//a/following-sibling::*[b = 'x']", "//*[b='x'] and //a"),
            ("-//a > 5", "//a"),
        ];
        assert_eq!(
            cases.map(|(text, _)| (text, necessary(text))),
            cases.map(|(text, right)| (text, right.into()))
        );
    }
}
