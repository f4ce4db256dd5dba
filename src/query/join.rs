//! Walks over local data, and the equalities by which the records that they meet can be looked up.
//!
//! ```text
//! collection('companies')/company[@symbol = $v/@symbol]/name     company/@symbol  =  $v/@symbol
//! @symbol = collection('watch')/row[owner = 'ada']/symbol        row/owner        =  'ada'
//!                                                                row/symbol       =  @symbol
//! ```
//!
//! Each equality holds for all records that the walk meets, so any of them finds all these records, and maybe others. Of
//! what it does not know, this module says nothing: then all records are read.

use super::ast::{Axis, Expr, Literal, NameTest, Node, Operator, Path, Start, Step, Test};
use super::value::{Function, Kind, NodeTest, Value, Walk, WalkAxis, WalkStep};

/// How records are looked up.
#[derive(Debug)]
pub enum Access<'v> {
    /// The value at the end of a path is one of the values of an expression outside of the records.
    Equal(Vec<KeyStep<'v>>, KeyValue<'v>),
    Any(Vec<Access<'v>>),
}

#[derive(Debug)]
pub enum KeyValue<'v> {
    Literal(&'v Literal),
    Value(&'v Value),
}

/// A step of a path from the document node of a record.
#[derive(Clone, Copy, Debug)]
pub struct KeyStep<'v> {
    pub descends: bool,
    pub node: KeyNode<'v>,
}

#[derive(Clone, Copy, Debug)]
pub enum KeyNode<'v> {
    Element(&'v NameTest),
    Attribute(&'v NameTest),
    Text,
}

/// The name of local data that a value is the documents of, and whether it is a collection.
pub fn data_of(value: &Value) -> Option<(&str, bool)> {
    let Value::Call(function @ (Function::Doc | Function::Collection), arguments) = value else {
        return None;
    };
    match arguments.as_slice() {
        [Value::Literal(Literal::Text(name))] => Some((name, *function == Function::Collection)),
        _ => None,
    }
}

/// Whether a walk starts at local data.
pub fn is_of_data(walk: &Walk) -> bool {
    data_of(&walk.start).is_some()
}

/// The equalities in the predicates of a walk over local data.
pub fn accesses(walk: &Walk) -> Vec<Access<'_>> {
    let mut found = Vec::new();
    let mut way = Vec::new();
    let mut descends = false;
    for step in &walk.steps {
        if !extend(&mut way, step, &mut descends) {
            break;
        }
        if !descends {
            found.extend(step.predicates.iter().filter_map(|predicate| of_predicate(predicate, &way)));
        }
    }
    found
}

/// The equality that a walk over local data has, if its nodes are compared with a value outside of the records.
pub fn access_by_nodes<'v>(walk: &'v Walk, value: &'v Value) -> Option<Access<'v>> {
    let mut way = Vec::new();
    let mut descends = false;
    let is_way = walk.steps.iter().all(|step| extend(&mut way, step, &mut descends));
    (is_way && !descends && !way.is_empty() && is_key(value))
        .then_some(Access::Equal(way, KeyValue::Value(value)))
}

/// Extends a way by a step; false if it cannot be. `descends` is whether a `//` is pending.
fn extend<'v>(way: &mut Vec<KeyStep<'v>>, step: &'v WalkStep, descends: &mut bool) -> bool {
    let node = match (step.axis, &step.test) {
        (WalkAxis::DescendantOrSelf, NodeTest::Any) if step.predicates.is_empty() => {
            *descends = true;
            return true;
        }
        (WalkAxis::Child | WalkAxis::Descendant, NodeTest::Name(test)) => KeyNode::Element(test),
        (WalkAxis::Child | WalkAxis::Descendant, NodeTest::Text) => KeyNode::Text,
        (WalkAxis::Attribute, NodeTest::Name(test)) => KeyNode::Attribute(test),
        _ => return false,
    };
    let descends = std::mem::take(descends) || step.axis == WalkAxis::Descendant;
    way.push(KeyStep { descends, node });
    true
}

fn of_predicate<'v>(predicate: &'v Value, way: &[KeyStep<'v>]) -> Option<Access<'v>> {
    match predicate {
        Value::Condition(expr) => of_condition(expr, way),
        Value::Compare(Operator::Equal, left, right) => {
            of_comparison(left, right, way).or_else(|| of_comparison(right, left, way))
        }
        _ => None,
    }
}

fn of_condition<'v>(expr: &'v Expr, way: &[KeyStep<'v>]) -> Option<Access<'v>> {
    match expr {
        Expr::Path(path, Test::Compare(Operator::Equal, literal)) => {
            Some(Access::Equal(joined(way, path)?, KeyValue::Literal(literal)))
        }
        // Whichever of them is known: the others narrow what it finds.
        Expr::And(operands) => operands.iter().find_map(|operand| of_condition(operand, way)),
        Expr::Or(operands) if !operands.is_empty() => {
            let any = operands.iter().map(|operand| of_condition(operand, way)).collect::<Option<_>>()?;
            Some(Access::Any(any))
        }
        Expr::Computed(computed) => of_predicate(&computed.value, way),
        _ => None,
    }
}

fn of_comparison<'v>(own: &'v Value, other: &'v Value, way: &[KeyStep<'v>]) -> Option<Access<'v>> {
    let Value::Nodes(path) = own else { return None };
    (is_key(other) && is_outside(other))
        .then(|| Some(Access::Equal(joined(way, path)?, KeyValue::Value(other))))
        .flatten()
}

/// A way and a path from its end.
fn joined<'v>(way: &[KeyStep<'v>], path: &'v Path) -> Option<Vec<KeyStep<'v>>> {
    if path.start != Start::Context {
        return None;
    }
    let step = |Step { axis, node, .. }: &'v Step| KeyStep {
        descends: *axis == Axis::Descendant,
        node: match node {
            Node::Element(test) => KeyNode::Element(test),
            Node::Attribute(test) => KeyNode::Attribute(test),
            Node::Text => KeyNode::Text,
        },
    };
    Some(way.iter().copied().chain(path.steps.iter().map(step)).collect())
}

/// Whether an equality with a value can be looked up: a boolean is compared with whether there are nodes.
pub(super) fn is_key(value: &Value) -> bool {
    matches!(value.kind(), Kind::Nodes | Kind::Text | Kind::Number)
}

/// Whether a value in a predicate does not depend on the node that is tested, nor on its document.
pub(super) fn is_outside(value: &Value) -> bool {
    match value {
        Value::Literal(_) | Value::Variable(..) => true,
        Value::Nodes(path) => matches!(path.start, Start::Variable(_) | Start::Message),
        Value::Walk(walk) => is_outside(&walk.start),
        Value::Filter(start, _) => is_outside(start),
        Value::Call(Function::Last | Function::Position | Function::Lang, _) => false,
        Value::Call(_, operands) | Value::Union(operands) => operands.iter().all(is_outside),
        Value::Negative(operand) => is_outside(operand),
        Value::Arithmetic(_, left, right) => is_outside(left) && is_outside(right),
        _ => false,
    }
}
