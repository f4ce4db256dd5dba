//! Expressions: `or`, `and`, comparisons, arithmetic, unions and what they combine. What paths with one test
//! can say becomes just that; everything else becomes a value that is evaluated on the document.

use super::lexer::Token;
use super::refusal::Refused;
use super::scope::BoundVariable;
use super::sequence::conditional;
use super::{Parser, hints, is_node_type};
use crate::query::ast::{Axis, Expr, Literal, NameTest, Node, Path, Start, Step, Test, Variable};
use crate::query::constant::constant;
use crate::query::envelope;
use crate::query::number::number;
use crate::query::value::{Arithmetic, Clause, Computed, Function, Kind, Value};

/// The value of an expression, before it is known how it is used.
#[derive(Clone)]
pub(super) enum Operand<'a> {
    Path(Path),
    Union(Vec<Path>),
    Boolean(Expr),
    Text(&'a str),
    Number(f64),
    /// `(a, b)`
    Sequence(Vec<Operand<'a>>),
    Value(Value),
}

impl Operand<'_> {
    pub(super) fn literal(&self) -> Option<Literal> {
        match *self {
            Operand::Text(value) => Some(Literal::Text(value.to_string())),
            Operand::Number(value) => Some(Literal::Number(value)),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Operand::Path(_) | Operand::Union(_) => Kind::Nodes,
            Operand::Boolean(_) => Kind::Boolean,
            Operand::Text(_) => Kind::Text,
            Operand::Number(_) => Kind::Number,
            Operand::Sequence(_) => Kind::Sequence,
            Operand::Value(value) => value.kind(),
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Operand::Path(path) => Value::Nodes(path),
            Operand::Union(paths) => Value::Union(paths.into_iter().map(Value::Nodes).collect()),
            Operand::Boolean(Expr::Computed(computed)) if computed.value.kind() == Kind::Boolean => {
                computed.value
            }
            Operand::Boolean(expr) => Value::Condition(expr),
            Operand::Text(text) => Value::Literal(Literal::Text(text.to_string())),
            Operand::Number(number) => Value::Literal(Literal::Number(number)),
            Operand::Sequence(operands) => {
                Value::Sequence(operands.into_iter().map(Operand::into_value).collect())
            }
            Operand::Value(value) => value,
        }
    }

    /// The path of an operand that is one; otherwise the context.
    pub(super) fn into_path(self) -> Path {
        if let Operand::Path(path) = self { path } else { Path::CONTEXT }
    }

    /// Whether there may be several items, or whether that is not obvious.
    pub(super) fn may_be_many(&self) -> bool {
        match self {
            Operand::Path(Path { start, steps }) => match steps.as_slice() {
                [] => matches!(start, Start::Variable(_)),
                [Step { axis: Axis::Child, node: Node::Attribute(NameTest::Name(_)), .. }] => {
                    *start != Start::Context
                }
                _ => true,
            },
            operand => operand.kind().is_many(),
        }
    }

    /// XPath's `boolean()` of it.
    pub(super) fn into_condition(self) -> Expr {
        match self {
            Operand::Path(path) => Expr::Path(path, Test::Exists),
            Operand::Union(paths) => {
                Expr::Or(paths.into_iter().map(|path| Expr::Path(path, Test::Exists)).collect())
            }
            Operand::Boolean(expr) | Operand::Value(Value::Condition(expr)) => expr,
            Operand::Text(text) => Expr::constant(!text.is_empty()),
            Operand::Number(number) => Expr::constant(number != 0.0 && !number.is_nan()),
            Operand::Sequence(operands) if operands.iter().all(|operand| operand.kind() == Kind::Nodes) => {
                Expr::Or(operands.into_iter().map(Operand::into_condition).collect())
            }
            Operand::Value(Value::If(parts)) => conditional(*parts),
            Operand::Value(Value::Nodes(path)) => Expr::Path(path, Test::Exists),
            Operand::Value(Value::Union(values))
                if values.iter().all(|value| matches!(value, Value::Nodes(_))) =>
            {
                Expr::Or(values.into_iter().map(|value| Operand::Value(value).into_condition()).collect())
            }
            // XPath 2.0 has no `boolean()` of dates.
            Operand::Value(value) if value.kind().is_moment() => Expr::FALSE,
            operand => computed(operand.into_value()),
        }
    }
}

/// The condition that a value is true, which may not depend on the message.
pub(super) fn computed(value: Value) -> Expr {
    match constant(&value, &|_| false) {
        Some(constant) => Expr::constant(constant.boolean()),
        None => Expr::Computed(Box::new(Computed::new(value))),
    }
}

/// Adds an operand to a conjunction or disjunction: `a or (b or c)` has three. The constants stay.
pub(super) fn push_flat(operand: Expr, operands: &mut Vec<Expr>, conjunction: bool) {
    match operand {
        Expr::And(inner) if conjunction && !inner.is_empty() => operands.extend(inner),
        Expr::Or(inner) if !conjunction && !inner.is_empty() => operands.extend(inner),
        operand => operands.push(operand),
    }
}

