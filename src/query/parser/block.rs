//! Blocks, `for $v in PATH where COND return TEMPLATE`, and the expressions in braces of a template.

use super::constructor::Content;
use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use super::scope::Scope;
use super::{Operand, Parser};
use crate::query::ast::{Node, Path, Predicate};
use crate::query::transformation::{Block, Element, Item, Outer, Part, Transformation};

/// The transformation parsed so far; empty for a filter.
#[derive(Default)]
pub(super) struct Construction<'a> {
    /// The variable of the current block, once it is bound.
    pub variable: Option<&'a str>,
    pub scope: Scope<'a>,
    /// The return paths of the current block.
    returns: Vec<Path>,
    blocks: Vec<Block>,
}

/// How a template uses the nodes of a return path.
enum PathUse {
    Nodes,
    Count,
    First,
}

impl<'a> Parser<'a> {
    /// `transformation = block | element`; `None` if a filter begins here.
    pub(super) fn transformation(&mut self) -> Result<Option<Transformation>, Refused> {
        let start = self.lexer.start;
        let outer = if self.at_block() {
            Outer::Block(self.block()?)
        } else if self.at_constructor() {
            Outer::Element(self.constructor()?)
        } else {
            return Ok(None);
        };
        let blocks = std::mem::take(&mut self.construction.blocks);
        if blocks.is_empty() {
            return Err(self.refuse(start, "template", hints::NO_BLOCK));
        }
        if self.lexer.token != Token::End {
            let reason = hints::unexpected_token(&self.lexer, "the end of the query");
            return Err(self.refuse(self.lexer.start, "syntax", reason));
        }
        Ok(Some(Transformation { outer, blocks }))
    }

    pub(super) fn at_block(&self) -> bool {
        self.lexer.token == Token::Name
            && matches!(self.lexer.word, "for" | "let")
            && self.lexer.follower() == Some(b'$')
    }

    /// `block = "for" "$" name "in" path ("where" or-expr)? "return" (element | bound-path)`
    fn block(&mut self) -> Result<usize, Refused> {
        self.count()?;
        self.enter()?;
        let variable = self.bound_variable()?;
        self.word("in")?;
        let mut binding = self.binding()?;
        self.construction.variable = Some(variable);
        if self.lexer.is("where") {
            self.lexer.advance()?;
            let condition = self.condition()?;
            if let Some(step) = binding.steps.last_mut() {
                step.predicates.push(Predicate::Condition(condition));
            }
        }
        self.word("return")?;
        let template = vec![self.returned()?];
        self.construction.variable = None;
        self.leave();
        let returns = std::mem::take(&mut self.construction.returns);
        self.construction.blocks.push(Block { binding, returns, template });
        Ok(self.construction.blocks.len() - 1)
    }

