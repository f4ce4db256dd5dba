//! Queries compiled for verification: the AST as words in one array, equal parts stored once.
//!
//! ```text
//! expr  = AND|OR count<<8, operand…      operand = offset of an expr
//!       | NOT, operand
//!       | PATH flags<<8 steps<<16, test, step…
//! test  = kind | operator<<8 | length<<16, then the literal: 2 words of a number, or bytes
//! step  = kind | axis<<4 | memo<<5 | predicates<<8, label, predicate…
//! predicate = POSITION | n, or offset of an expr
//! ```

use rustc_hash::FxHashMap;

use crate::query::ast::{Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Step, Test};

pub const AND: u32 = 0;
pub const OR: u32 = 1;
pub const NOT: u32 = 2;
pub const PATH: u32 = 3;

/// Flag of a path: it starts at the document node.
pub const ABSOLUTE: u32 = 1;

pub const TEST_EXISTS: u32 = 0;
pub const TEST_TEXT: u32 = 1;
pub const TEST_NUMBER: u32 = 2;
pub const TEST_CONTAINS: u32 = 3;
pub const TEST_STARTS_WITH: u32 = 4;

pub const STEP_NAME: u32 = 0;
pub const STEP_ANY: u32 = 1;
pub const STEP_NAMESPACE: u32 = 2;
pub const STEP_ATTRIBUTE_NAME: u32 = 3;
pub const STEP_ATTRIBUTE_ANY: u32 = 4;
pub const STEP_ATTRIBUTE_NAMESPACE: u32 = 5;
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

#[derive(Default)]
pub struct Twigs {
    words: Vec<u32>,
    offsets: FxHashMap<Box<[u32]>, u32>,
}

impl Twigs {
    /// Compiles a query's expression and returns its offset. `label` numbers name tests.
    pub fn compile(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> u32) -> u32 {
        self.expr(expr, label, 0)
    }

    /// The same for an expression that is asked of elements which may lie in one another.
    pub fn compile_nested(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> u32) -> u32 {
        self.expr(expr, label, 1)
    }

    pub fn words(&self) -> &[u32] {
        &self.words
    }

    pub fn freeze(self) -> Vec<u32> {
        self.words
    }

    /// `depth` counts the `//` steps on the way here.
    fn expr(&mut self, expr: &Expr, label: &mut impl FnMut(&NameTest) -> u32, depth: u32) -> u32 {
        let words = match expr {
            Expr::And(operands) => self.operands(AND, operands, label, depth),
            Expr::Or(operands) => self.operands(OR, operands, label, depth),
            Expr::Not(operand) => vec![NOT, self.expr(operand, label, depth)],
            Expr::Path(path, test) => self.path(path, test, label, depth),
        };
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
        label: &mut impl FnMut(&NameTest) -> u32,
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
        label: &mut impl FnMut(&NameTest) -> u32,
        depth: u32,
    ) -> Vec<u32> {
        let flags = if path.absolute { ABSOLUTE } else { 0 };
        let mut words = vec![PATH | flags << 8 | (path.steps.len() as u32) << 16];
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
        label: &mut impl FnMut(&NameTest) -> u32,
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
                Some(NameTest::AnyIn(_)) => STEP_NAMESPACE,
                Some(NameTest::Name(_)) | None => 0,
            };
        let axis = if step.axis == Axis::Descendant { STEP_DESCENDANT } else { 0 };
        let memo = if depth > 1 { STEP_MEMO } else { 0 };
        let predicates: Vec<u32> = step
            .predicates
            .iter()
            .map(|predicate| match predicate {
                Predicate::Position(position) => POSITION | position.unwrap_or(0).min(POSITION - 1),
                Predicate::Condition(expr) => self.expr(expr, label, depth),
            })
            .collect();
        words.push(kind | axis | memo | (predicates.len() as u32) << 8);
        words.push(test.map_or(0, label));
        words.extend(predicates);
    }
}

fn push_test(test: &Test, words: &mut Vec<u32>) {
    let (kind, operator, literal) = match test {
        Test::Exists => return words.push(TEST_EXISTS),
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
    words.extend(literal.as_bytes().chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    }));
}
