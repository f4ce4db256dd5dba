//! Comparisons: of paths with literals they are tests, of sequences alternatives, of other values computed.

use super::expression::{Operand, computed, push_flat};
use super::lexer::Token;
use super::refusal::Refused;
use super::{Parser, hints, simplify};
use crate::query::ast::{Expr, Literal, Operator, Test};
use crate::query::number::number;
use crate::query::value::{Function, Kind, Value};
use crate::query::value_text;

/// An operator of comparisons. `eq` and its kin compare single values: there is no result if an operand has several.
struct Comparison {
    operator: Operator,
    is_single: bool,
}

impl<'a> Parser<'a> {
    /// `equality = relation (("=" | "!=" | "eq" | "ne") relation)*`
    pub(super) fn equality(&mut self, first: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let mut left = self.relation(first)?;
        let mut chained = 0;
        while let Some(comparison) = self.comparison_operator()
            && matches!(comparison.operator, Operator::Equal | Operator::NotEqual)
        {
            left = self.compared(left, comparison, &mut chained, Parser::relation)?;
        }
        self.leave_levels(chained);
        Ok(left)
    }

    /// `relation = sum (("<" | "<=" | ">" | ">=" | "lt" | "le" | "gt" | "ge") sum)*`
    fn relation(&mut self, first: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let mut left = self.sum(first)?;
        let mut chained = 0;
        while let Some(comparison) = self.comparison_operator()
            && !matches!(comparison.operator, Operator::Equal | Operator::NotEqual)
        {
            left = self.compared(left, comparison, &mut chained, Parser::sum)?;
        }
        self.leave_levels(chained);
        Ok(left)
    }

    #[inline]
    fn comparison_operator(&self) -> Option<Comparison> {
        let operator = match (self.lexer.token, self.lexer.word) {
            (Token::Compare(operator), _) => return Some(Comparison { operator, is_single: false }),
            (Token::Name, "eq") => Operator::Equal,
            (Token::Name, "ne") => Operator::NotEqual,
            (Token::Name, "lt") => Operator::Less,
            (Token::Name, "le") => Operator::LessOrEqual,
            (Token::Name, "gt") => Operator::Greater,
            (Token::Name, "ge") => Operator::GreaterOrEqual,
            _ => return None,
        };
        Some(Comparison { operator, is_single: true })
    }

    fn compared(
        &mut self,
        left: Operand<'a>,
        Comparison { operator, is_single }: Comparison,
        chained: &mut usize,
        operand: fn(&mut Self, Operand<'a>) -> Result<Operand<'a>, Refused>,
    ) -> Result<Operand<'a>, Refused> {
        let at = self.lexer.start;
        self.enter()?;
        *chained += 1;
        self.lexer.advance()?;
        let right = self.negative()?;
        let right = operand(self, right)?;
        if !is_single {
            return Ok(Operand::Boolean(self.comparison(left, operator, right, at)?));
        }
        let many: Vec<Operand> =
            [&left, &right].into_iter().filter(|operand| operand.may_be_many()).cloned().collect();
        if many.is_empty() {
            return Ok(Operand::Boolean(self.comparison(left, operator, right, at)?));
        }
        let repeated = many.iter().map(written_bytes).sum();
        self.charge_expansion(repeated, at)?;
        let mut all = Vec::new();
        push_flat(self.comparison(left, operator, right, at)?, &mut all, true);
        all.extend(many.into_iter().map(|operand| {
            let count = Value::Call(Function::Count, vec![operand.into_value()]);
            let two = Value::Literal(Literal::Number(2.0));
            computed(Value::Compare(Operator::Less, Box::new(count), Box::new(two)))
        }));
        Ok(Operand::Boolean(Expr::And(all)))
    }

