//! Comparisons of computed values that are simple conditions: `count(a) > 0` is `a`.

use super::scope::Variables;
use crate::query::ast::{Axis, Expr, Literal, NameTest, Node, Operator, Path, Start, Step, Test};
use crate::query::functions::normalize_space;
use crate::query::value::{Function, Value};

/// The simple condition that a comparison means, if there is one.
pub(super) fn comparison(
    operator: Operator,
    left: &Value,
    right: &Value,
    variables: &Variables<'_>,
) -> Option<Expr> {
    if matches!(left, Value::Literal(_)) || is_constant(left) {
        return tested(operator.mirrored(), right, left, variables);
    }
    tested(operator, left, right, variables)
}

fn is_constant(value: &Value) -> bool {
    matches!(value, Value::Condition(expr) if *expr == Expr::TRUE || *expr == Expr::FALSE)
}

fn tested(operator: Operator, value: &Value, constant: &Value, variables: &Variables<'_>) -> Option<Expr> {
    match (value, constant) {
        (Value::Call(Function::Count, arguments), Value::Literal(Literal::Number(number))) => {
            let [Value::Nodes(path)] = arguments.as_slice() else { return None };
            existence(operator, *number).map(|exists| exists_or_not(path, exists))
        }
        (Value::Call(function, arguments), Value::Literal(literal)) => {
            let [Value::Nodes(path)] = arguments.as_slice() else { return None };
            if let (Function::NormalizeSpace, Operator::Equal | Operator::NotEqual, Literal::Text(text)) =
                (function, operator, literal)
            {
                return normalized(operator, path, text, variables);
            }
            let literal = match function {
                Function::String => literal.clone(),
                Function::NormalizeSpace => Literal::Number(literal.number()),
                Function::Number => Literal::Number(literal.number()),
                _ => return None,
            };
            is_same_for_one_node(operator, path, &literal, variables)
                .then(|| Expr::Path(path.clone(), Test::Compare(operator, literal)))
        }
        (_, Value::Condition(expr)) if is_constant(constant) => {
            let holds = match operator {
                Operator::Equal => *expr == Expr::TRUE,
                Operator::NotEqual => *expr == Expr::FALSE,
                _ => return None,
            };
            match value {
                Value::Nodes(path) => Some(exists_or_not(path, holds)),
                Value::Condition(expr) if holds => Some(expr.clone()),
                Value::Condition(expr) => Some(Expr::Not(Box::new(expr.clone()))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether `count(a) operator number` means that there is an `a` or that there is none.
fn existence(operator: Operator, number: f64) -> Option<bool> {
    match operator {
        Operator::Greater | Operator::NotEqual if number == 0.0 => Some(true),
        Operator::GreaterOrEqual if number == 1.0 => Some(true),
        Operator::Equal | Operator::LessOrEqual if number == 0.0 => Some(false),
        Operator::Less if number == 1.0 => Some(false),
        _ => None,
    }
}

fn exists_or_not(path: &Path, exists: bool) -> Expr {
    let expr = Expr::Path(path.clone(), Test::Exists);
    if exists { expr } else { Expr::Not(Box::new(expr)) }
}

/// `normalize-space(@a) = 'x'`
fn normalized(operator: Operator, path: &Path, text: &str, variables: &Variables<'_>) -> Option<Expr> {
    let is_one = path.is_one_node() && is_one_start(path, variables);
    // Where there is no attribute the string is empty.
    if !is_one || (text.is_empty() && !path.steps.is_empty()) {
        return None;
    }
    let is_normal = normalize_space(text.as_bytes()) == text.as_bytes();
    let is_it = match is_normal {
        true => Expr::Path(path.clone(), Test::Normalized(text.to_string())),
        false => Expr::FALSE,
    };
    Some(if operator == Operator::Equal { is_it } else { Expr::Not(Box::new(is_it)) })
}

/// Whether a path starts at one node.
fn is_one_start(path: &Path, variables: &Variables<'_>) -> bool {
    match path.start {
        Start::Document | Start::Message | Start::Context => true,
        Start::Variable(variable) => variables.is_one_node(variable),
    }
}

/// Whether comparing the path gives the same as comparing the string or number of its first node. It does
/// if there is exactly one node, and if there is one at most and an absent node does not pass.
fn is_same_for_one_node(
    operator: Operator,
    path: &Path,
    literal: &Literal,
    variables: &Variables<'_>,
) -> bool {
    let starts_at_one = is_one_start(path, variables);
    if literal.number().is_nan() && !matches!(literal, Literal::Text(_)) {
        return false;
    }
    match path.steps.as_slice() {
        [] => starts_at_one,
        [Step { axis: Axis::Child, node: Node::Attribute(NameTest::Name(_)), predicates }] => {
            let absent_passes = match (operator, literal) {
                (Operator::NotEqual, _) => true,
                (Operator::Equal, Literal::Text(text)) => text.is_empty(),
                _ => false,
            };
            starts_at_one && path.start != Start::Document && predicates.is_empty() && !absent_passes
        }
        _ => false,
    }
}
