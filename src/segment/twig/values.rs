//! Values compiled for evaluation: words in the array of the twigs.
//!
//! ```text
//! value = NUMBER, 2 words             | TEXT | bytes<<8, bytes…
//!       | CONDITION | VARYING, expr   | NODES, path
//!       | UNION | count<<8, value…    | FILTER | count<<8, value, predicate value…
//!       | WALK | count<<8, value, step…
//!       | CALL | function<<8 | count<<16, value…
//!       | ARITHMETIC | operation<<8, value, value
//!       | VARIABLE | level<<8        | SOME | count<<8, (clause | level<<8, value)…
//!       | NEGATIVE, value             | COMPARE | operator<<8, value, value
//!       | SETS | operation<<8, value, value     | SEQUENCE | count<<8, value…
//!       | EACH, value, value          | IF, value, value, value
//!       | CASTABLE | type<<8 | may be empty<<16, value   | AXIS_COUNT, step
//!       | DATA | is collection<<8 | count<<16, name, access…
//!       | JOIN | count<<8, value of the nodes, of their keys, of what the keys equal, predicate value…
//!       | ONCE, value
//! step  = axis | test<<8 | COUNTS, label or target, count, predicate value…
//! ```
//!
//! A value, expr, path or step inside another one is its offset.

use super::{Twigs, operator_code};
use crate::ids::LabelId;
use crate::query::ast::{Expr, Literal, NameTest, Path, Test, Variable};
use crate::query::hash_join::{HashJoin, hash_join, push_equalities};
use crate::query::join;
use crate::query::value::{Clause, Computed, Function, NodeTest, Value, Walk, WalkAxis, WalkStep};
use crate::query::variables::Uses;
use crate::segment::format::NONE;

pub const VALUE_NUMBER: u32 = 0;
pub const VALUE_TEXT: u32 = 1;
pub const VALUE_CONDITION: u32 = 2;
pub const VALUE_NODES: u32 = 3;
pub const VALUE_UNION: u32 = 4;
pub const VALUE_FILTER: u32 = 5;
pub const VALUE_WALK: u32 = 6;
pub const VALUE_CALL: u32 = 7;
pub const VALUE_ARITHMETIC: u32 = 8;
pub const VALUE_NEGATIVE: u32 = 9;
pub const VALUE_COMPARE: u32 = 10;
pub const VALUE_VARIABLE: u32 = 11;
pub const VALUE_SOME: u32 = 12;
pub const VALUE_SETS: u32 = 13;
pub const VALUE_SEQUENCE: u32 = 14;
pub const VALUE_EACH: u32 = 15;
pub const VALUE_IF: u32 = 16;
pub const VALUE_CASTABLE: u32 = 17;
pub const VALUE_DATA: u32 = 18;
pub const VALUE_JOIN: u32 = 19;
/// How many nodes a step without predicates selects from the context node.
pub const VALUE_AXIS_COUNT: u32 = 20;
/// The same at each context node of the message: it is evaluated once.
pub const VALUE_ONCE: u32 = 21;

pub const CLAUSE_FOR: u32 = 0;
pub const CLAUSE_LET: u32 = 1;
pub const CLAUSE_WHERE: u32 = 2;

pub const TEST_NODE: u32 = 0;
pub const TEST_NAME: u32 = 1;
pub const TEST_ANY_NAME: u32 = 2;
pub const TEST_WILDCARD: u32 = 3;
pub const TEST_TEXT_NODE: u32 = 4;
pub const TEST_COMMENT: u32 = 5;
pub const TEST_INSTRUCTION: u32 = 6;

/// A predicate of the step counts positions, so each context node is handled by itself.
pub const COUNTS: u32 = 1 << 16;

/// The number of `//` steps that is assumed above conditions in values: these are evaluated repeatedly on an element.
const NESTED: u32 = 2;

