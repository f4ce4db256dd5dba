//! Unions and other sets of nodes, sequences, `castable as` and `if`.

use super::expression::{Operand, computed, push_flat};
use super::function::TYPES_NAMESPACE;
use super::lexer::Token;
use super::refusal::Refused;
use super::{Parser, hints};
use crate::query::ast::Expr;
use crate::query::atomic::Atomic;
use crate::query::value::{Kind, SetOperation, Value};

/// `if (c) then true() else x` is `c or x`, and so on: what is a simple condition stays one.
pub(super) fn conditional(parts: [Value; 3]) -> Expr {
    let [condition, then, otherwise] = parts.map(|part| Operand::Value(part).into_condition());
    let not = |expr| Expr::Not(Box::new(expr));
    let joined = |one, other, conjunction| {
        let mut operands = Vec::new();
        push_flat(one, &mut operands, conjunction);
        push_flat(other, &mut operands, conjunction);
        if conjunction { Expr::And(operands) } else { Expr::Or(operands) }
    };
    match (then, otherwise) {
        (then, otherwise) if then == otherwise => then,
        (then, otherwise) if otherwise == Expr::FALSE => joined(condition, then, true),
        (then, otherwise) if otherwise == Expr::TRUE => joined(not(condition), then, false),
        (then, otherwise) if then == Expr::TRUE => joined(condition, otherwise, false),
        (then, otherwise) if then == Expr::FALSE => joined(not(condition), otherwise, true),
        (then, otherwise) => {
            computed(Value::If(Box::new([condition, then, otherwise].map(Value::Condition))))
        }
    }
}

impl<'a> Parser<'a> {
    /// `union = intersection (("|" | "union") intersection)*`
    #[inline]
    pub(super) fn union(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let first = self.intersection()?;
        if !self.at_union() {
            return Ok(first);
        }
        let mut operands = vec![self.union_operand(first, start)?];
        while self.at_union() {
            self.lexer.advance()?;
            let start = self.lexer.start;
            let next = self.intersection()?;
            operands.push(self.union_operand(next, start)?);
        }
        Ok(union_of(operands))
    }

    fn at_union(&self) -> bool {
        self.lexer.token == Token::Pipe || self.lexer.is("union")
    }

    /// `intersection = castable (("intersect" | "except") castable)*`
    #[inline]
    fn intersection(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let mut left = self.castable()?;
        if self.lexer.token != Token::Name {
            return Ok(left);
        }
        let mut chained = 0;
        loop {
            let operation = match self.lexer.word {
                "except" if self.lexer.token == Token::Name => SetOperation::Except,
                "intersect" if self.lexer.token == Token::Name => SetOperation::Intersect,
                _ => break,
            };
            self.enter()?;
            chained += 1;
            left = self.union_operand(left, start)?;
            self.lexer.advance()?;
            let start = self.lexer.start;
            let right = self.castable()?;
            let right = self.union_operand(right, start)?;
            let (left_nodes, right) = (Box::new(left.into_value()), Box::new(right.into_value()));
            left = Operand::Value(Value::Sets(operation, left_nodes, right));
        }
        self.leave_levels(chained);
        Ok(left)
    }

    /// `castable = primary ("castable" "as" type "?"?)?`
    #[inline]
    fn castable(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let operand = self.primary()?;
        if !self.lexer.is("castable") {
            return Ok(operand);
        }
        self.refuse_moment(&operand, start)?;
        self.lexer.advance()?;
        if !self.lexer.is("as") {
            return Err(self.unexpected("`as`"));
        }
        self.lexer.advance()?;
        let (start, name) = (self.lexer.start, self.lexer.local.unwrap_or("*"));
        let namespace = match self.lexer.token {
            Token::Prefixed => Some(self.function_namespace(self.lexer.word)?.to_string()),
            Token::Expanded => Some(self.lexer.word.to_string()),
            _ => None,
        };
        let target = Atomic::named(name).filter(|_| namespace.as_deref() == Some(TYPES_NAMESPACE));
        let Some(target) = target else { return Err(self.refuse(start, "type", hints::no_type())) };
        self.lexer.advance()?;
        let may_be_empty = self.lexer.token == Token::Question;
        if may_be_empty {
            self.lexer.advance()?;
        }
        let operand = Box::new(operand.into_value());
        Ok(Operand::Boolean(computed(Value::Castable { target, may_be_empty, operand })))
    }

