//! `for … let … where … order by … return …`, and the expressions in braces.

use super::Parser;
use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use super::scope::{BoundVariable, Prefixes};
use crate::query::ast::{Expr, Node, Path, Predicate, Variable};
use crate::query::flwor::{Content, Flwor, OrderKey};
use crate::query::join;
use crate::query::transformation::Transformation;
use crate::query::value::{Clause, Kind, Value};
use crate::query::variables::{AsPredicate, Uses};
use crate::util::xml_chars;

/// The scope inside of a transformation.
#[derive(Default)]
pub(super) struct Construction<'a> {
    /// The innermost variable: a path must start with a variable then.
    pub variable: Option<&'a str>,
    pub prefixes: Prefixes<'a>,
}

impl<'a> Parser<'a> {
    /// `transformation = flwor | element`; `None` if a filter begins here.
    pub(super) fn transformation(&mut self) -> Result<Option<Transformation>, Refused> {
        let start = self.lexer.start;
        let content = if self.at_flwor() {
            Content::Flwor(Box::new(self.flwor()?))
        } else if self.at_constructor() {
            Content::Element(Box::new(self.constructor()?))
        } else {
            return Ok(None);
        };
        if content.has_tuple().is_none() {
            return Err(self.refuse(start, "template", hints::NO_BLOCK));
        }
        if self.lexer.token != Token::End {
            let reason = hints::unexpected_token(&self.lexer, "the end of the query");
            return Err(self.refuse(self.lexer.start, "syntax", reason));
        }
        Ok(Some(Transformation::of(content)))
    }

    pub(super) fn at_flwor(&self) -> bool {
        self.lexer.token == Token::Name
            && matches!(self.lexer.word, "for" | "let")
            && self.lexer.follower() == Some(b'$')
    }

    fn at_if(&self) -> bool {
        self.lexer.is("if") && self.lexer.follower() == Some(b'(')
    }

    /// `flwor = (for | let) (for | let | where)* order? "return" single`
    fn flwor(&mut self) -> Result<Flwor, Refused> {
        let (mark, outer) = (self.variables.mark(), self.construction.variable);
        let mut clauses = Vec::new();
        loop {
            if self.at_flwor() {
                let binds = if self.lexer.word == "for" { Parser::for_binding } else { Parser::let_binding };
                self.lexer.advance()?;
                clauses.push(binds(self)?);
                while self.lexer.token == Token::Comma {
                    self.lexer.advance()?;
                    clauses.push(binds(self)?);
                }
            } else if self.lexer.is("where") {
                self.lexer.advance()?;
                let condition = self.condition()?;
                self.restrict(&mut clauses, condition, mark);
            } else {
                break;
            }
        }
        let order = self.order_by()?;
        self.word("return")?;
        let start = self.lexer.start;
        let result = self.single()?;
        if self.elements == 0 && attribute_path(&result).is_some() {
            return Err(self.refuse(start, "attribute-place", hints::ATTRIBUTE_WITHOUT_ELEMENT));
        }
        self.unbind(mark);
        self.construction.variable = outer;
        Ok(Flwor { clauses, order, result })
    }

    /// `"$" name "in" nodes`
    fn for_binding(&mut self) -> Result<Clause, Refused> {
        let name = self.new_variable()?;
        self.word("in")?;
        let start = self.lexer.start;
        let nodes = self.or_expr()?;
        if nodes.kind() != Kind::Nodes {
            return Err(self.refuse(start, "binding", hints::BINDS_NO_PATH));
        }
        let variable = self.bind_in_flwor(BoundVariable { name, kind: Kind::Nodes, is_one_node: true })?;
        Ok(Clause::For(variable, nodes.into_value()))
    }

    /// `"$" name ":=" or-expr`
    fn let_binding(&mut self) -> Result<Clause, Refused> {
        let name = self.new_variable()?;
        self.expect(Token::Assign, "`:=`")?;
        if self.at_flwor() || self.at_constructor() {
            return Err(self.refuse(self.lexer.start, "binding", hints::LET_CONTENT));
        }
        let value = self.or_expr()?;
        let bound = BoundVariable { name, kind: value.kind(), is_one_node: false };
        Ok(Clause::Let(self.bind_in_flwor(bound)?, value.into_value()))
    }

