//! Query → canonical text, which parses to the same query again: `//a[@x = "1"]` → `//a[@x='1']`.

use std::fmt::Write;

use super::ast::{
    Axis, Expr, Literal, Name, NameTest, Node, Path, Predicate, Query, Start, Step, Test, Variable,
};
use super::template_text;
use super::value_text::{computed, computed_operand, predicate_text};

pub fn write(query: &Query, out: &mut String) {
    match &query.transformation {
        Some(transformation) => template_text::write(transformation, out),
        None => expr(&query.expr, false, out),
    }
}

/// `inside_and`: whether an `or` needs parentheses.
pub(super) fn expr(expression: &Expr, inside_and: bool, out: &mut String) {
    match expression {
        Expr::Or(operands) if operands.is_empty() => out.push_str("false()"),
        Expr::And(operands) if operands.is_empty() => out.push_str("true()"),
        Expr::Or(operands) => {
            let parentheses = inside_and && operands.len() > 1;
            if parentheses {
                out.push('(');
            }
            joined(operands, " or ", inside_and && !parentheses, out);
            if parentheses {
                out.push(')');
            }
        }
        Expr::And(operands) => joined(operands, " and ", inside_and || operands.len() > 1, out),
        Expr::Not(operand) => {
            out.push_str("not(");
            expr(operand, false, out);
            out.push(')');
        }
        Expr::Path(nodes, test) => tested(nodes, test, out),
        Expr::Computed(condition) => computed(&condition.value, out),
    }
}

fn joined(operands: &[Expr], word: &str, inside_and: bool, out: &mut String) {
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 {
            out.push_str(word);
        }
        match operand {
            Expr::Computed(condition) if operands.len() > 1 => computed_operand(&condition.value, out),
            operand => expr(operand, inside_and, out),
        }
    }
}

fn tested(nodes: &Path, test: &Test, out: &mut String) {
    match test {
        Test::Exists => path(nodes, out),
        Test::Compare(operator, literal) => {
            path(nodes, out);
            out.push_str(operator.symbol());
            match literal {
                Literal::Text(value) => quoted(value, out),
                Literal::Number(value) => number(*value, out),
            }
        }
        Test::Normalized(value) => normalized(nodes, value, out),
        Test::Contains(value) => function("contains(", nodes, value, out),
        Test::StartsWith(value) => function("starts-with(", nodes, value, out),
    }
}

/// `normalize-space()` is of one node: of others it is said in a predicate.
fn normalized(nodes: &Path, value: &str, out: &mut String) {
    if nodes.is_one_node() {
        out.push_str("normalize-space(");
        path(nodes, out);
        out.push_str(")=");
        return quoted(value, out);
    }
    path(nodes, out);
    out.push_str("[normalize-space(.)=");
    quoted(value, out);
    out.push(']');
}

fn function(opening: &str, nodes: &Path, value: &str, out: &mut String) {
    out.push_str(opening);
    path(nodes, out);
    out.push_str(", ");
    quoted(value, out);
    out.push(')');
}

pub(super) fn path(path: &Path, out: &mut String) {
    match (path.start, path.steps.split_first()) {
        // In parentheses, so that a word after it is not read as a step.
        (Start::Document, None) => out.push_str("(/)"),
        (Start::Document, Some(_)) => steps(&path.steps, out),
        (Start::Context, None) => out.push('.'),
        (Start::Context, Some((first, rest))) => {
            if first.axis == Axis::Descendant {
                out.push_str(".//");
            }
            step(first, out);
            steps(rest, out);
        }
        (Start::Variable(name), _) => {
            variable(name, out);
            steps(&path.steps, out);
        }
        (Start::Message, _) => {
            out.push_str("$msg");
            steps(&path.steps, out);
        }
    }
}

/// `$v`, and for those bound while others are in scope `$v2`, `$v3`, ….
pub(super) fn variable(Variable(level): Variable, out: &mut String) {
    out.push_str("$v");
    if level > 0 {
        let _ = write!(out, "{}", level + 1);
    }
}

/// Steps after the start of a path, each with its `/` or `//`.
pub(super) fn steps(steps: &[Step], out: &mut String) {
    for next in steps {
        out.push_str(if next.axis == Axis::Child { "/" } else { "//" });
        step(next, out);
    }
}

fn step(step: &Step, out: &mut String) {
    match &step.node {
        Node::Element(test) => name_test(test, out),
        Node::Attribute(test) => {
            out.push('@');
            name_test(test, out);
        }
        Node::Text => out.push_str("text()"),
    }
    for predicate in &step.predicates {
        out.push('[');
        match predicate {
            Predicate::Position(position) => number(position.map_or(0.0, f64::from), out),
            Predicate::Condition(condition) => predicate_text(condition, out),
        }
        out.push(']');
    }
}

pub(super) fn name_test(test: &NameTest, out: &mut String) {
    match test {
        NameTest::Any => out.push('*'),
        NameTest::AnyIn(uri) => {
            namespace(uri, out);
            out.push('*');
        }
        NameTest::Name(Name { uri, local }) => {
            if !uri.is_empty() {
                namespace(uri, out);
            }
            out.push_str(local);
        }
        NameTest::Local(local) => {
            out.push_str("*:");
            out.push_str(local);
        }
    }
}

fn namespace(uri: &str, out: &mut String) {
    out.push_str("Q{");
    out.push_str(uri);
    out.push('}');
}

/// A literal contains at most one kind of quote: XPath 1.0 cannot write both in one literal.
pub(super) fn quoted(value: &str, out: &mut String) {
    let quote = if value.contains('\'') { '"' } else { '\'' };
    out.push(quote);
    out.push_str(value);
    out.push(quote);
}

/// The shortest decimal text that parses to the number, without exponent.
pub(super) fn number(value: f64, out: &mut String) {
    if value.is_infinite() {
        // XPath cannot write infinity; the smallest power of ten beyond the doubles parses to it.
        let sign = if value < 0.0 { "-" } else { "" };
        let _ = write!(out, "{sign}1{:0309}", 0);
    } else {
        let _ = write!(out, "{value}");
    }
}
