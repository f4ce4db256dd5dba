//! Equalities by which the nodes of a message are joined: looked up in a hash table of the nodes' values, in place of
//! comparing all pairs.
//!
//! ```text
//! //item[@order = $v/@id][@n]     the nodes //item, by their @order; those with a value of $v/@id; of them, [@order = $v/@id][@n]
//! ```
//!
//! The table is made once for a message: the nodes and their values may not depend on variables.

use super::ast::{Operator, Path, Start, Variable};
use super::join::{is_key, is_of_data, is_outside};
use super::value::{Clause, Value, Walk, WalkStep};
use super::variables::Uses;

/// A walk whose nodes can be looked up.
pub struct HashJoin<'v> {
    /// The nodes before the equality.
    pub nodes: Walk,
    /// Their values, relative to each of them.
    pub key: &'v Value,
    /// What the values equal.
    pub value: &'v Value,
    /// The equality, and the predicates after it.
    pub predicates: &'v [Value],
    pub rest: &'v [WalkStep],
}

/// How to look up the nodes of a walk, if there is such an equality.
pub fn hash_join(walk: &Walk) -> Option<HashJoin<'_>> {
    if is_of_data(walk) {
        return None;
    }
    let varies = |predicate: &Value| !Uses::of_value(predicate).free.is_empty();
    let (at, step) = walk.steps.iter().enumerate().find(|(_, step)| step.predicates.iter().any(varies))?;
    let place = step.predicates.iter().position(varies)?;
    if step.predicates.iter().any(Value::selects_by_position) {
        return None;
    }
    let Value::Compare(Operator::Equal, left, right) = &step.predicates[place] else { return None };
    let (key, value) = match (is_own(left) && is_other(right), is_own(right) && is_other(left)) {
        (true, _) => (&**left, &**right),
        (_, true) => (&**right, &**left),
        _ => return None,
    };
    let mut steps = walk.steps[..=at].to_vec();
    steps[at].predicates.truncate(place);
    let nodes = Walk { start: walk.start.clone(), steps };
    let starts_at_message =
        matches!(&nodes.start, Value::Nodes(path) if matches!(path.start, Start::Document | Start::Message));
    let (predicates, rest) = (&step.predicates[place..], &walk.steps[at + 1..]);
    (starts_at_message && Uses::of_value(&nodes.start).free.is_empty()).then_some(HashJoin {
        nodes,
        key,
        value,
        predicates,
        rest,
    })
}

/// Whether a value is a path from the node that is tested, the same for all tuples.
fn is_own(value: &Value) -> bool {
    matches!(value, Value::Nodes(path) if path.start == Start::Context)
        && Uses::of_value(value).free.is_empty()
}

/// Whether a value depends on variables, and not on the node that is tested.
fn is_other(value: &Value) -> bool {
    is_key(value) && is_outside(value) && !Uses::of_value(value).free.is_empty()
}

/// Makes equalities after a `for` predicates of its nodes too, where these can be looked up then.
pub fn push_equalities(clauses: &mut [Clause]) {
    for at in 1..clauses.len() {
        let (before, after) = clauses.split_at_mut(at);
        let Clause::Where(condition) = &after[0] else { continue };
        let last = before.iter_mut().rev().find(|clause| clause.variable().is_some());
        if let Some(Clause::For(variable, nodes)) = last
            && let Some(predicate) = as_predicate(condition, *variable)
            && let Some(walk) = with_predicate(nodes, predicate)
            && hash_join(&walk).is_some()
        {
            *nodes = Value::Walk(Box::new(walk));
        }
    }
}

/// `$v/b = $v2/c`, where `$v` is the variable, as `b = $v2/c`.
fn as_predicate(condition: &Value, variable: Variable) -> Option<Value> {
    let Value::Compare(Operator::Equal, left, right) = condition else { return None };
    let own = |value: &Value| match value {
        Value::Nodes(Path { start: Start::Variable(of), steps }) if *of == variable => {
            Some(Value::Nodes(Path { start: Start::Context, steps: steps.clone() }))
        }
        _ => None,
    };
    let is_free = |value: &Value| !Uses::of_value(value).free.has(variable);
    let (left, right) = match (own(left), own(right)) {
        (Some(own), None) if is_free(right) => (own, (**right).clone()),
        (None, Some(own)) if is_free(left) => (own, (**left).clone()),
        _ => return None,
    };
    Some(Value::Compare(Operator::Equal, Box::new(left), Box::new(right)))
}

fn with_predicate(nodes: &Value, predicate: Value) -> Option<Walk> {
    let mut walk = match nodes {
        Value::Nodes(path) => Walk::of_path(path),
        Value::Walk(walk) => (**walk).clone(),
        _ => return None,
    };
    walk.steps.last_mut()?.predicates.push(predicate);
    Some(walk)
}
