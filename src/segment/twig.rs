//! Queries compiled for verification: the AST as words in one array, equal parts stored once.
//!
//! ```text
//! expr  = AND|OR count<<8, operand…      operand = offset of an expr
//!       | NOT, operand
//!       | PATH start<<8 steps<<16, test, step…
//!       | COMPUTED | VARYING, offset of a value
//! test  = kind | operator<<8 | length<<16, then the literal: 2 words of a number, or bytes
//! step  = kind | axis<<4 | memo<<5 | predicates<<8, label, predicate…
//! predicate = POSITION | n, or offset of an expr
//! ```

pub mod local_data;
pub mod values;

use rustc_hash::FxHashMap;

use crate::ids::LabelId;
use crate::query::ast::{
    Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Start, Step, Test, Variable,
};
use crate::query::value::{Function, Value, Walk};
use crate::query::variables::{Uses, names_variables};

pub const AND: u32 = 0;
pub const OR: u32 = 1;
pub const NOT: u32 = 2;
pub const PATH: u32 = 3;
pub const COMPUTED: u32 = 4;

/// Flag of a condition that depends on variables or on the position: nothing may be remembered of it.
pub const VARYING: u32 = 1 << 8;

/// Where a path starts: at the context node, at its document node, or at a variable of level n: `FROM_VARIABLE + n`.
pub const FROM_CONTEXT: u32 = 0;
pub const FROM_DOCUMENT: u32 = 1;
pub const FROM_VARIABLE: u32 = 2;
/// The same number of no variable: the document node of the message.
pub const FROM_MESSAGE: u32 = 0xFF;

pub const TEST_EXISTS: u32 = 0;
pub const TEST_TEXT: u32 = 1;
pub const TEST_NUMBER: u32 = 2;
pub const TEST_CONTAINS: u32 = 3;
pub const TEST_STARTS_WITH: u32 = 4;
pub const TEST_NORMALIZED: u32 = 5;

pub const STEP_NAME: u32 = 0;
pub const STEP_ANY: u32 = 1;
/// `p:*` or `*:name`
pub const STEP_WILDCARD: u32 = 2;
pub const STEP_ATTRIBUTE_NAME: u32 = 3;
pub const STEP_ATTRIBUTE_ANY: u32 = 4;
pub const STEP_ATTRIBUTE_WILDCARD: u32 = 5;
pub const STEP_TEXT: u32 = 6;
/// The step's axis is `//`.
pub const STEP_DESCENDANT: u32 = 1 << 4;
/// The same element can be met again at this step from another context: remember the outcome.
pub const STEP_MEMO: u32 = 1 << 5;

/// Marks a predicate as a position.
pub const POSITION: u32 = 1 << 31;

pub fn operator_code(operator: Operator) -> u32 {
    match operator {
        Operator::Equal => 0,
        Operator::NotEqual => 1,
        Operator::Less => 2,
        Operator::LessOrEqual => 3,
        Operator::Greater => 4,
        Operator::GreaterOrEqual => 5,
    }
}

/// The offset of a part, which is stored before the whole. Panics otherwise: the twig is damaged, and walking it might
/// never end.
pub fn part(words: &[u32], whole: u32, place: u32) -> u32 {
    let part = words[(whole + place) as usize];
    assert!(part < whole, "the twig is damaged");
    part
}

/// The operator of a code.
pub fn operator_of(code: u32) -> Operator {
    match code {
        0 => Operator::Equal,
        1 => Operator::NotEqual,
        2 => Operator::Less,
        3 => Operator::LessOrEqual,
        4 => Operator::Greater,
        _ => Operator::GreaterOrEqual,
    }
}

#[derive(Default)]
pub struct Twigs {
    words: Vec<u32>,
    offsets: FxHashMap<Box<[u32]>, u32>,
    /// Whether the expression that is compiled names variables anywhere.
    has_variables: bool,
    /// How many predicates are around what is compiled.
    predicates: u32,
    /// Walks over collections: their names, and where the accesses are that find their records.
    collections: Vec<(String, Vec<u32>)>,
}

impl Twigs {
    /// Compiles a query's expression and returns its offset. `label` numbers name tests.
    pub fn compile(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        self.note_variables(expr);
        self.expr(expr, label, 0)
    }

    /// Compiles an expression that is evaluated on elements which may be nested.
    pub fn compile_nested(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        self.note_variables(expr);
        self.expr(expr, label, 1)
    }

    /// Compiles a value that may name variables, and returns its offset.
    pub fn compile_value(&mut self, value: &Value, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        self.has_variables = true;
        self.value(value, label)
    }

    fn note_variables(&mut self, expr: &Expr) {
        self.has_variables = names_variables(expr);
    }

    /// The walks over collections: their names, and where the accesses are that find their records.
    pub fn collections(&self) -> &[(String, Vec<u32>)] {
        &self.collections
    }

    pub fn words(&self) -> &[u32] {
        &self.words
    }

    pub fn freeze(self) -> Vec<u32> {
        self.words
    }

    /// `depth` counts the `//` steps on the way here.
    fn expr(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> LabelId, depth: u32) -> u32 {
        let words = match expr {
            Expr::And(operands) => self.operands(AND, operands, label, depth),
            Expr::Or(operands) => self.operands(OR, operands, label, depth),
            Expr::Not(operand) => vec![NOT, self.expr(operand, label, depth)],
            // What is remembered of the steps of a path must not depend on variables.
            Expr::Path(path, test) if self.has_variables && Uses::are_in_steps(path) => {
                vec![COMPUTED | VARYING, self.value(&evaluated(path, test), label)]
            }
            Expr::Path(path, test) => self.path(path, test, label, depth),
            Expr::Computed(computed) => {
                let value = match values::counted_axis(&computed.value) {
                    Some(step) => self.axis_count(step, label),
                    None => self.value(&computed.value, label),
                };
                vec![COMPUTED | self.varying(expr), value]
            }
        };
        self.intern(words)
    }