    fn union_operand(&self, operand: Operand<'a>, start: usize) -> Result<Operand<'a>, Refused> {
        if operand.kind() != Kind::Nodes {
            let reason = "`|`, `except` and `intersect` combine paths; combine conditions with `or`";
            return Err(self.refuse(start, "union-operand", reason));
        }
        Ok(operand)
    }

    /// `"(" (or-expr ("," or-expr)*)? ")"`: a sequence, if there is not just one expression.
    pub(super) fn parentheses(&mut self) -> Result<Operand<'a>, Refused> {
        self.enter()?;
        self.lexer.advance()?;
        if self.lexer.token == Token::CloseParen {
            self.lexer.advance()?;
            self.leave();
            return Ok(Operand::Sequence(Vec::new()));
        }
        let first = self.or_expr()?;
        let operand = match self.lexer.token {
            Token::Comma => {
                let mut operands = Vec::new();
                self.push_item(first, &mut operands)?;
                while self.lexer.token == Token::Comma {
                    self.lexer.advance()?;
                    let next = self.or_expr()?;
                    self.push_item(next, &mut operands)?;
                }
                Operand::Sequence(operands)
            }
            _ => first,
        };
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        Ok(operand)
    }

    /// Sequences are flat: `(1, (2, 3))` has three items.
    fn push_item(&mut self, operand: Operand<'a>, operands: &mut Vec<Operand<'a>>) -> Result<(), Refused> {
        self.refuse_moment(&operand, self.lexer.start)?;
        match operand {
            Operand::Sequence(inner) => operands.extend(inner),
            operand => operands.push(operand),
        }
        Ok(())
    }

    /// `"if" "(" or-expr ")" "then" or-expr "else" or-expr`
    pub(super) fn conditional(&mut self) -> Result<Operand<'a>, Refused> {
        self.enter()?;
        self.lexer.advance()?;
        self.lexer.advance()?;
        let condition = self.condition()?;
        self.expect(Token::CloseParen, "`)`")?;
        let mut branches = Vec::new();
        for word in ["then", "else"] {
            if !self.lexer.is(word) {
                return Err(self.unexpected(&format!("`{word}`")));
            }
            self.lexer.advance()?;
            let start = self.lexer.start;
            let branch = self.or_expr()?;
            self.refuse_moment(&branch, start)?;
            branches.push(branch);
        }
        self.leave();
        let otherwise = branches.remove(1);
        let then = branches.remove(0);
        let is_condition = then.kind() == Kind::Boolean && otherwise.kind() == Kind::Boolean;
        let parts = [Value::Condition(condition), then.into_value(), otherwise.into_value()];
        Ok(match is_condition {
            true => Operand::Boolean(conditional(parts)),
            false => Operand::Value(Value::If(Box::new(parts))),
        })
    }
}

/// Nodes of all operands.
pub(super) fn union_of(operands: Vec<Operand<'_>>) -> Operand<'_> {
    if operands.iter().any(|operand| matches!(operand, Operand::Value(_) | Operand::Sequence(_))) {
        let mut values = Vec::new();
        for operand in operands {
            match operand.into_value() {
                Value::Union(more) => values.extend(more),
                value => values.push(value),
            }
        }
        return Operand::Value(Value::Union(values));
    }
    let mut paths = Vec::new();
    for operand in operands {
        match operand {
            Operand::Path(path) => paths.push(path),
            Operand::Union(more) => paths.extend(more),
            _ => {}
        }
    }
    Operand::Union(paths)
}
