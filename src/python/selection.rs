//! Messages → what their matching queries select, as tables: nodes, or bindings (the node that each step of a path is bound to).

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};

use super::error::ErrorTable;
use super::matchers::Matchers;
use super::messages::Messages;
use super::tables::record_batch;
use crate::document::OtherKind;
use crate::document::{Document, NodeRef};
use crate::engine::generation::Generation;
use crate::engine::matcher::{Matcher, SelectedNodes};
use crate::error::{GenerationError, ReadError};
use crate::limits::Limits;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;

/// Rows (message, query, node).
#[derive(Default)]
pub struct NodeRows {
    message: UInt32Builder,
    query: UInt32Builder,
    node: UInt32Builder,
    kind: StringBuilder,
    attribute: UInt32Builder,
    start: UInt32Builder,
    end: UInt32Builder,
}

impl NodeRows {
    pub fn push(&mut self, message: usize, walked: &SelectedNodes<'_, Vec<NodeRef>>, limit: usize) {
        let document = walked.document;
        for (query, nodes) in &walked.found {
            // Nodes of the envelope are not among the nodes that `read_batch` numbers.
            for &node in nodes.iter().filter(|&&node| !document.is_of_envelope(node)).take(limit) {
                self.message.append_value(message as u32);
                self.query.append_value(query.0);
                self.node.append_value(document.node_id(node).0);
                let (kind, attribute, span) = match node {
                    NodeRef::Document => ("document", None, None),
                    NodeRef::Element(element) => ("element", None, Some(document.element(element).span)),
                    NodeRef::Attribute(element, place) => {
                        let first = document.element(element).attributes_start;
                        ("attribute", Some(place - first), None)
                    }
                    NodeRef::Text(place) => ("text", None, Some(document.texts[place as usize].span)),
                    NodeRef::Other(place) => {
                        let other = &document.others[place as usize];
                        let kind = match other.kind {
                            OtherKind::Comment => "comment",
                            OtherKind::Instruction { .. } => "processing-instruction",
                        };
                        (kind, None, Some(other.span))
                    }
                };
                self.kind.append_value(kind);
                self.attribute.append_option(attribute);
                self.start.append_option(span.map(|span| span.start));
                self.end.append_option(span.map(|span| span.end));
            }
        }
    }

    pub fn finish(mut self, generation: u64) -> RecordBatch {
        let columns = [
            ("message", Arc::new(self.message.finish()) as ArrayRef, false),
            ("query", Arc::new(self.query.finish()), false),
            ("node", Arc::new(self.node.finish()), false),
            ("kind", Arc::new(self.kind.finish()), false),
            ("attribute", Arc::new(self.attribute.finish()), true),
            ("span_start", Arc::new(self.start.finish()), true),
            ("span_end", Arc::new(self.end.finish()), true),
        ];
        record_batch(columns, [("generation", generation.to_string())])
    }
}

/// Rows (message, query, one node per step).
#[derive(Default)]
pub struct BindingRows {
    message: UInt32Builder,
    query: UInt32Builder,
    nodes: ListBuilder<UInt32Builder>,
}

impl BindingRows {
    pub fn push(&mut self, message: usize, walked: &SelectedNodes<'_, Vec<Vec<NodeRef>>>) {
        let number = |document: &Document, node: &NodeRef| Some(document.node_id(*node).0);
        for (query, tuples) in &walked.found {
            let is_of_message =
                |tuple: &&Vec<NodeRef>| !tuple.iter().any(|&node| walked.document.is_of_envelope(node));
            for tuple in tuples.iter().filter(is_of_message) {
                self.message.append_value(message as u32);
                self.query.append_value(query.0);
                self.nodes.append_value(tuple.iter().map(|node| number(walked.document, node)));
            }
        }
    }

    pub fn finish(mut self, generation: u64) -> RecordBatch {
        let columns = [
            ("message", Arc::new(self.message.finish()) as ArrayRef, false),
            ("query", Arc::new(self.query.finish()), false),
            ("nodes", Arc::new(self.nodes.finish()), false),
        ];
        record_batch(columns, [("generation", generation.to_string())])
    }
}

/// Walks the matching queries of messages and passes the results of each message to `push`. Returns the errors of
/// messages that cannot be read and of queries that failed.
pub fn walk<T>(
    matchers: &Matchers,
    generation: &Generation,
    messages: &Messages,
    tenant: &str,
    limits: &Limits,
    walk: impl Fn(&mut Verifier<'_>, u32) -> Result<T, WorkLimit>,
    mut push: impl FnMut(usize, &SelectedNodes<'_, T>),
) -> Result<RecordBatch, GenerationError> {
    let mut done = (ErrorTable::new("message"), 0);
    let work = |matcher: &mut Matcher, (errors, number): &mut (ErrorTable, usize)| {
        let rest = messages.or_empty().skip(*number);
        matcher.select_batch(generation, tenant, rest, limits, &walk, |outcome| {
            match outcome {
                Ok(walked) => {
                    push(*number, &walked);
                    for query in walked.failed {
                        let (reason, exceeded) = WorkLimit::describe(limits.work);
                        errors.push_failed(*number, &format!("query {}: {reason}", query.0), exceeded);
                    }
                }
                Err(error) => errors.push_read(*number, &messages.error_at(*number, error)),
            }
            *number += 1;
        });
    };
    let refuse = |(errors, number): &mut (ErrorTable, usize), error: &ReadError| {
        errors.push_read(*number, error);
        *number += 1;
    };
    matchers.run(generation, &mut done, work, refuse).map(|()| done.0.finish())
}