impl Twigs {
    /// Compiles a value and returns its offset.
    pub(super) fn value(&mut self, value: &Value, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        if self.predicates > 0 && is_of_message(value) {
            let predicates = std::mem::take(&mut self.predicates);
            let words = vec![VALUE_ONCE, self.value(value, label)];
            self.predicates = predicates;
            return self.intern(words);
        }
        let words = match value {
            Value::Literal(Literal::Number(number)) => {
                let bits = number.to_bits();
                vec![VALUE_NUMBER, bits as u32, (bits >> 32) as u32]
            }
            Value::Literal(Literal::Text(text)) => text_words(text),
            Value::Condition(expr) => {
                vec![VALUE_CONDITION | self.varying(expr), self.expr(expr, label, NESTED)]
            }
            Value::Nodes(path) if self.has_variables && Uses::are_in_steps(path) => {
                return self.value(&Value::Walk(Box::new(Walk::of_path(path))), label);
            }
            Value::Nodes(path) => {
                let words = self.path(path, &Test::Exists, label, NESTED);
                vec![VALUE_NODES, self.intern(words)]
            }
            Value::Union(values) => self.values(VALUE_UNION | (values.len() as u32) << 8, values, label),
            Value::Filter(start, predicates) => {
                let mut words = vec![VALUE_FILTER | (predicates.len() as u32) << 8, self.value(start, label)];
                words.extend(predicates.iter().map(|predicate| self.predicate(predicate, label)));
                words
            }
            Value::Walk(walk) => {
                return self.walk(walk, None, label);
            }
            Value::Call(Function::Doc | Function::Collection, _) => {
                return self.data(value, Vec::new(), label);
            }
            Value::Call(Function::Count, arguments) if let Some(step) = counted_axis(&arguments[0]) => {
                return self.axis_count(step, label);
            }
            Value::Call(function, arguments) => {
                let word = VALUE_CALL | (*function as u32) << 8 | (arguments.len() as u32) << 16;
                self.values(word, arguments, label)
            }
            Value::Arithmetic(operation, left, right) => {
                let word = VALUE_ARITHMETIC | (*operation as u32) << 8;
                vec![word, self.value(left, label), self.value(right, label)]
            }
            Value::Negative(operand) => vec![VALUE_NEGATIVE, self.value(operand, label)],
            Value::Compare(operator, left, right) => {
                let word = VALUE_COMPARE | operator_code(*operator) << 8;
                let (left, right) = self.compared(*operator, left, right, label);
                vec![word, left, right]
            }
            Value::Variable(Variable(level), _) => vec![VALUE_VARIABLE | level << 8],
            Value::Some(clauses) => {
                let mut words = vec![VALUE_SOME | (clauses.len() as u32) << 8];
                let mut clauses = clauses.clone();
                push_equalities(&mut clauses);
                for clause in &clauses {
                    let kind = match clause {
                        Clause::For(..) => CLAUSE_FOR,
                        Clause::Let(..) => CLAUSE_LET,
                        Clause::Where(_) => CLAUSE_WHERE,
                    };
                    let Variable(level) = clause.variable().unwrap_or(Variable(0));
                    words.extend([kind | level << 8, self.value(clause.value(), label)]);
                }
                words
            }
            Value::Sets(operation, left, right) => {
                let word = VALUE_SETS | (*operation as u32) << 8;
                vec![word, self.value(left, label), self.value(right, label)]
            }
            Value::Sequence(values) => {
                self.values(VALUE_SEQUENCE | (values.len() as u32) << 8, values, label)
            }
            Value::Each(start, each) => vec![VALUE_EACH, self.value(start, label), self.value(each, label)],
            Value::If(parts) => self.values(VALUE_IF, parts.as_slice(), label),
            Value::Castable { target, may_be_empty, operand } => {
                let word = VALUE_CASTABLE | (*target as u32) << 8 | u32::from(*may_be_empty) << 16;
                vec![word, self.value(operand, label)]
            }
        };
        self.intern(words)
    }

