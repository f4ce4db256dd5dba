//! The slow evaluator of values. An axis is all nodes of the document that are related to the context node as
//! the axis says; nothing is shared with the evaluator of the matcher but the functions of strings and numbers.

use std::rc::Rc;

use super::Evaluation;
use crate::data::Node;
use crate::document::{NodeRef, OtherKind};
use crate::query::ast::{Expr, Literal, Operator, Variable};
use crate::query::functions;
use crate::query::number::number;
use crate::query::value::{Clause, Kind, NodeTest, SetOperation, Value, WalkAxis, WalkStep};

#[derive(Clone)]
pub enum Evaluated {
    /// In document order.
    Nodes(Vec<Node>),
    Number(f64),
    Text(Vec<u8>),
    Boolean(bool),
    /// A sequence of XPath 2.0, of values that are one item each.
    Items(Vec<Evaluated>),
}

impl Evaluated {
    pub fn into_nodes(self) -> Vec<Node> {
        match self {
            Evaluated::Nodes(nodes) => nodes,
            _ => Vec::new(),
        }
    }

    pub fn boolean(&self) -> bool {
        match self {
            Evaluated::Nodes(nodes) => !nodes.is_empty(),
            Evaluated::Number(number) => *number != 0.0 && !number.is_nan(),
            Evaluated::Text(text) => !text.is_empty(),
            Evaluated::Boolean(boolean) => *boolean,
            Evaluated::Items(items) => match items.as_slice() {
                [Evaluated::Nodes(_), ..] => true,
                [item] => item.boolean(),
                _ => false,
            },
        }
    }

    /// The items, each by itself.
    pub(super) fn items(self) -> Vec<Evaluated> {
        match self {
            Evaluated::Nodes(nodes) => nodes.into_iter().map(|node| Evaluated::Nodes(vec![node])).collect(),
            Evaluated::Items(items) => items,
            item => vec![item],
        }
    }
}

/// A context node with its position and the number of nodes.
#[derive(Clone, Copy)]
pub struct Focus {
    pub(super) node: Node,
    pub(super) position: usize,
    pub(super) size: usize,
}

impl Focus {
    pub fn single(node: Node) -> Focus {
        Focus { node, position: 1, size: 1 }
    }
}

