//! Decomposed queries → tables: steps, linear paths, alternatives and the boolean tree in postfix order.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, LargeStringBuilder, ListBuilder,
    StringBuilder, UInt32Builder,
};
use arrow_array::{ArrayRef, RecordBatch};

use super::error::ErrorTable;
use super::tables::{Column, record_batch};
use super::values::{TEXT_BYTES, hash128, path_hash};
use crate::query::ast::{Axis, Expr, Literal, NameTest, Test};
use crate::query::decompose::{Alternative, Check, DOCUMENT, Decomposition, Subject, decompose_for_joins};
use crate::query::inexact::Inexact;
use crate::query::postfix::{Postfix, postfix};
use crate::query::{Namespaces, Query, QueryId, parse};

/// The tables of `tamis.Decomposition`, in its order.
pub fn tables(queries: &[String], namespaces: &Namespaces) -> [RecordBatch; 6] {
    let mut accepted = QueryTable::default();
    let (mut steps, mut lines) = (StepTable::default(), LinearPathTable::default());
    let (mut alternatives, mut tree) = (AlternativeTable::default(), PostfixTable::default());
    let mut errors = ErrorTable::new("query");
    for (at, text) in queries.iter().enumerate() {
        match parse(text, namespaces) {
            Err(error) => errors.push_query(at, &error),
            Ok(query) => {
                let at = at as u32;
                let parts = decompose_for_joins(&query);
                accepted.push(at, &query.canonical());
                steps.push(at, &parts);
                lines.push(at, &parts);
                parts.alternatives.iter().enumerate().for_each(|(n, one)| alternatives.push(at, n, one));
                postfix(&query).iter().enumerate().for_each(|(n, one)| tree.push(at, n, *one));
            }
        }
    }
    [accepted.finish(), steps.finish(), lines.finish(), alternatives.finish(), tree.finish(), errors.finish()]
}

#[derive(Default)]
struct QueryTable {
    query: UInt32Builder,
    id: StringBuilder,
    canonical: LargeStringBuilder,
}

impl QueryTable {
    fn push(&mut self, query: u32, canonical: &str) {
        self.query.append_value(query);
        self.id.append_value(QueryId::of(canonical).to_string());
        self.canonical.append_value(canonical);
    }

    fn finish(mut self) -> RecordBatch {
        table([
            ("query", Arc::new(self.query.finish()), false),
            ("id", Arc::new(self.id.finish()), false),
            ("canonical", Arc::new(self.canonical.finish()), false),
        ])
    }
}

/// A name test as two columns; null stands for any.
#[derive(Default)]
struct NameTestColumns {
    namespace: LargeStringBuilder,
    name: LargeStringBuilder,
}

impl NameTestColumns {
    fn push(&mut self, test: Option<&NameTest>) {
        let (namespace, name) = match test {
            None | Some(NameTest::Any) => (None, None),
            Some(NameTest::AnyIn(uri)) => (Some(uri), None),
            Some(NameTest::Name(name)) => (Some(&name.uri), Some(&name.local)),
            Some(NameTest::Local(local)) => (None, Some(local)),
        };
        self.namespace.append_option(namespace);
        self.name.append_option(name);
    }

    fn finish(mut self) -> [Column; 2] {
        [
            ("namespace", Arc::new(self.namespace.finish()) as ArrayRef, true),
            ("name", Arc::new(self.name.finish()), true),
        ]
    }
}

#[derive(Default)]
struct StepTable {
    query: UInt32Builder,
    step: UInt32Builder,
    parent: UInt32Builder,
    axis: StringBuilder,
    test: NameTestColumns,
    branches: UInt32Builder,
}

impl StepTable {
    fn push(&mut self, query: u32, parts: &Decomposition<'_>) {
        let mut branches = vec![0; parts.nodes.len()];
        let hanging =
            parts.nodes.iter().map(|step| step.parent).chain(parts.lines.iter().map(|line| line.node));
        hanging.filter(|&node| node != DOCUMENT).for_each(|node| branches[node as usize] += 1);
        for (number, (step, count)) in parts.nodes.iter().zip(branches).enumerate() {
            self.query.append_value(query);
            self.step.append_value(number as u32);
            self.parent.append_option((step.parent != DOCUMENT).then_some(step.parent));
            self.axis.append_value(match step.axis {
                Axis::Child => "child",
                Axis::Descendant => "descendant",
            });
            self.test.push(Some(step.test));
            self.branches.append_value(count);
        }
    }

    fn finish(mut self) -> RecordBatch {
        let [namespace, name] = self.test.finish();
        table([
            ("query", Arc::new(self.query.finish()), false),
            ("step", Arc::new(self.step.finish()), false),
            ("parent", Arc::new(self.parent.finish()), true),
            ("axis", Arc::new(self.axis.finish()), false),
            namespace,
            name,
            ("branches", Arc::new(self.branches.finish()), false),
        ])
    }
}

#[derive(Default)]
struct LinearPathTable {
    query: UInt32Builder,
    line: UInt32Builder,
    step: UInt32Builder,
    subject: StringBuilder,
    test: NameTestColumns,
    operator: StringBuilder,
    text: LargeStringBuilder,
    /// Of a text that is longer than value tables contain.
    length: Int64Builder,
    hash: BinaryBuilder,
    number: Float64Builder,
    path: LargeStringBuilder,
    path_hash: Int64Builder,
    /// The steps of the path, from the root down.
    steps: ListBuilder<UInt32Builder>,
}

