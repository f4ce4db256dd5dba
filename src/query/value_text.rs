//! Value → canonical text, with parentheses where the grammar needs them.

use super::ast::{Expr, Literal, Operator, Path, Test};
use super::text;
use super::value::{Arithmetic, Clause, Kind, NodeTest, Value, Walk, WalkAxis, WalkStep};

/// How tightly an expression binds, as in the grammar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Any,
    Equality,
    Relation,
    Sum,
    Product,
    Negative,
    Union,
    Intersection,
    Castable,
    Primary,
}

/// A computed condition, where it is used as a boolean.
pub(super) fn computed(condition: &Value, out: &mut String) {
    // What is joined with it by `and` or `or` would be read as a part of it.
    let level = if let Value::Some(_) = condition { Level::Primary } else { Level::Any };
    value(condition, level, out);
}

/// The same as an operand of `and` or `or`.
pub(super) fn computed_operand(condition: &Value, out: &mut String) {
    value(condition, Level::Equality, out);
}

/// The bytes of a value's text.
pub(super) fn length(operand: &Value) -> usize {
    let mut out = String::new();
    value(operand, Level::Any, &mut out);
    out.len()
}

/// A value where any expression may stand.
pub(super) fn content(operand: &Value, out: &mut String) {
    value(operand, Level::Equality, out);
}

/// A value where it is used as a boolean.
pub(super) fn condition_text(operand: &Value, out: &mut String) {
    match operand {
        Value::Condition(expr) => text::expr(expr, false, out),
        operand => value(operand, Level::Equality, out),
    }
}

/// A condition as a predicate: a number alone would be a position, and so would be one in a sequence.
pub(super) fn predicate_text(condition: &Expr, out: &mut String) {
    match condition {
        Expr::Computed(computed) if matches!(computed.value.kind(), Kind::Number | Kind::Sequence) => {
            call("boolean", std::slice::from_ref(&computed.value), out);
        }
        _ => text::expr(condition, false, out),
    }
}

fn value(operand: &Value, surroundings: Level, out: &mut String) {
    let level = level(operand);
    let in_parentheses = level < surroundings;
    if in_parentheses {
        out.push('(');
    }
    match operand {
        Value::Literal(Literal::Text(literal)) => text::quoted(literal, out),
        Value::Literal(Literal::Number(number)) => text::number(*number, out),
        Value::Condition(expr) => condition(expr, out),
        Value::Nodes(path) => text::path(path, out),
        Value::Union(values) => {
            for (at, nodes) in values.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                value(nodes, tighter(level), out);
            }
        }
        Value::Filter(nodes, filters) => {
            match **nodes {
                Value::Sequence(_) => value(nodes, Level::Any, out),
                _ => call("", std::slice::from_ref(nodes), out),
            }
            predicates(filters, out);
        }
        Value::Walk(walk) => walk_text(walk, out),
        Value::Call(function, arguments) => call(function.signature().name, arguments, out),
        Value::Arithmetic(operation, left, right) => {
            value(left, level, out);
            out.push(' ');
            out.push_str(operation.symbol());
            out.push(' ');
            value(right, tighter(level), out);
        }
        Value::Negative(number) => {
            out.push('-');
            value(number, Level::Union, out);
        }
        Value::Compare(operator, left, right) => {
            value(left, level, out);
            out.push_str(operator.symbol());
            value(right, tighter(level), out);
        }
        Value::Variable(variable, _) => text::variable(*variable, out),
        Value::Some(clauses) => quantified(clauses, out),
        Value::Sets(operation, left, right) => {
            value(left, level, out);
            out.push(' ');
            out.push_str(operation.name());
            out.push(' ');
            value(right, tighter(level), out);
        }
        Value::Sequence(values) => call("", values, out),
        Value::Each(start, each) => {
            value(start, Level::Primary, out);
            out.push('/');
            match **each {
                Value::Call(..) => value(each, Level::Primary, out),
                _ => call("", std::slice::from_ref(each), out),
            }
        }
        Value::If(parts) => {
            out.push_str("if (");
            match &parts[0] {
                Value::Condition(expr) => text::expr(expr, false, out),
                condition => value(condition, Level::Any, out),
            }
            out.push_str(") then ");
            value(&parts[1], Level::Any, out);
            out.push_str(" else ");
            value(&parts[2], Level::Any, out);
        }
        Value::Castable { target, may_be_empty, operand } => {
            value(operand, tighter(level), out);
            out.push_str(" castable as Q{http://www.w3.org/2001/XMLSchema}");
            out.push_str(target.name().trim_start_matches("xs:"));
            out.push_str(if *may_be_empty { "?" } else { "" });
        }
    }
    if in_parentheses {
        out.push(')');
    }
}

