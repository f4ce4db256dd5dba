//! Comparisons and conversions of values, as XPath 1.0 defines them in sections 3.4 and 4.2 to 4.4.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::{Evaluated, Item};
use crate::data::Node;
use crate::matching::twigs::verify::Trees;
use crate::query::ast::Operator;
use crate::query::functions::number_text;
use crate::query::number::number;

impl<'a> Evaluated<'a> {
    pub fn boolean(&self) -> bool {
        match self {
            Evaluated::Nodes(nodes) => !nodes.is_empty(),
            Evaluated::Number(number) => *number != 0.0 && !number.is_nan(),
            Evaluated::Text(text) => !text.is_empty(),
            Evaluated::Boolean(boolean) => *boolean,
            // Of several values that are no nodes, XPath 2.0 has no boolean.
            Evaluated::Items(items) => match items.as_slice() {
                [Item::Node(_), ..] => true,
                [item] => Evaluated::from(item.clone()).boolean(),
                _ => false,
            },
        }
    }

    /// The number of items.
    pub fn count(&self) -> usize {
        match self {
            Evaluated::Nodes(nodes) => nodes.len(),
            Evaluated::Items(items) => items.len(),
            _ => 1,
        }
    }

    pub fn number(&self, trees: Trees<'a>) -> f64 {
        match self {
            Evaluated::Nodes(nodes) => number(first_text(trees, nodes)),
            Evaluated::Number(number) => *number,
            Evaluated::Text(text) => number(text),
            Evaluated::Boolean(boolean) => f64::from(u8::from(*boolean)),
            Evaluated::Items(items) => items.first().map_or(f64::NAN, |item| item.number(trees)),
        }
    }

    pub fn text(self, trees: Trees<'a>) -> Cow<'a, [u8]> {
        match self {
            Evaluated::Nodes(nodes) => Cow::Borrowed(first_text(trees, &nodes)),
            Evaluated::Number(number) => Cow::Owned(number_text(number).into_bytes()),
            Evaluated::Text(text) => text,
            Evaluated::Boolean(boolean) => Cow::Borrowed(if boolean { b"true" } else { b"false" }),
            Evaluated::Items(items) => items.first().map_or(Cow::Borrowed(b""), |item| item.text(trees)),
        }
    }
}

/// The string-value of the first node; of no node, the empty string.
pub fn first_text<'a>(trees: Trees<'a>, nodes: &[Node]) -> &'a [u8] {
    nodes.first().map_or(b"", |&node| trees.value_of(node))
}

pub fn holds<'a>(trees: Trees<'a>, operator: Operator, left: Evaluated<'a>, right: Evaluated<'a>) -> bool {
    match (left, right) {
        (Evaluated::Nodes(left), Evaluated::Nodes(right)) => sets(trees, operator, &left, &right),
        (left @ Evaluated::Boolean(_), right) | (left, right @ Evaluated::Boolean(_)) => {
            let number = |value: Evaluated<'a>| f64::from(u8::from(value.boolean()));
            match (operator, &left, &right) {
                // Only a node set is a boolean first; the number of a string is not that of its truth.
                (Operator::Equal | Operator::NotEqual, ..) => operator.holds(number(left), number(right)),
                (_, Evaluated::Nodes(_) | Evaluated::Items(_), _)
                | (_, _, Evaluated::Nodes(_) | Evaluated::Items(_)) => {
                    operator.holds(number(left), number(right))
                }
                _ => operator.holds(left.number(trees), right.number(trees)),
            }
        }
        (Evaluated::Items(items), other) => {
            items.into_iter().any(|item| holds(trees, operator, item.into(), other.clone()))
        }
        (other, Evaluated::Items(items)) => {
            items.into_iter().any(|item| holds(trees, operator, other.clone(), item.into()))
        }
        (Evaluated::Nodes(nodes), value) => any(trees, operator, &nodes, &value),
        (value, Evaluated::Nodes(nodes)) => any(trees, operator.mirrored(), &nodes, &value),
        (Evaluated::Text(left), Evaluated::Text(right)) => match operator {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            _ => operator.holds(number(&left), number(&right)),
        },
        (left, right) => operator.holds(left.number(trees), right.number(trees)),
    }
}

/// Whether a node passes the comparison with a string or a number.
fn any(trees: Trees<'_>, operator: Operator, nodes: &[Node], value: &Evaluated<'_>) -> bool {
    let mut values = nodes.iter().map(|&node| trees.value_of(node));
    match (operator, value) {
        (Operator::Equal, Evaluated::Text(text)) => values.any(|value| value == &**text),
        (Operator::NotEqual, Evaluated::Text(text)) => values.any(|value| value != &**text),
        (_, Evaluated::Text(text)) => {
            let right = number(text);
            values.any(|value| operator.holds(number(value), right))
        }
        (_, Evaluated::Number(right)) => values.any(|value| operator.holds(number(value), *right)),
        _ => false,
    }
}

/// Whether a node of one set and one of the other pass the comparison.
fn sets(trees: Trees<'_>, operator: Operator, left: &[Node], right: &[Node]) -> bool {
    let value = |node: &Node| trees.value_of(*node);
    match operator {
        Operator::Equal => {
            let (fewer, more) = if left.len() < right.len() { (left, right) } else { (right, left) };
            let known: FxHashSet<&[u8]> = fewer.iter().map(value).collect();
            more.iter().any(|node| known.contains(value(node)))
        }
        Operator::NotEqual => {
            let (Some(first), false) = (left.first().map(value), right.is_empty()) else { return false };
            // Unless all values are the same, two of them differ across the sets.
            left.iter().chain(right).any(|node| value(node) != first)
        }
        Operator::Less | Operator::LessOrEqual => {
            operator.holds(extreme(trees, left, f64::min), extreme(trees, right, f64::max))
        }
        Operator::Greater | Operator::GreaterOrEqual => {
            operator.holds(extreme(trees, left, f64::max), extreme(trees, right, f64::min))
        }
    }
}

/// The smallest or largest number of nodes; NaN, which compares with nothing, if none is a number.
fn extreme(trees: Trees<'_>, nodes: &[Node], choose: fn(f64, f64) -> f64) -> f64 {
    nodes.iter().map(|&node| number(trees.value_of(node))).fold(f64::NAN, choose)
}