impl<'a> Parser<'a> {
    /// `or-expr = and-expr ("or" and-expr)*`
    ///
    /// The functions of the operators take their first operand, so that one that stands alone returns at once.
    pub(super) fn or_expr(&mut self) -> Result<Operand<'a>, Refused> {
        let first = self.negative()?;
        if matches!(
            self.lexer.token,
            Token::End | Token::CloseBracket | Token::CloseParen | Token::Comma | Token::CloseBrace
        ) {
            return Ok(first);
        }
        let first = self.and_expr(first)?;
        if !self.lexer.is("or") {
            return Ok(first);
        }
        let mut operands = Vec::new();
        push_flat(first.into_condition(), &mut operands, false);
        while self.lexer.is("or") {
            self.lexer.advance()?;
            let next = self.negative()?;
            push_flat(self.and_expr(next)?.into_condition(), &mut operands, false);
        }
        Ok(Operand::Boolean(Expr::Or(operands)))
    }

    /// `and-expr = equality ("and" equality)*`
    fn and_expr(&mut self, first: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let first = self.equality(first)?;
        if !self.lexer.is("and") {
            return Ok(first);
        }
        let mut operands = Vec::new();
        push_flat(first.into_condition(), &mut operands, true);
        while self.lexer.is("and") {
            self.lexer.advance()?;
            let next = self.negative()?;
            push_flat(self.equality(next)?.into_condition(), &mut operands, true);
        }
        Ok(Operand::Boolean(Expr::And(operands)))
    }

    /// `sum = product (("+" | "-") product)*`
    pub(super) fn sum(&mut self, first: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let mut left = self.product(first)?;
        let mut chained = 0;
        loop {
            let operation = match self.lexer.token {
                Token::Plus => Arithmetic::Add,
                Token::Minus => Arithmetic::Subtract,
                _ => break,
            };
            self.enter()?;
            chained += 1;
            self.lexer.advance()?;
            let next = self.negative()?;
            let right = self.product(next)?;
            left = self.arithmetic(operation, left, right)?;
        }
        self.leave_levels(chained);
        Ok(left)
    }

    /// `product = negative (("*" | "div" | "mod") negative)*`
    fn product(&mut self, first: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let mut left = first;
        let mut chained = 0;
        loop {
            let operation = match (self.lexer.token, self.lexer.word) {
                (Token::Star, _) => Arithmetic::Multiply,
                (Token::Name, "div") => Arithmetic::Divide,
                (Token::Name, "mod") => Arithmetic::Modulo,
                _ => break,
            };
            self.enter()?;
            chained += 1;
            self.lexer.advance()?;
            let right = self.negative()?;
            left = self.arithmetic(operation, left, right)?;
        }
        self.leave_levels(chained);
        Ok(left)
    }

    /// `negative = "-"* union`
    pub(super) fn negative(&mut self) -> Result<Operand<'a>, Refused> {
        if self.lexer.token != Token::Minus {
            return self.union();
        }
        let mut is_negative = false;
        while self.lexer.token == Token::Minus {
            is_negative = !is_negative;
            self.lexer.advance()?;
        }
        let start = self.lexer.start;
        let operand = self.union()?;
        self.refuse_moment(&operand, start)?;
        Ok(match (operand, is_negative) {
            (Operand::Number(number), true) => Operand::Number(-number),
            (Operand::Number(number), false) => Operand::Number(number),
            (operand, true) => Operand::Value(Value::Negative(Box::new(operand.into_value()))),
            (operand, false) => Operand::Value(Value::Call(Function::Number, vec![operand.into_value()])),
        })
    }

    /// `primary = (literal | "(" or-expr ")" | function | variable) predicate* (("/" | "//") step)* | path`
    #[inline]
    pub(super) fn primary(&mut self) -> Result<Operand<'a>, Refused> {
        // The steps after a variable are counted.
        if self.lexer.token != Token::Variable || self.lexer.follower() != Some(b'/') {
            self.count()?;
        }
        let start = self.lexer.start;
        let operand = match self.lexer.token {
            Token::Text => {
                let value = self.lexer.word;
                self.lexer.advance()?;
                Operand::Text(value)
            }
            Token::Number => {
                let digits = self.lexer.word;
                self.lexer.advance()?;
                Operand::Number(number(digits.as_bytes()))
            }
            Token::OpenParen => self.parentheses()?,
            Token::Variable => self.variable(self.lexer.word)?,
            _ if self.at_quantified() => return self.quantified(),
            _ if self.at_flwor() || self.at_constructor() => {
                return Err(self.refuse(start, "transformation", hints::TRANSFORMATION));
            }
            Token::Name if self.lexer.at_call() && !is_node_type(self.lexer.word) => match self.lexer.word {
                "if" => return self.conditional(),
                name => self.function(name)?,
            },
            Token::Prefixed if self.lexer.at_call() => self.prefixed_function()?,
            _ => return self.path(),
        };
        match self.lexer.token {
            Token::OpenBracket | Token::Slash | Token::DoubleSlash if operand.kind().is_many() => {
                self.path_from(operand)
            }
            Token::OpenBracket | Token::Slash | Token::DoubleSlash => {
                Err(self.refuse(self.lexer.start, "filter-expression", hints::FILTER_EXPRESSION))
            }
            _ => Ok(operand),
        }
    }

    /// `$doc` and `$msg` are the document node, and `$envelope` is the envelope unless it is bound.
    fn variable(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        if matches!(name, "doc" | "msg") {
            self.lexer.advance()?;
            let is_apart = self.has_data && self.predicates > 0;
            let path = if is_apart { Path::starting_at(Start::Message) } else { Path::DOCUMENT };
            return Ok(Operand::Path(path));
        }
        let Some((variable, bound)) = self.variables.find(name) else {
            if name == envelope::VARIABLE {
                self.lexer.advance()?;
                return Ok(Operand::Path(envelope::path()));
            }
            let reason = hints::variable(name, self.variables.last().map(|last| last.name));
            return Err(self.refuse(self.lexer.start, "variable", reason));
        };
        self.lexer.advance()?;
        Ok(match bound.kind {
            Kind::Nodes => Operand::Path(Path::starting_at(Start::Variable(variable))),
            kind => Operand::Value(Value::Variable(variable, kind)),
        })
    }

    /// Whether a quantified expression begins here.
    fn at_quantified(&self) -> bool {
        self.lexer.token == Token::Name
            && matches!(self.lexer.word, "some" | "every")
            && self.lexer.follower() == Some(b'$')
    }

    /// `quantified = ("some" | "every") "$" name "in" or-expr ("," "$" name "in" or-expr)* "satisfies" or-expr`
    fn quantified(&mut self) -> Result<Operand<'a>, Refused> {
        let is_every = self.lexer.word == "every";
        let (mark, mut clauses) = (self.variables.mark(), Vec::new());
        while clauses.is_empty() || self.lexer.token == Token::Comma {
            self.lexer.advance()?;
            let name = self.new_variable()?;
            self.word("in")?;
            let start = self.lexer.start;
            let nodes = self.or_expr()?;
            let kind = nodes.kind();
            if !kind.is_many() {
                return Err(self.refuse(start, "binding", hints::BINDS_ONE_ITEM));
            }
            let variable = self.bind(BoundVariable { name, kind, is_one_node: kind == Kind::Nodes })?;
            clauses.push(Clause::For(variable, nodes.into_value()));
        }
        self.word("satisfies")?;
        let condition = self.or_expr()?.into_condition();
        self.unbind(mark);
        let passes = if is_every { Expr::Not(Box::new(condition)) } else { condition };
        clauses.push(Clause::Where(Value::Condition(passes)));
        let some = Expr::Computed(Box::new(Computed::new(Value::Some(clauses))));
        Ok(Operand::Boolean(if is_every { Expr::Not(Box::new(some)) } else { some }))
    }

    /// Parses the name of a variable that is bound here.
    pub(super) fn new_variable(&mut self) -> Result<&'a str, Refused> {
        if self.lexer.token != Token::Variable {
            return Err(self.unexpected("a variable"));
        }
        let name = self.lexer.word;
        if matches!(name, "doc" | "msg") || name.contains(':') {
            let reason = format!("`${name}` cannot be bound; use another name, such as `$v`");
            return Err(self.refuse(self.lexer.start, "variable", reason));
        }
        self.lexer.advance()?;
        Ok(name)
    }

    /// Brings a variable into scope. Each counts as a level of nesting, which limits them.
    pub(super) fn bind(&mut self, variable: BoundVariable<'a>) -> Result<Variable, Refused> {
        self.enter()?;
        Ok(self.variables.bind(variable))
    }

    /// Ends the scope of the variables that were bound after the mark.
    pub(super) fn unbind(&mut self, mark: usize) {
        self.leave_levels(self.variables.mark() - mark);
        self.variables.leave(mark);
    }

    fn arithmetic(
        &self,
        operation: Arithmetic,
        left: Operand<'a>,
        right: Operand<'a>,
    ) -> Result<Operand<'a>, Refused> {
        self.refuse_moment(&left, self.lexer.start)?;
        self.refuse_moment(&right, self.lexer.start)?;
        if let (Operand::Number(left), Operand::Number(right)) = (&left, &right) {
            let result = operation.of(*left, *right);
            // Not every number can be written in XPath.
            if result.is_finite() {
                return Ok(Operand::Number(result));
            }
        }
        let (left, right) = (Box::new(left.into_value()), Box::new(right.into_value()));
        Ok(Operand::Value(Value::Arithmetic(operation, left, right)))
    }

    pub(super) fn refuse_moment(&self, operand: &Operand<'a>, at: usize) -> Result<(), Refused> {
        match operand.kind().is_moment() {
            true => Err(self.refuse(at, "type", hints::MOMENTS)),
            false => Ok(()),
        }
    }

    pub(super) fn leave_levels(&mut self, levels: usize) {
        (0..levels).for_each(|_| self.leave());
    }
}