fn level(operand: &Value) -> Level {
    match operand {
        Value::Compare(Operator::Equal | Operator::NotEqual, ..) => Level::Equality,
        Value::Compare(..) => Level::Relation,
        Value::Some(_) => Level::Any,
        Value::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => Level::Sum,
        Value::Arithmetic(..) => Level::Product,
        Value::Literal(Literal::Number(number)) if number.is_sign_negative() => Level::Negative,
        Value::Negative(_) => Level::Negative,
        Value::Union(_) => Level::Union,
        Value::Sets(..) => Level::Intersection,
        Value::Castable { .. } => Level::Castable,
        // It reaches as far as it can.
        Value::If(_) => Level::Any,
        _ => Level::Primary,
    }
}

fn tighter(level: Level) -> Level {
    match level {
        Level::Equality => Level::Relation,
        Level::Relation => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Negative,
        Level::Union => Level::Intersection,
        Level::Intersection => Level::Castable,
        _ => Level::Primary,
    }
}

/// A boolean as an operand: written so that it is not read as nodes or a number.
fn condition(expr: &Expr, out: &mut String) {
    let is_call = match expr {
        Expr::Not(_) | Expr::Path(_, Test::Contains(_) | Test::StartsWith(_)) => true,
        Expr::And(operands) | Expr::Or(operands) => operands.is_empty(),
        _ => false,
    };
    let is_operator = match expr {
        Expr::And(operands) | Expr::Or(operands) => operands.len() > 1,
        Expr::Path(_, Test::Compare(..)) => true,
        Expr::Path(path, Test::Normalized(_)) => path.is_one_node(),
        _ => false,
    };
    if is_call {
        return text::expr(expr, false, out);
    }
    out.push_str(if is_operator { "(" } else { "boolean(" });
    text::expr(expr, false, out);
    out.push(')');
}

/// A quantified expression has no other clauses than `for`s and one condition.
fn quantified(clauses: &[Clause], out: &mut String) {
    out.push_str("some ");
    for (at, clause) in clauses.iter().enumerate() {
        match clause {
            Clause::For(variable, nodes) | Clause::Let(variable, nodes) => {
                if at > 0 {
                    out.push_str(", ");
                }
                text::variable(*variable, out);
                out.push_str(" in ");
                value(nodes, Level::Relation, out);
            }
            Clause::Where(Value::Condition(passes)) => {
                out.push_str(" satisfies ");
                text::expr(passes, false, out);
            }
            Clause::Where(passes) => {
                out.push_str(" satisfies ");
                value(passes, Level::Any, out);
            }
        }
    }
}

fn call(name: &str, arguments: &[Value], out: &mut String) {
    out.push_str(name);
    out.push('(');
    for (at, argument) in arguments.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        value(argument, Level::Any, out);
    }
    out.push(')');
}

fn walk_text(walk: &Walk, out: &mut String) {
    let descends = |step: &WalkStep| {
        step.axis == WalkAxis::DescendantOrSelf && step.test == NodeTest::Any && step.predicates.is_empty()
    };
    let mut is_begun = true;
    match &walk.start {
        // `/a` and `a` instead of `(/)/a` and `./a`.
        Value::Nodes(path) if *path == Path::DOCUMENT => {}
        Value::Nodes(path) if *path == Path::CONTEXT && !walk.steps.first().is_some_and(descends) => {
            is_begun = false
        }
        Value::Walk(_) | Value::Each(..) => {
            out.push('(');
            value(&walk.start, Level::Any, out);
            out.push(')');
        }
        start => value(start, Level::Primary, out),
    }
    let mut steps = walk.steps.iter().peekable();
    while let Some(next) = steps.next() {
        if descends(next) && steps.peek().is_some_and(|after| !descends(after)) {
            out.push('/');
            continue;
        }
        if is_begun {
            out.push('/');
        }
        is_begun = true;
        step(next, out);
    }
}

fn step(step: &WalkStep, out: &mut String) {
    match (step.axis, &step.test) {
        (WalkAxis::Parent, NodeTest::Any) if step.predicates.is_empty() => return out.push_str(".."),
        (WalkAxis::Child, _) => {}
        (WalkAxis::Attribute, _) => out.push('@'),
        (axis, _) => {
            out.push_str(axis.name());
            out.push_str("::");
        }
    }
    match &step.test {
        NodeTest::Any => out.push_str("node()"),
        NodeTest::Name(test) => text::name_test(test, out),
        NodeTest::Text => out.push_str("text()"),
        NodeTest::Comment => out.push_str("comment()"),
        NodeTest::Instruction(target) => {
            out.push_str("processing-instruction(");
            if let Some(target) = target {
                text::quoted(target, out);
            }
            out.push(')');
        }
    }
    predicates(&step.predicates, out);
}

fn predicates(predicates: &[Value], out: &mut String) {
    for predicate in predicates {
        out.push('[');
        match predicate {
            Value::Condition(expr) => predicate_text(expr, out),
            predicate => value(predicate, Level::Any, out),
        }
        out.push(']');
    }
}