    /// Compiles a walk; with `compared`, a value that its nodes equal.
    pub(super) fn walk(
        &mut self,
        walk: &Walk,
        compared: Option<&Value>,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> u32 {
        let (start, steps) = match hash_join(walk) {
            Some(join) => (self.hash_join(&join, label), join.rest),
            None if join::is_of_data(walk) => {
                (self.data_of_walk(walk, compared, label), walk.steps.as_slice())
            }
            None => (self.value(&walk.start, label), walk.steps.as_slice()),
        };
        let mut words = vec![0, start];
        let mut steps = steps.iter().peekable();
        while let Some(step) = steps.next() {
            // `descendant-or-self::node()/a` is `descendant::a`, unless positions are counted per parent.
            let joined = match steps.peek() {
                Some(next) if is_descend(step) && is_joinable(next) => steps.next(),
                _ => None,
            };
            let (step, axis) = match joined {
                Some(next) => (next, WalkAxis::Descendant),
                None => (step, step.axis),
            };
            words.push(self.walk_step(step, axis, label));
        }
        words[0] = VALUE_WALK | (words.len() as u32 - 2) << 8;
        self.intern(words)
    }

    fn hash_join(&mut self, join: &HashJoin<'_>, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        let mut words = vec![VALUE_JOIN | (join.predicates.len() as u32) << 8];
        words.push(self.walk(&join.nodes, None, label));
        words.extend([join.key, join.value].map(|value| self.value(value, label)));
        words.extend(join.predicates.iter().map(|predicate| self.predicate(predicate, label)));
        self.intern(words)
    }

    fn values(
        &mut self,
        word: u32,
        values: &[Value],
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> Vec<u32> {
        let mut words = vec![word];
        words.extend(values.iter().map(|value| self.value(value, label)));
        words
    }

    fn walk_step(
        &mut self,
        step: &WalkStep,
        axis: WalkAxis,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> u32 {
        let (test, detail) = match &step.test {
            NodeTest::Any => (TEST_NODE, NONE),
            NodeTest::Name(name @ NameTest::Name(_)) => (TEST_NAME, label(name).0),
            NodeTest::Name(NameTest::Any) => (TEST_ANY_NAME, NONE),
            NodeTest::Name(wildcard @ (NameTest::AnyIn(_) | NameTest::Local(_))) => {
                (TEST_WILDCARD, label(wildcard).0)
            }
            NodeTest::Text => (TEST_TEXT_NODE, NONE),
            NodeTest::Comment => (TEST_COMMENT, NONE),
            NodeTest::Instruction(None) => (TEST_INSTRUCTION, NONE),
            NodeTest::Instruction(Some(target)) => (TEST_INSTRUCTION, self.intern(text_words(target))),
        };
        let counts = if step.predicates.iter().any(Value::selects_by_position) { COUNTS } else { 0 };
        let mut words = vec![axis as u32 | test << 8 | counts, detail, step.predicates.len() as u32];
        words.extend(step.predicates.iter().map(|predicate| self.predicate(predicate, label)));
        self.intern(words)
    }

    /// A predicate of a walk. What does not depend on the position is a condition, which is remembered.
    fn predicate(&mut self, value: &Value, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        if value.selects_by_position() || matches!(value, Value::Condition(_)) {
            self.predicates += 1;
            let words = self.value(value, label);
            self.predicates -= 1;
            return words;
        }
        let condition = Expr::Computed(Box::new(Computed {
            value: value.clone(),
            necessary: Expr::TRUE,
            own_name: None,
        }));
        self.predicates += 1;
        let words = self.value(&Value::Condition(condition), label);
        self.predicates -= 1;
        words
    }

    pub(super) fn axis_count(
        &mut self,
        step: &WalkStep,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> u32 {
        let step = self.walk_step(step, step.axis, label);
        self.intern(vec![VALUE_AXIS_COUNT, step])
    }
}

/// Whether a value asks the message for something, and for the same whatever the context is.
fn is_of_message(value: &Value) -> bool {
    if matches!(value, Value::Literal(_) | Value::Condition(_)) || value.is_positional() {
        return false;
    }
    let (uses, mut asks) = (Uses::of_value(value), false);
    value.for_each_name_test(&mut |_| asks = true);
    asks && !uses.context && uses.free.is_empty()
}

/// The step of a value that is one step without predicates from the context node, along an axis that leads to
/// many nodes from many contexts.
pub(super) fn counted_axis(value: &Value) -> Option<&WalkStep> {
    let Value::Walk(walk) = value else { return None };
    match (&walk.start, walk.steps.as_slice()) {
        (Value::Nodes(start), [step])
            if *start == Path::CONTEXT
                && step.predicates.is_empty()
                && !matches!(
                    step.axis,
                    WalkAxis::Child | WalkAxis::Attribute | WalkAxis::Itself | WalkAxis::Parent
                ) =>
        {
            Some(step)
        }
        _ => None,
    }
}

fn is_descend(step: &WalkStep) -> bool {
    step.axis == WalkAxis::DescendantOrSelf && step.test == NodeTest::Any && step.predicates.is_empty()
}

fn is_joinable(step: &WalkStep) -> bool {
    step.axis == WalkAxis::Child && !step.predicates.iter().any(Value::selects_by_position)
}

pub(super) fn text_words(text: &str) -> Vec<u32> {
    let mut words = vec![VALUE_TEXT | (text.len() as u32) << 8];
    super::push_bytes(text.as_bytes(), &mut words);
    words
}