    fn bind_in_flwor(&mut self, bound: BoundVariable<'a>) -> Result<Variable, Refused> {
        self.construction.variable = Some(bound.name);
        self.bind(bound)
    }

    /// Puts the operands of a condition where they can be decided first.
    fn restrict(&mut self, clauses: &mut Vec<Clause>, condition: Expr, mark: usize) {
        let operands = match condition {
            Expr::And(operands) if !operands.is_empty() => operands,
            condition => vec![condition],
        };
        for mut operand in operands {
            let uses = Uses::of(&operand);
            let decides = uses.free.last().filter(|last| last.0 as usize >= mark);
            let place = match decides {
                Some(last) => clauses.iter().position(|clause| clause.variable() == Some(last)),
                // It depends on the message only.
                None if uses.free.is_empty() => Some(0),
                None => None,
            };
            if let Some(Clause::For(variable, Value::Nodes(path))) = place.map(|place| &mut clauses[place])
                && uses.free.without(*variable).is_empty()
                && !uses.nested.has(*variable)
                && let Some(step) = path.steps.last_mut()
            {
                let (of, bound_from) = (*variable, self.variables.mark() as u32);
                AsPredicate { of, bound_from, is_of_record: self.has_data }.rewrite(&mut operand);
                step.predicates.push(Predicate::Condition(operand));
                continue;
            }
            if let Some(Clause::For(variable, Value::Walk(walk))) = place.map(|place| &mut clauses[place])
                && join::is_of_data(walk)
                && !uses.nested.has(*variable)
                && let Some(step) = walk.steps.last_mut()
            {
                let (of, bound_from) = (*variable, self.variables.mark() as u32);
                AsPredicate { of, bound_from, is_of_record: self.has_data }.rewrite(&mut operand);
                step.predicates.push(Value::of_predicate(Predicate::Condition(operand)));
                continue;
            }
            // Canonical text begins with `for` or `let`, so what depends on no own variable stands after the first.
            let after = place.map_or(1, |place| place + 1);
            let others = clauses[after..].iter().take_while(|clause| clause.variable().is_none()).count();
            clauses.insert(after + others, Clause::Where(Value::of_predicate(Predicate::Condition(operand))));
        }
    }

    /// `order = "stable"? "order" "by" key ("," key)*`
    fn order_by(&mut self) -> Result<Vec<OrderKey>, Refused> {
        let mut keys = Vec::new();
        if self.lexer.is("stable") {
            self.lexer.advance()?;
        }
        if !self.lexer.is("order") {
            return Ok(keys);
        }
        self.lexer.advance()?;
        self.word("by")?;
        loop {
            let value = self.or_expr()?.into_value();
            let is_descending = self.lexer.is("descending");
            if is_descending || self.lexer.is("ascending") {
                self.lexer.advance()?;
            }
            let mut is_empty_greatest = false;
            if self.lexer.is("empty") {
                self.lexer.advance()?;
                is_empty_greatest = self.lexer.is("greatest");
                if !is_empty_greatest && !self.lexer.is("least") {
                    return Err(self.unexpected("`least` or `greatest`"));
                }
                self.lexer.advance()?;
            }
            keys.push(OrderKey { value, is_descending, is_empty_greatest });
            if self.lexer.token != Token::Comma {
                return Ok(keys);
            }
            self.lexer.advance()?;
        }
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), Refused> {
        if !self.lexer.is(word) {
            return Err(match hints::clause(&self.lexer) {
                Some(reason) => self.refuse(self.lexer.start, "clause", reason),
                None => self.unexpected(&format!("`{word}`")),
            });
        }
        self.lexer.advance()
    }