impl Evaluation<'_> {
    pub fn value(&mut self, value: &Value, focus: Focus) -> Evaluated {
        match value {
            Value::Literal(Literal::Number(number)) => Evaluated::Number(*number),
            Value::Literal(Literal::Text(text)) => Evaluated::Text(text.clone().into_bytes()),
            Value::Condition(expr) => Evaluated::Boolean(self.condition(expr, focus)),
            Value::Nodes(path) => Evaluated::Nodes(self.nodes(path, focus.node)),
            Value::Union(values) => {
                let nodes = values.iter().flat_map(|value| self.node_set(value, focus)).collect();
                Evaluated::Nodes(self.in_order(nodes))
            }
            Value::Filter(start, predicates) => match self.value(start, focus) {
                Evaluated::Items(items) => Evaluated::Items(self.filtered_items(items, predicates, focus)),
                Evaluated::Nodes(nodes) => Evaluated::Nodes(self.filtered(nodes, predicates)),
                _ => Evaluated::Nodes(Vec::new()),
            },
            Value::Walk(walk) => {
                let mut nodes = self.node_set(&walk.start, focus);
                for step in &walk.steps {
                    let next = nodes.iter().flat_map(|&node| self.walk_step(step, node)).collect();
                    nodes = self.in_order(next);
                }
                Evaluated::Nodes(nodes)
            }
            Value::Call(function, arguments) => self.call(*function, arguments, focus),
            Value::Arithmetic(operation, left, right) => {
                let (left, right) = (self.number(left, focus), self.number(right, focus));
                Evaluated::Number(operation.of(left, right))
            }
            Value::Negative(operand) => Evaluated::Number(-self.number(operand, focus)),
            Value::Compare(operator, left, right) => {
                let (left, right) = (self.value(left, focus), self.value(right, focus));
                Evaluated::Boolean(self.compare(*operator, left, right))
            }
            Value::Variable(variable, _) => self.variable(*variable),
            Value::Some(clauses) => Evaluated::Boolean(self.has_tuple(clauses, focus)),
            Value::Sets(operation, left, right) => {
                let mut nodes = self.node_set(left, focus);
                let others = self.node_set(right, focus);
                nodes.retain(|node| others.contains(node) == (*operation == SetOperation::Intersect));
                Evaluated::Nodes(nodes)
            }
            Value::Sequence(values) => {
                Evaluated::Items(values.iter().flat_map(|value| self.value(value, focus).items()).collect())
            }
            Value::Each(start, each) => {
                let nodes = self.node_set(start, focus);
                let size = nodes.len();
                let mut items = Vec::new();
                for (place, &node) in nodes.iter().enumerate() {
                    items.extend(self.value(each, Focus { node, position: place + 1, size }).items());
                }
                if each.kind() != Kind::Nodes {
                    return Evaluated::Items(items);
                }
                let node = |item| if let Evaluated::Nodes(nodes) = item { nodes } else { Vec::new() };
                let nodes = items.into_iter().flat_map(node).collect();
                Evaluated::Nodes(self.in_order(nodes))
            }
            Value::If(parts) => {
                let holds = self.value(&parts[0], focus).boolean();
                self.value(&parts[if holds { 1 } else { 2 }], focus)
            }
            Value::Castable { target, may_be_empty, operand } => {
                let items = self.value(operand, focus).items();
                Evaluated::Boolean(match items.as_slice() {
                    [] => *may_be_empty,
                    [Evaluated::Number(number)] => target.takes_number(*number),
                    [Evaluated::Boolean(_)] => target.takes_boolean(),
                    [item] => target.takes_text(&self.as_text(item.clone())),
                    _ => false,
                })
            }
        }
    }

    fn filtered_items(
        &mut self,
        items: Vec<Evaluated>,
        predicates: &[Value],
        focus: Focus,
    ) -> Vec<Evaluated> {
        predicates.iter().fold(items, |items, predicate| {
            let size = items.len();
            let keeps = |(place, item)| {
                let position = place + 1;
                let keeps = match self.value(predicate, Focus { position, size, ..focus }) {
                    Evaluated::Number(number) => number == position as f64,
                    value => value.boolean(),
                };
                keeps.then_some(item)
            };
            items.into_iter().enumerate().filter_map(keeps).collect()
        })
    }

    pub fn variable(&self, variable: Variable) -> Evaluated {
        let bound = self.bound.iter().rev().find(|(bound, _)| *bound == variable);
        bound.map_or(Evaluated::Boolean(false), |(_, value)| value.clone())
    }

    /// Whether clauses let a tuple of bindings pass.
    fn has_tuple(&mut self, clauses: &[Clause], focus: Focus) -> bool {
        let Some((clause, rest)) = clauses.split_first() else { return true };
        match clause {
            Clause::For(variable, items) => self
                .value(items, focus)
                .items()
                .into_iter()
                .any(|item| self.with(*variable, item, |evaluation| evaluation.has_tuple(rest, focus))),
            Clause::Let(variable, value) => {
                let value = self.value(value, focus);
                self.with(*variable, value, |evaluation| evaluation.has_tuple(rest, focus))
            }
            Clause::Where(passes) => self.value(passes, focus).boolean() && self.has_tuple(rest, focus),
        }
    }

    /// Evaluates something while a variable is bound. What is known of conditions may depend on the variable.
    fn with<T>(&mut self, variable: Variable, value: Evaluated, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        self.bound.push((variable, value));
        self.known.clear();
        let result = evaluate(self);
        self.bound.pop();
        self.known.clear();
        result
    }

    /// Whether a condition holds, which may depend on the position.
    fn condition(&mut self, expr: &Expr, focus: Focus) -> bool {
        match expr {
            Expr::Or(operands) => operands.iter().any(|operand| self.condition(operand, focus)),
            Expr::And(operands) => operands.iter().all(|operand| self.condition(operand, focus)),
            Expr::Not(operand) => !self.condition(operand, focus),
            Expr::Computed(computed) => self.value(&computed.value, focus).boolean(),
            Expr::Path(..) => self.holds(expr, focus.node),
        }
    }

    pub(super) fn node_set(&mut self, value: &Value, focus: Focus) -> Vec<Node> {
        match self.value(value, focus) {
            Evaluated::Nodes(nodes) => nodes,
            _ => Vec::new(),
        }
    }

    pub(super) fn number(&mut self, value: &Value, focus: Focus) -> f64 {
        let value = self.value(value, focus);
        self.as_number(&value)
    }

    pub(super) fn as_number(&self, value: &Evaluated) -> f64 {
        match value {
            Evaluated::Nodes(nodes) => number(self.first_value(nodes)),
            Evaluated::Number(number) => *number,
            Evaluated::Text(text) => number(text),
            Evaluated::Boolean(boolean) => f64::from(u8::from(*boolean)),
            Evaluated::Items(items) => items.first().map_or(f64::NAN, |item| self.as_number(item)),
        }
    }

    pub(super) fn as_text(&self, value: Evaluated) -> Vec<u8> {
        match value {
            Evaluated::Nodes(nodes) => self.first_value(&nodes).to_vec(),
            Evaluated::Number(number) => functions::number_text(number).into_bytes(),
            Evaluated::Text(text) => text,
            Evaluated::Boolean(boolean) => boolean.to_string().into_bytes(),
            Evaluated::Items(items) => items.into_iter().next().map_or(Vec::new(), |item| self.as_text(item)),
        }
    }

    /// Pair by pair, as section 3.4 of XPath 1.0 says.
    fn compare(&self, operator: Operator, left: Evaluated, right: Evaluated) -> bool {
        let single = |node: Node| Evaluated::Text(self.value_of(node).to_vec());
        match (left, right) {
            (items @ Evaluated::Items(_), right @ Evaluated::Boolean(_)) => {
                self.compare(operator, Evaluated::Boolean(items.boolean()), right)
            }
            (left @ Evaluated::Boolean(_), items @ Evaluated::Items(_)) => {
                self.compare(operator, left, Evaluated::Boolean(items.boolean()))
            }
            (Evaluated::Items(items), right) => {
                items.into_iter().any(|item| self.compare(operator, item, right.clone()))
            }
            (left, Evaluated::Items(items)) => {
                items.into_iter().any(|item| self.compare(operator, left.clone(), item))
            }
            (Evaluated::Nodes(nodes), Evaluated::Boolean(right)) => {
                operator.holds(f64::from(u8::from(!nodes.is_empty())), f64::from(u8::from(right)))
            }
            (Evaluated::Boolean(left), Evaluated::Nodes(nodes)) => {
                operator.holds(f64::from(u8::from(left)), f64::from(u8::from(!nodes.is_empty())))
            }
            (Evaluated::Nodes(left), Evaluated::Nodes(right)) => left
                .iter()
                .any(|&left| right.iter().any(|&right| self.compare(operator, single(left), single(right)))),
            (Evaluated::Nodes(nodes), Evaluated::Number(right)) => {
                nodes.iter().any(|&node| operator.holds(self.as_number(&single(node)), right))
            }
            (Evaluated::Number(left), Evaluated::Nodes(nodes)) => {
                nodes.iter().any(|&node| operator.holds(left, self.as_number(&single(node))))
            }
            (Evaluated::Nodes(nodes), Evaluated::Text(right)) => {
                nodes.iter().any(|&node| self.compare(operator, single(node), Evaluated::Text(right.clone())))
            }
            (Evaluated::Text(left), Evaluated::Nodes(nodes)) => {
                nodes.iter().any(|&node| self.compare(operator, Evaluated::Text(left.clone()), single(node)))
            }
            (left, right) if matches!(operator, Operator::Equal | Operator::NotEqual) => {
                let equal = match (&left, &right) {
                    (Evaluated::Boolean(_), _) | (_, Evaluated::Boolean(_)) => {
                        left.boolean() == right.boolean()
                    }
                    (Evaluated::Text(left), Evaluated::Text(right)) => left == right,
                    _ => self.as_number(&left) == self.as_number(&right),
                };
                equal == (operator == Operator::Equal)
            }
            (left, right) => operator.holds(self.as_number(&left), self.as_number(&right)),
        }
    }

    fn filtered(&mut self, nodes: Vec<Node>, predicates: &[Value]) -> Vec<Node> {
        predicates.iter().fold(nodes, |nodes, predicate| {
            let size = nodes.len();
            let mut kept = Vec::new();
            for (place, &node) in nodes.iter().enumerate() {
                let position = place + 1;
                let keeps = match self.value(predicate, Focus { node, position, size }) {
                    Evaluated::Number(number) => number == position as f64,
                    value => value.boolean(),
                };
                if keeps {
                    kept.push(node);
                }
            }
            kept
        })
    }

    /// The nodes that one step selects from one node, in the order of its axis.
    fn walk_step(&mut self, step: &WalkStep, context: Node) -> Vec<Node> {
        let all = self.all_nodes(context);
        let is_selected =
            |&&node: &&Node| self.is_on_axis(step.axis, context, node) && self.passes_test(step, node);
        let mut nodes: Vec<Node> = all.iter().filter(is_selected).copied().collect();
        if step.axis.is_reverse() {
            nodes.reverse();
        }
        self.filtered(nodes, &step.predicates)
    }

    /// Every node of the document of a node, in document order.
    fn all_nodes(&mut self, context: Node) -> Rc<[Node]> {
        if let Some(nodes) = self.listed.get(&context.tree) {
            return nodes.clone();
        }
        let document = self.document(context.tree);
        let mut nodes = vec![NodeRef::Document];
        for (at, _) in document.elements.iter().enumerate() {
            let element = at.into();
            nodes.push(NodeRef::Element(element));
            let first = document.element(element).attributes_start;
            let count = document.attributes_of(element).len() as u32;
            nodes.extend((first..first + count).map(|place| NodeRef::Attribute(element, place)));
        }
        nodes.extend((0..document.texts.len() as u32).map(NodeRef::Text));
        nodes.extend((0..document.others.len() as u32).map(NodeRef::Other));
        let nodes = self.in_order(nodes.into_iter().map(|node| Node { node, ..context }).collect());
        self.listed.entry(context.tree).or_insert_with(|| nodes.into()).clone()
    }

    pub(super) fn parent(&self, Node { tree, node }: Node) -> Option<Node> {
        let document = self.document(tree);
        let element = match node {
            NodeRef::Document => return None,
            NodeRef::Attribute(element, _) => element,
            NodeRef::Element(element) => document.element(element).parent,
            NodeRef::Text(place) => document.texts[place as usize].parent,
            NodeRef::Other(place) => document.others[place as usize].parent,
        };
        match element.is_some() {
            true => Some(Node { tree, node: NodeRef::Element(element) }),
            false => (!document.is_of_envelope(node)).then_some(Node { tree, node: NodeRef::Document }),
        }
    }

    fn is_ancestor(&self, ancestor: Node, node: Node) -> bool {
        let mut above = self.parent(node);
        while let Some(at) = above {
            if at == ancestor {
                return true;
            }
            above = self.parent(at);
        }
        false
    }

    fn is_on_axis(&self, axis: WalkAxis, context: Node, node: Node) -> bool {
        let is_of_envelope = |node: Node| self.document(node.tree).is_of_envelope(node.node);
        if is_of_envelope(context) != is_of_envelope(node) {
            return false;
        }
        let is_attribute = |node: Node| matches!(node.node, NodeRef::Attribute(..));
        let before = |one, other| self.order(one) < self.order(other);
        let siblings = || {
            !is_attribute(context)
                && !is_attribute(node)
                && node.node != NodeRef::Document
                && self.parent(context) == self.parent(node)
        };
        let descendant = || !is_attribute(node) && self.is_ancestor(context, node);
        match axis {
            WalkAxis::Itself => node == context,
            WalkAxis::Child => !is_attribute(node) && self.parent(node) == Some(context),
            WalkAxis::Attribute => is_attribute(node) && self.parent(node) == Some(context),
            WalkAxis::Parent => self.parent(context) == Some(node),
            WalkAxis::Descendant => descendant(),
            WalkAxis::DescendantOrSelf => node == context || descendant(),
            WalkAxis::Ancestor => self.is_ancestor(node, context),
            WalkAxis::AncestorOrSelf => node == context || self.is_ancestor(node, context),
            WalkAxis::FollowingSibling => siblings() && before(context, node),
            WalkAxis::PrecedingSibling => siblings() && before(node, context),
            WalkAxis::Following => {
                !is_attribute(node) && before(context, node) && !self.is_ancestor(context, node)
            }
            WalkAxis::Preceding => {
                !is_attribute(node) && before(node, context) && !self.is_ancestor(node, context)
            }
        }
    }

    fn passes_test(&self, step: &WalkStep, node: Node) -> bool {
        let document = self.document(node.tree);
        match (&step.test, node.node) {
            (NodeTest::Any, _) | (NodeTest::Text, NodeRef::Text(_)) => true,
            (NodeTest::Name(test), NodeRef::Element(element)) => {
                step.axis != WalkAxis::Attribute
                    && self.has_name(test, document.element(element).name, node.tree)
            }
            (NodeTest::Name(test), NodeRef::Attribute(_, place)) => {
                step.axis == WalkAxis::Attribute
                    && self.has_name(test, document.attributes[place as usize].name, node.tree)
            }
            (NodeTest::Comment, NodeRef::Other(place)) => {
                document.others[place as usize].kind == OtherKind::Comment
            }
            (NodeTest::Instruction(wanted), NodeRef::Other(place)) => {
                match (document.others[place as usize].kind, wanted) {
                    (OtherKind::Comment, _) => false,
                    (OtherKind::Instruction { .. }, None) => true,
                    (OtherKind::Instruction { target }, Some(wanted)) => {
                        target.of(&document.values) == wanted.as_bytes()
                    }
                }
            }
            _ => false,
        }
    }
}