    /// `"for" "$" name`
    fn bound_variable(&mut self) -> Result<&'a str, Refused> {
        if !self.lexer.is("for") {
            return Err(self.outside_the_language());
        }
        self.lexer.advance()?;
        let name = self.lexer.word;
        if matches!(name, "doc" | "msg") || name.contains(':') {
            let reason = format!("`${name}` cannot be bound; use another name, such as `$v`");
            return Err(self.refuse(self.lexer.start, "variable", reason));
        }
        self.lexer.advance()?;
        Ok(name)
    }

    fn word(&mut self, word: &str) -> Result<(), Refused> {
        if !self.lexer.is(word) {
            return Err(match hints::clause(&self.lexer) {
                Some(_) => self.outside_the_language(),
                None => self.unexpected(&format!("`{word}`")),
            });
        }
        self.lexer.advance()
    }

    /// Parses the path after `in`, which must select elements.
    fn binding(&mut self) -> Result<Path, Refused> {
        let start = self.lexer.start;
        let reason = match self.or_expr()? {
            Operand::Path(path) => match path.steps.last().map(|step| &step.node) {
                Some(Node::Element(_)) => return Ok(path),
                Some(_) => hints::BINDS_LEAF,
                None => hints::BINDS_DOCUMENT,
            },
            Operand::Union(_) => hints::BINDS_UNION,
            _ => hints::BINDS_NO_PATH,
        };
        Err(self.refuse(start, "binding", reason))
    }

    /// Parses the template after `return`.
    fn returned(&mut self) -> Result<Item, Refused> {
        if self.at_constructor() {
            return Ok(Item::Element(self.constructor()?));
        }
        let start = self.lexer.start;
        if self.lexer.token != Token::Variable {
            return Err(self.bad_template_item());
        }
        let place = self.return_path()?;
        if self.is_attribute(place) {
            return Err(self.refuse(start, "attribute-place", hints::ATTRIBUTE_WITHOUT_ELEMENT));
        }
        Ok(Item::Nodes(place))
    }

    /// Parses `$v`, `$v/path`, `count($v/path)` or `string($v/path)` after an opening brace.
    fn enclosed(&mut self) -> Result<(PathUse, usize), Refused> {
        self.count()?;
        self.lexer.advance()?;
        let path_use = match self.lexer.token {
            Token::Variable => PathUse::Nodes,
            Token::Name if self.lexer.follower() == Some(b'(') => match self.lexer.word {
                "count" => PathUse::Count,
                "string" => PathUse::First,
                _ => return Err(self.bad_template_item()),
            },
            _ => return Err(self.bad_template_item()),
        };
        if let PathUse::Nodes = path_use {
            let place = self.return_path()?;
            self.close_brace()?;
            return Ok((path_use, place));
        }
        self.enter()?;
        self.lexer.advance()?;
        self.lexer.advance()?;
        if self.lexer.token != Token::Variable {
            return Err(self.bad_template_item());
        }
        let place = self.return_path()?;
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        self.close_brace()?;
        Ok((path_use, place))
    }

    /// Checks for the closing brace without advancing: characters follow it, not tokens.
    fn close_brace(&self) -> Result<(), Refused> {
        match self.lexer.token {
            Token::CloseBrace => Ok(()),
            Token::Comma => Err(self.refuse(self.lexer.start, "template", hints::SEQUENCE)),
            _ => Err(self.refuse(self.lexer.start, "syntax", hints::unexpected_token(&self.lexer, "`}`"))),
        }
    }

    /// Parses `$v` or `$v/path` at the variable; returns its index among the return paths.
    fn return_path(&mut self) -> Result<usize, Refused> {
        let (name, bound) = (self.lexer.word, self.construction.variable);
        if bound != Some(name) {
            let refused = match (name, bound) {
                ("doc" | "msg", Some(bound)) => ("context", hints::context(bound)),
                _ => ("variable", hints::variable(name, bound)),
            };
            return Err(self.refuse(self.lexer.start, refused.0, refused.1));
        }
        let path = self.path_after_variable(false)?;
        let returns = &mut self.construction.returns;
        Ok(returns.iter().position(|known| *known == path).unwrap_or_else(|| {
            returns.push(path);
            returns.len() - 1
        }))
    }

    pub(super) fn return_path_at(&self, place: usize) -> &Path {
        &self.construction.returns[place]
    }

    fn is_attribute(&self, place: usize) -> bool {
        let last = self.return_path_at(place).steps.last();
        last.is_some_and(|step| matches!(step.node, Node::Attribute(_)))
    }

    /// Parses a part of an attribute value after an opening brace.
    pub(super) fn enclosed_part(&mut self) -> Result<Part, Refused> {
        let (path_use, place) = self.enclosed()?;
        Ok(match path_use {
            PathUse::Nodes => Part::Values(place),
            PathUse::Count => Part::Count(place),
            PathUse::First => Part::First(place),
        })
    }

    /// Refuses XQuery clauses that are not supported.
    #[cold]
    fn outside_the_language(&self) -> Refused {
        let reason = hints::clause(&self.lexer).unwrap_or_default();
        self.refuse(self.lexer.start, "clause", reason)
    }

    /// Refuses what is not allowed in a template.
    #[cold]
    fn bad_template_item(&self) -> Refused {
        let (code, reason) = hints::bad_template_item(&self.lexer, self.construction.variable);
        self.refuse(self.lexer.start, code, reason)
    }
}

impl Content for Outer {
    fn text(text: String) -> Outer {
        Outer::Text(text)
    }

    fn element(element: Element<Outer>) -> Outer {
        Outer::Element(element)
    }

    fn enclosed(parser: &mut Parser<'_>) -> Result<Outer, Refused> {
        parser.lexer.advance()?;
        if !parser.at_block() {
            return Err(match parser.lexer.token {
                Token::Variable => {
                    let reason = hints::variable(parser.lexer.word, None);
                    parser.refuse(parser.lexer.start, "variable", reason)
                }
                _ => parser.bad_template_item(),
            });
        }
        let block = parser.block()?;
        parser.close_brace()?;
        Ok(Outer::Block(block))
    }

    fn attribute(&self, _: &Parser<'_>) -> Option<usize> {
        None
    }
}

impl Content for Item {
    fn text(text: String) -> Item {
        Item::Text(text)
    }

    fn element(element: Element<Item>) -> Item {
        Item::Element(element)
    }

    fn enclosed(parser: &mut Parser<'_>) -> Result<Item, Refused> {
        let (path_use, place) = parser.enclosed()?;
        Ok(match path_use {
            PathUse::Nodes => Item::Nodes(place),
            PathUse::Count => Item::Count(place),
            PathUse::First => Item::First(place),
        })
    }

    fn attribute(&self, parser: &Parser<'_>) -> Option<usize> {
        match *self {
            Item::Nodes(place) if parser.is_attribute(place) => Some(place),
            _ => None,
        }
    }
}