    /// `sequence = single ("," single)*`
    fn sequence(&mut self) -> Result<Content, Refused> {
        let first = self.single()?;
        if self.lexer.token != Token::Comma {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.lexer.token == Token::Comma {
            self.lexer.advance()?;
            parts.push(self.single()?);
        }
        Ok(Content::Sequence(parts))
    }

    /// `single = flwor | "if" "(" or-expr ")" "then" single "else" single | element | "(" sequence? ")" | or-expr`
    fn single(&mut self) -> Result<Content, Refused> {
        if self.at_flwor() {
            return Ok(Content::Flwor(Box::new(self.flwor()?)));
        }
        if self.at_if() {
            return self.conditional_content();
        }
        if self.at_constructor() {
            return Ok(Content::Element(Box::new(self.constructor()?)));
        }
        if self.at_sequence() {
            self.enter()?;
            self.count()?;
            self.lexer.advance()?;
            let content = match self.lexer.token {
                Token::CloseParen => Content::Sequence(Vec::new()),
                _ => self.sequence()?,
            };
            self.expect(Token::CloseParen, "`)`")?;
            self.leave();
            return Ok(content);
        }
        if let Some((code, reason)) = hints::bad_content(&self.lexer) {
            return Err(self.refuse(self.lexer.start, code, reason));
        }
        let start = self.lexer.start;
        let operand = self.or_expr()?;
        self.refuse_moment(&operand, start)?;
        Ok(Content::Value(operand.into_value()))
    }

    fn conditional_content(&mut self) -> Result<Content, Refused> {
        self.count()?;
        self.enter()?;
        self.lexer.advance()?;
        self.expect(Token::OpenParen, "`(`")?;
        let condition = Value::of_predicate(Predicate::Condition(self.condition()?));
        self.expect(Token::CloseParen, "`)`")?;
        self.word("then")?;
        let yes = self.single()?;
        self.word("else")?;
        let no = self.single()?;
        self.leave();
        Ok(Content::If(condition, Box::new(yes), Box::new(no)))
    }

    /// Whether the parentheses that open here hold a sequence, and are not the beginning of an operand: `(1, 2)[1]`.
    fn at_sequence(&self) -> bool {
        if self.lexer.token != Token::OpenParen {
            return false;
        }
        let bytes = self.lexer.text.as_bytes();
        let (mut at, mut depth) = (self.lexer.at, 0);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\'' | b'"' => match memchr::memchr(byte, &bytes[at..]) {
                    Some(length) => at += length + 1,
                    None => break,
                },
                // Text of an element may have quotes and parentheses. Operands have no elements.
                b'<' if depth == 0 && begins_tag(&self.lexer.text[at..]) => break,
                b'(' | b'[' | b'{' => depth += 1,
                b')' if depth == 0 => {
                    let rest = self.lexer.text[at..].trim_start_matches([' ', '\t', '\r', '\n']);
                    return rest.is_empty() || rest.starts_with([',', ')', '}']) || rest.starts_with("else");
                }
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
        true
    }

    /// Parses an expression in braces, from after the opening brace to after the closing one.
    pub(super) fn enclosed(&mut self) -> Result<Content, Refused> {
        self.lexer.advance()?;
        let content = self.sequence()?;
        match self.lexer.token {
            // Characters follow it, not tokens.
            Token::CloseBrace => Ok(Content::Enclosed(Box::new(content))),
            _ => Err(self.refuse(self.lexer.start, "syntax", hints::unexpected_token(&self.lexer, "`}`"))),
        }
    }

    /// Parses an expression in braces in an attribute value.
    pub(super) fn enclosed_part(&mut self) -> Result<Content, Refused> {
        let start = self.lexer.at;
        let content = self.enclosed()?;
        if constructs(&content) {
            return Err(self.refuse(start, "template", hints::ELEMENT_IN_VALUE));
        }
        Ok(content)
    }
}

/// Whether what follows a `<` is the name of a tag, and not a call: `(1<count($v/a))`.
fn begins_tag(text: &str) -> bool {
    let is_in_name = |c: char| xml_chars::is_name_start(c) || matches!(c, '-' | '.' | '0'..='9');
    text.starts_with(xml_chars::is_name_start) && !text.trim_start_matches(is_in_name).starts_with('(')
}

/// Whether content has constructed elements.
fn constructs(content: &Content) -> bool {
    match content {
        Content::Text(_) | Content::Value(_) => false,
        Content::Element(_) => true,
        Content::Enclosed(content) => constructs(content),
        Content::Sequence(parts) => parts.iter().any(constructs),
        Content::If(_, yes, no) => constructs(yes) || constructs(no),
        Content::Flwor(flwor) => constructs(&flwor.result),
    }
}

/// The path, if content is nothing but attributes that a path selects.
pub(super) fn attribute_path(content: &Content) -> Option<&Path> {
    match content {
        Content::Enclosed(content) => attribute_path(content),
        Content::Value(Value::Nodes(path)) => {
            let last = path.steps.last()?;
            matches!(last.node, Node::Attribute(_)).then_some(path)
        }
        _ => None,
    }
}
