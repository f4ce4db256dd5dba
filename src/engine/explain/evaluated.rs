//! The values that a query computes on a message, part by part: `count(//item)` is 3, so `count(//item)>2` is true.

use crate::document::{Document, NodeRef};
use crate::engine::explain::{Place, place};
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::{Evaluated, Item, Trees, Verifier};
use crate::query::ast::{Expr, Path, Predicate, Start};
use crate::query::functions::number_text;
use crate::query::value::{Kind, Value};
use crate::query::value_text;

/// Of a predicate, the values at so many nodes are shown.
const NODES: usize = 3;
/// Of a set, so many values, each with so many characters.
const VALUES: usize = 3;
const CHARACTERS: usize = 40;

pub struct EvaluatedPart {
    pub text: String,
    /// The value, for people.
    pub value: String,
    /// The node that a predicate tests.
    pub at: Option<Place>,
}

/// A condition that is computed, and the nodes that it is computed at.
pub struct ComputedPart<'q> {
    /// The path to the nodes; none for the document node.
    at: Option<Value>,
    value: &'q Value,
}

/// A value of a condition, compiled.
pub struct CompiledPart {
    text: String,
    value: u32,
}

/// The computed conditions of a query, in the order in which they are written.
pub fn computed_parts<'q>(expr: &'q Expr, parts: &mut Vec<ComputedPart<'q>>) {
    collect(expr, None, parts);
}

fn collect<'q>(expr: &'q Expr, context: Option<&Path>, parts: &mut Vec<ComputedPart<'q>>) {
    match expr {
        Expr::And(operands) | Expr::Or(operands) => {
            operands.iter().for_each(|operand| collect(operand, context, parts));
        }
        Expr::Not(operand) => collect(operand, context, parts),
        Expr::Computed(computed) => {
            parts.push(ComputedPart { at: context.cloned().map(Value::Nodes), value: &computed.value });
        }
        Expr::Path(path, _) => {
            let mut way = match (path.start, context) {
                (Start::Context, Some(context)) => context.clone(),
                (Start::Variable(_), _) => return,
                _ => Path::DOCUMENT,
            };
            for step in &path.steps {
                way.steps.push(step.clone());
                let last = way.steps.len() - 1;
                way.steps[last].predicates.clear();
                for predicate in &step.predicates {
                    if let Predicate::Condition(condition) = predicate {
                        collect(condition, Some(&way), parts);
                    }
                    way.steps[last].predicates.push(predicate.clone());
                }
            }
        }
    }
}

impl ComputedPart<'_> {
    /// Compiles the path to its nodes, and its values: first those that others are computed from.
    pub fn compile(&self, compile: &mut impl FnMut(&Value) -> u32) -> (Option<u32>, Vec<CompiledPart>) {
        let mut parts = Vec::new();
        compile_parts(self.value, compile, &mut parts);
        (self.at.as_ref().map(compile), parts)
    }
}

fn compile_parts(value: &Value, compile: &mut impl FnMut(&Value) -> u32, parts: &mut Vec<CompiledPart>) {
    let operands: Vec<&Value> = match value {
        Value::Literal(_) => return,
        _ if value.is_positional() || value.kind() == Kind::Nodes => Vec::new(),
        Value::Compare(_, left, right) | Value::Arithmetic(_, left, right) => vec![left, right],
        Value::Call(_, arguments) | Value::Sequence(arguments) => arguments.iter().collect(),
        Value::Negative(operand) | Value::Castable { operand, .. } => vec![operand],
        Value::If(parts) => parts.iter().collect(),
        _ => Vec::new(),
    };
    operands.into_iter().for_each(|operand| compile_parts(operand, compile, parts));
    let text = value_text(value);
    if text != "." && parts.iter().all(|part| part.text != text) {
        parts.push(CompiledPart { text, value: compile(value) });
    }
}

/// The values of a condition on a message.
pub fn evaluate(
    (at, parts): &(Option<u32>, Vec<CompiledPart>),
    document: &Document,
    verifier: &mut Verifier<'_>,
    evaluated: &mut Vec<EvaluatedPart>,
) -> Result<(), WorkLimit> {
    let mut nodes = vec![NodeRef::Document];
    if let Some(at) = at {
        nodes.clear();
        if let Evaluated::Nodes(found) = verifier.value_at(*at, NodeRef::Document)? {
            // Nodes of local data have no place in the message.
            let of_message = found.into_iter().filter(|node| node.tree.is_message());
            nodes.extend(of_message.take(NODES).map(|node| node.node));
        }
    }
    for node in nodes {
        let place = at.is_some().then(|| place(document, node));
        for part in parts {
            let value = verifier.value_at(part.value, node)?;
            let value = describe(verifier.trees(), value);
            evaluated.push(EvaluatedPart { text: part.text.clone(), value, at: place });
        }
    }
    Ok(())
}

fn describe<'a>(trees: Trees<'a>, value: Evaluated<'a>) -> String {
    match value {
        Evaluated::Nodes(nodes) => {
            let values = nodes.iter().take(VALUES).map(|&node| quoted(trees.value_of(node)));
            list("node", nodes.len(), values.collect())
        }
        Evaluated::Items(items) => {
            let shown = items.iter().take(VALUES).map(|item| match item {
                Item::Number(number) => number_text(*number),
                Item::Boolean(boolean) => boolean.to_string(),
                item => quoted(&item.text(trees)),
            });
            list("item", items.len(), shown.collect())
        }
        Evaluated::Number(number) => number_text(number),
        Evaluated::Text(text) => quoted(&text),
        Evaluated::Boolean(boolean) => boolean.to_string(),
    }
}

fn list(what: &str, count: usize, mut shown: Vec<String>) -> String {
    if count > shown.len() {
        shown.push("…".to_string());
    }
    let plural = if count == 1 { "" } else { "s" };
    let colon = if count == 0 { "" } else { ": " };
    format!("{count} {what}{plural}{colon}{}", shown.join(", "))
}

fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("'{shown}'")
}