    /// The flag of a condition that depends on more than its context node.
    fn varying(&self, expr: &Expr) -> u32 {
        let names_variables = self.has_variables && !Uses::of(expr).free.is_empty();
        if names_variables || expr.is_positional() { VARYING } else { 0 }
    }

    /// The offset of words, which are stored once.
    fn intern(&mut self, words: Vec<u32>) -> u32 {
        if let Some(&offset) = self.offsets.get(words.as_slice()) {
            return offset;
        }
        let offset = self.words.len() as u32;
        self.words.extend(&words);
        self.offsets.insert(words.into(), offset);
        offset
    }

    fn operands(
        &mut self,
        tag: u32,
        operands: &[Expr],
        label: &mut impl FnMut(&NameTest) -> LabelId,
        depth: u32,
    ) -> Vec<u32> {
        let mut words = vec![tag | (operands.len() as u32) << 8];
        words.extend(operands.iter().map(|operand| self.expr(operand, label, depth)));
        words
    }

    fn path(
        &mut self,
        path: &Path,
        test: &Test,
        label: &mut impl FnMut(&NameTest) -> LabelId,
        depth: u32,
    ) -> Vec<u32> {
        let start = match path.start {
            Start::Context => FROM_CONTEXT,
            Start::Document => FROM_DOCUMENT,
            Start::Variable(Variable(level)) => FROM_VARIABLE + level,
            Start::Message => FROM_MESSAGE,
        };
        let mut words = vec![PATH | start << 8 | (path.steps.len() as u32) << 16];
        push_test(test, &mut words);
        let mut depth = depth;
        for step in &path.steps {
            depth += (step.axis == Axis::Descendant) as u32;
            self.step(step, label, depth, &mut words);
        }
        words
    }

    fn step(
        &mut self,
        step: &Step,
        label: &mut impl FnMut(&NameTest) -> LabelId,
        depth: u32,
        words: &mut Vec<u32>,
    ) {
        let (kind, test) = match &step.node {
            Node::Element(test) => (STEP_NAME, Some(test)),
            Node::Attribute(test) => (STEP_ATTRIBUTE_NAME, Some(test)),
            Node::Text => (STEP_TEXT, None),
        };
        let kind = kind
            + match test {
                Some(NameTest::Any) => STEP_ANY,
                Some(NameTest::AnyIn(_) | NameTest::Local(_)) => STEP_WILDCARD,
                Some(NameTest::Name(_)) | None => 0,
            };
        let axis = if step.axis == Axis::Descendant { STEP_DESCENDANT } else { 0 };
        let memo = if depth > 1 { STEP_MEMO } else { 0 };
        self.predicates += 1;
        let predicates: Vec<u32> = step
            .predicates
            .iter()
            .map(|predicate| match predicate {
                Predicate::Position(position) => POSITION | position.unwrap_or(0).min(POSITION - 1),
                Predicate::Condition(expr) => self.expr(expr, label, depth),
            })
            .collect();
        self.predicates -= 1;
        words.push(kind | axis | memo | (predicates.len() as u32) << 8);
        words.push(test.map_or(0, |test| label(test).0));
        words.extend(predicates);
    }
}

/// The value that is true where a path has a node that passes a test.
fn evaluated(path: &Path, test: &Test) -> Value {
    let nodes = Value::Walk(Box::new(Walk::of_path(path)));
    let literal = |text: &String| Value::Literal(Literal::Text(text.clone()));
    match test {
        Test::Exists => nodes,
        Test::Compare(operator, literal) => {
            Value::Compare(*operator, Box::new(nodes), Box::new(Value::Literal(literal.clone())))
        }
        Test::Normalized(text) => {
            let normalized = Value::Call(Function::NormalizeSpace, vec![Value::Nodes(Path::CONTEXT)]);
            let each = Value::Each(Box::new(nodes), Box::new(normalized));
            Value::Compare(Operator::Equal, Box::new(each), Box::new(literal(text)))
        }
        Test::Contains(text) => Value::Call(Function::Contains, vec![nodes, literal(text)]),
        Test::StartsWith(text) => Value::Call(Function::StartsWith, vec![nodes, literal(text)]),
    }
}

fn push_test(test: &Test, words: &mut Vec<u32>) {
    let (kind, operator, literal) = match test {
        Test::Exists => return words.push(TEST_EXISTS),
        Test::Normalized(text) => (TEST_NORMALIZED, 0, text),
        Test::Contains(text) => (TEST_CONTAINS, 0, text),
        Test::StartsWith(text) => (TEST_STARTS_WITH, 0, text),
        Test::Compare(operator, literal) => match (operator, literal) {
            (Operator::Equal | Operator::NotEqual, Literal::Text(text)) => {
                (TEST_TEXT, operator_code(*operator), text)
            }
            _ => {
                let bits = literal.number().to_bits();
                words.extend([TEST_NUMBER | operator_code(*operator) << 8, bits as u32, (bits >> 32) as u32]);
                return;
            }
        },
    };
    words.push(kind | operator << 8 | (literal.len() as u32) << 16);
    push_bytes(literal.as_bytes(), words);
}

fn push_bytes(bytes: &[u8], words: &mut Vec<u32>) {
    words.extend(bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    }));
}