    /// A comparison with each operand of a sequence.
    fn any_comparison(
        &mut self,
        left: Operand<'a>,
        operator: Operator,
        operands: Vec<Operand<'a>>,
        at: usize,
    ) -> Result<Expr, Refused> {
        let mut any = Vec::with_capacity(operands.len());
        let repeated = written_bytes(&left);
        for operand in operands {
            self.charge_expansion(repeated, at)?;
            any.push(self.comparison(left.clone(), operator, operand, at)?);
        }
        Ok(Expr::Or(any))
    }

    fn comparison(
        &mut self,
        left: Operand<'a>,
        operator: Operator,
        right: Operand<'a>,
        at: usize,
    ) -> Result<Expr, Refused> {
        if left.kind().is_moment() || right.kind().is_moment() {
            return self.moments(left, operator, right, at);
        }
        let (left, operator, right) = match left {
            Operand::Sequence(_) if matches!(right, Operand::Path(_) | Operand::Union(_)) => {
                (right, operator.mirrored(), left)
            }
            _ => (left, operator, right),
        };
        // `a = ('x', 'y')` is `a = 'x' or a = 'y'`.
        let right = match right {
            Operand::Sequence(operands) if matches!(left, Operand::Path(_) | Operand::Union(_)) => {
                return self.any_comparison(left, operator, operands, at);
            }
            Operand::Sequence(operands) if operands.len() == 1 && operands[0].kind() != Kind::Boolean => {
                operands.into_iter().next().unwrap_or(Operand::Number(f64::NAN))
            }
            right => right,
        };
        self.warn_of_order(&left, operator, &right, at);
        let (nodes, operator, other) = match left {
            Operand::Text(_) | Operand::Number(_) => (right, operator.mirrored(), left),
            _ => (left, operator, right),
        };
        Ok(match (nodes, other.literal()) {
            (Operand::Path(path), Some(literal)) => Expr::Path(path, Test::Compare(operator, literal)),
            (Operand::Union(paths), Some(literal)) => {
                if let Literal::Text(value) = &literal {
                    self.charge_expansion(value.len() * (paths.len() - 1), at)?;
                }
                let compare = |path| Expr::Path(path, Test::Compare(operator, literal.clone()));
                Expr::Or(paths.into_iter().map(compare).collect())
            }
            (nodes, _) => {
                let (left, right) = (nodes.into_value(), other.into_value());
                match simplify::comparison(operator, &left, &right, &self.variables) {
                    Some(expr) => expr,
                    None => computed(Value::Compare(operator, Box::new(left), Box::new(right))),
                }
            }
        })
    }

    /// Moments are numbers when they are evaluated, and NaN if there is none: then no comparison is true.
    fn moments(
        &mut self,
        left: Operand<'a>,
        operator: Operator,
        right: Operand<'a>,
        at: usize,
    ) -> Result<Expr, Refused> {
        if left.kind() != right.kind() {
            return Err(self.refuse(at, "type", hints::MOMENTS));
        }
        let (left, right) = (left.into_value(), right.into_value());
        let compared =
            |operator| computed(Value::Compare(operator, Box::new(left.clone()), Box::new(right.clone())));
        Ok(match operator {
            Operator::NotEqual => Expr::Or(vec![compared(Operator::Less), compared(Operator::Greater)]),
            operator => compared(operator),
        })
    }

    /// Warns of `<` and its like between paths and strings that are no numbers: they are never true.
    fn warn_of_order(&mut self, left: &Operand<'a>, operator: Operator, right: &Operand<'a>, at: usize) {
        let text = match (left, right) {
            (Operand::Text(text), other) | (other, Operand::Text(text)) if other.kind() == Kind::Nodes => {
                *text
            }
            _ => return,
        };
        let is_order = !matches!(operator, Operator::Equal | Operator::NotEqual);
        if is_order && number(text.as_bytes()).is_nan() {
            self.warn(at, "compares-numbers", hints::order(operator, text));
        }
    }
}

/// The bytes of an operand as it is written in the canonical text.
fn written_bytes(operand: &Operand<'_>) -> usize {
    value_text::length(&operand.clone().into_value())
}