impl LinearPathTable {
    fn push(&mut self, query: u32, parts: &Decomposition<'_>) {
        for (number, line) in parts.lines.iter().enumerate() {
            self.query.append_value(query);
            self.line.append_value(number as u32);
            self.step.append_option((line.node != DOCUMENT).then_some(line.node));
            let (subject, attribute) = match line.subject {
                Subject::Element => ("element", None),
                Subject::Attribute(test) => ("attribute", Some(test)),
                Subject::Text => ("text", None),
                Subject::Value => ("value", None),
                Subject::Position(_) => ("position", None),
            };
            self.subject.append_value(subject);
            self.test.push(attribute);
            let (operator, text, number) = match line.check {
                Check::Exists => ("exists", None, None),
                Check::Equal(Literal::Text(text)) => ("=", Some(text.as_str()), None),
                Check::Equal(Literal::Number(number)) => ("=", None, Some(*number)),
                Check::Normalized(text) => ("normalize-space =", Some(text), None),
                Check::Unequal(Literal::Text(text)) => ("!=", Some(text.as_str()), None),
                Check::Unequal(Literal::Number(number)) => ("!=", None, Some(*number)),
                Check::Range(operator, number) => (operator.symbol(), None, Some(number)),
                Check::Position(position) => ("=", None, Some(f64::from(position))),
            };
            self.operator.append_value(operator);
            self.text.append_option(text);
            let long = text.filter(|text| text.len() > TEXT_BYTES);
            self.length.append_option(long.map(|text| text.len() as i64));
            self.hash.append_option(long.map(|text| hash128(text.as_bytes())));
            self.number.append_option(number);
            let path = Query::filter(Expr::Path(parts.path_of(line), Test::Exists)).canonical();
            self.path_hash.append_value(path_hash(&path));
            self.path.append_value(path);
            self.steps.append_value(parts.steps_to(line.node).into_iter().map(Some));
        }
    }

    fn finish(mut self) -> RecordBatch {
        let [namespace, name] = self.test.finish();
        table([
            ("query", Arc::new(self.query.finish()), false),
            ("line", Arc::new(self.line.finish()), false),
            ("step", Arc::new(self.step.finish()), true),
            ("subject", Arc::new(self.subject.finish()), false),
            namespace,
            name,
            ("operator", Arc::new(self.operator.finish()), false),
            ("text", Arc::new(self.text.finish()), true),
            ("length", Arc::new(self.length.finish()), true),
            ("hash", Arc::new(self.hash.finish()), true),
            ("number", Arc::new(self.number.finish()), true),
            ("path", Arc::new(self.path.finish()), false),
            ("path_hash", Arc::new(self.path_hash.finish()), false),
            ("steps", Arc::new(self.steps.finish()), false),
        ])
    }
}

#[derive(Default)]
struct AlternativeTable {
    query: UInt32Builder,
    alternative: UInt32Builder,
    /// Positive, negative, anchors.
    lists: [ListBuilder<UInt32Builder>; 3],
    exact: BooleanBuilder,
    reason: StringBuilder,
    /// What a position counts: the step and the position, and the lines that hold of what it counts.
    counted: [UInt32Builder; 2],
    counted_lines: ListBuilder<UInt32Builder>,
}

impl AlternativeTable {
    fn push(&mut self, query: u32, number: usize, alternative: &Alternative) {
        self.query.append_value(query);
        self.alternative.append_value(number as u32);
        let lists = [&alternative.positive, &alternative.negative, &alternative.anchors];
        for (column, list) in self.lists.iter_mut().zip(lists) {
            column.append_value(list.iter().copied().map(Some));
        }
        self.exact.append_value(alternative.inexact.is_none());
        self.reason.append_option(alternative.inexact.map(Inexact::reason));
        let counted = alternative.counted.as_ref();
        self.counted[0].append_option(counted.map(|counted| counted.anchor));
        self.counted[1].append_option(counted.map(|counted| counted.position));
        self.counted_lines.append_option(counted.map(|counted| counted.lines.iter().copied().map(Some)));
    }

    fn finish(mut self) -> RecordBatch {
        let [positive, negative, anchors] =
            self.lists.each_mut().map(|list| Arc::new(list.finish()) as ArrayRef);
        let [mut step, mut position] = self.counted;
        table([
            ("query", Arc::new(self.query.finish()), false),
            ("alternative", Arc::new(self.alternative.finish()), false),
            ("positive", positive, false),
            ("negative", negative, false),
            ("anchors", anchors, false),
            ("exact", Arc::new(self.exact.finish()), false),
            ("reason", Arc::new(self.reason.finish()), true),
            ("counted", Arc::new(step.finish()), true),
            ("position", Arc::new(position.finish()), true),
            ("counted_lines", Arc::new(self.counted_lines.finish()), true),
        ])
    }
}

#[derive(Default)]
struct PostfixTable {
    query: UInt32Builder,
    place: UInt32Builder,
    operator: StringBuilder,
    argument: UInt32Builder,
}

impl PostfixTable {
    fn push(&mut self, query: u32, place: usize, entry: Postfix) {
        let (operator, argument) = match entry {
            Postfix::Path(path) => ("path", path),
            Postfix::And(operands) => ("and", operands),
            Postfix::Or(operands) => ("or", operands),
            Postfix::Not => ("not", 1),
        };
        self.query.append_value(query);
        self.place.append_value(place as u32);
        self.operator.append_value(operator);
        self.argument.append_value(argument);
    }

    fn finish(mut self) -> RecordBatch {
        table([
            ("query", Arc::new(self.query.finish()), false),
            ("place", Arc::new(self.place.finish()), false),
            ("operator", Arc::new(self.operator.finish()), false),
            ("argument", Arc::new(self.argument.finish()), false),
        ])
    }
}

fn table<const N: usize>(columns: [Column; N]) -> RecordBatch {
    record_batch(columns, [])
}
