//! Renames the name tests of a query.

use super::ast::{Expr, NameTest, Node, Path, Predicate, Query};
use super::canonical::canonicalise;
use super::value::{Computed, NodeTest, Value};

/// The canonical query that has `map` of each name test instead of it.
pub fn rename(query: &Query, map: &dyn Fn(&NameTest) -> NameTest) -> Query {
    let mut renamed = query.clone();
    match &mut renamed.transformation {
        Some(transformation) => transformation.map(
            |mut path| {
                rename_path(&mut path, map);
                path
            },
            |value| {
                let mut value = value.clone();
                rename_value(&mut value, map);
                value
            },
        ),
        None => rename_expr(&mut renamed.expr, map),
    }
    canonicalise(&mut renamed);
    renamed
}

fn rename_expr(expr: &mut Expr, map: &dyn Fn(&NameTest) -> NameTest) {
    match expr {
        Expr::Path(path, _) => rename_path(path, map),
        Expr::Not(operand) => rename_expr(operand, map),
        Expr::And(operands) | Expr::Or(operands) => {
            operands.iter_mut().for_each(|operand| rename_expr(operand, map));
        }
        Expr::Computed(computed) => {
            rename_value(&mut computed.value, map);
            **computed = Computed::new(computed.value.clone());
        }
    }
}

fn rename_path(path: &mut Path, map: &dyn Fn(&NameTest) -> NameTest) {
    for step in &mut path.steps {
        if let Node::Element(test) | Node::Attribute(test) = &mut step.node {
            *test = map(test);
        }
        for predicate in &mut step.predicates {
            if let Predicate::Condition(expr) = predicate {
                rename_expr(expr, map);
            }
        }
    }
}

fn rename_value(value: &mut Value, map: &dyn Fn(&NameTest) -> NameTest) {
    match value {
        Value::Literal(_) | Value::Variable(..) => {}
        Value::Some(clauses) => clauses.iter_mut().for_each(|clause| rename_value(clause.value_mut(), map)),
        Value::Condition(expr) => rename_expr(expr, map),
        Value::Nodes(path) => rename_path(path, map),
        Value::Union(values) | Value::Call(_, values) | Value::Sequence(values) => {
            values.iter_mut().for_each(|value| rename_value(value, map));
        }
        Value::Filter(start, predicates) => {
            rename_value(start, map);
            predicates.iter_mut().for_each(|value| rename_value(value, map));
        }
        Value::Walk(walk) => {
            rename_value(&mut walk.start, map);
            for step in &mut walk.steps {
                if let NodeTest::Name(test) = &mut step.test {
                    *test = map(test);
                }
                step.predicates.iter_mut().for_each(|value| rename_value(value, map));
            }
        }
        Value::If(parts) => parts.iter_mut().for_each(|value| rename_value(value, map)),
        Value::Negative(operand) | Value::Castable { operand, .. } => rename_value(operand, map),
        Value::Arithmetic(_, left, right)
        | Value::Compare(_, left, right)
        | Value::Sets(_, left, right)
        | Value::Each(left, right) => {
            rename_value(left, map);
            rename_value(right, map);
        }
    }
}
