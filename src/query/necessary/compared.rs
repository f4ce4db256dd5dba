//! Comparisons with literals, and regular expressions: what they say of one node must be true of one of the nodes.
//!
//! ```text
//! (a | b)[2]/@x = 'y'                a/@x='y' or b/@x='y'
//! normalize-space(//a/b) = 'x'       //a/b[normalize-space(.)='x']
//! max(//a/@n) > 5                    //a/@n>5
//! matches(//a/@c, '^(EUR|USD)$')     //a/@c='EUR' or //a/@c='USD'
//! ```

use super::of_value;
use super::way::Way;
use crate::query::ast::{Expr, Literal, Operator, Test};
use crate::query::constant::{Constant, constant};
use crate::query::functions::normalize_space;
use crate::query::pattern::listed;
use crate::query::value::{Function, Kind, Value};

/// Longer lists of literals are not looked up.
const LITERALS: usize = 32;

/// What is necessary for a comparison, if one of its operands is a literal or a list of them.
pub(super) fn compared(operator: Operator, left: &Value, right: &Value) -> Option<Expr> {
    if let Some(literals) = literals(right) {
        return with_any(operator, left, &literals);
    }
    with_any(operator.mirrored(), right, &literals(left)?)
}

/// What is necessary for `matches()`, if the pattern lists whole strings.
pub(super) fn matched(arguments: &[Value]) -> Option<Expr> {
    let [value, Value::Literal(Literal::Text(pattern))] = arguments else { return None };
    let strings: Vec<Literal> = listed(pattern)?.into_iter().map(Literal::Text).collect();
    let value = match value {
        Value::Call(Function::NormalizeSpace, _) => return with_any(Operator::Equal, value, &strings),
        value if value.kind() == Kind::Nodes => Value::Call(Function::String, vec![value.clone()]),
        _ => return None,
    };
    with_any(Operator::Equal, &value, &strings)
}

fn literals(value: &Value) -> Option<Vec<Literal>> {
    match value {
        Value::Sequence(values) => values.iter().map(literal).collect(),
        value => literal(value).map(|literal| vec![literal]),
    }
}

fn literal(value: &Value) -> Option<Literal> {
    match constant(value, &|_| false)? {
        Constant::Number(number) if !number.is_nan() => Some(Literal::Number(number)),
        Constant::Text(text) => Some(Literal::Text(String::from_utf8_lossy(&text).into_owned())),
        _ => None,
    }
}

fn with_any(operator: Operator, value: &Value, literals: &[Literal]) -> Option<Expr> {
    let (nodes, tests) = match value {
        value if value.kind() == Kind::Nodes => {
            (value, literals.iter().map(|literal| Test::Compare(operator, literal.clone())).collect())
        }
        Value::Each(nodes, each) if literals.len() == 1 && !each.is_positional() => {
            let mut way = Way::to(nodes);
            way.add_condition(of_each(operator, each, &literals[0]));
            return Some(way.passes(&Test::Exists));
        }
        Value::Call(function, arguments) => {
            let [nodes] = arguments.as_slice() else { return None };
            let tests = literals.iter().map(|literal| of_call(operator, *function, literal));
            (nodes, tests.collect::<Option<Vec<Test>>>()?)
        }
        _ => return None,
    };
    let is_looked_up = nodes.kind() == Kind::Nodes && tests.len() <= LITERALS;
    is_looked_up.then(|| Way::to(nodes).passes_any(&tests))
}

/// The test that one of the nodes passes if a function of them compares with a literal like this.
fn of_call(operator: Operator, function: Function, literal: &Literal) -> Option<Test> {
    let number = literal.number();
    let compares_texts = matches!((operator, literal), (Operator::Equal, Literal::Text(_)));
    match (function, literal) {
        (Function::DistinctValues, literal) => Some(Test::Compare(operator, literal.clone())),
        // Where there are no nodes, it may hold.
        (_, Literal::Text(text)) if text.is_empty() => None,
        (_, _) if operator == Operator::NotEqual => None,
        (Function::NormalizeSpace, Literal::Text(text)) if compares_texts => {
            let is_normal = normalize_space(text.as_bytes()) == text.as_bytes();
            is_normal.then(|| Test::Normalized(text.clone()))
        }
        (Function::String, literal) if compares_texts => Some(Test::Compare(operator, literal.clone())),
        (
            Function::Max | Function::Min | Function::Number | Function::String | Function::NormalizeSpace,
            _,
        ) if !number.is_nan() => Some(Test::Compare(operator, Literal::Number(number))),
        _ => None,
    }
}

/// What is necessary at a node whose value passes a comparison.
fn of_each(operator: Operator, each: &Value, literal: &Literal) -> Expr {
    let literal = Value::Literal(literal.clone());
    of_value(&Value::Compare(operator, Box::new(each.clone()), Box::new(literal)))
}
