//! Node tests: names, with prefixes or URIs, and `text()`, `node()`, `comment()`, `processing-instruction()`.

use super::Parser;
use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use crate::query::ast::{Name, NameTest};
use crate::query::value::{NodeTest, WalkAxis};
use crate::util::xml_chars;

impl Parser<'_> {
    /// `node-test = name-test | node-type "(" literal? ")"`
    pub(super) fn node_test(&mut self, axis: WalkAxis) -> Result<NodeTest, Refused> {
        if self.lexer.token == Token::Name && self.lexer.follower() == Some(b'(') {
            let (name, start) = (self.lexer.word, self.lexer.start);
            self.lexer.advance()?;
            return self.node_type(name, start);
        }
        Ok(NodeTest::Name(self.name_test(axis)?))
    }

    pub(super) fn name_test(&mut self, axis: WalkAxis) -> Result<NameTest, Refused> {
        let test = match self.lexer.token {
            Token::Star => NameTest::Any,
            Token::Name if axis == WalkAxis::Attribute => in_namespace("", Some(self.lexer.word)),
            Token::Name => self.element_name(self.lexer.word, self.lexer.start)?,
            Token::Prefixed => {
                let prefix = self.lexer.word;
                let uri = self.uri(prefix, self.lexer.start)?;
                let (test, repeated) = (in_namespace(uri, self.lexer.local), uri.len());
                self.charge_expansion(repeated, self.lexer.start)?;
                test
            }
            Token::Expanded => in_namespace(self.lexer.word, self.lexer.local),
            Token::AnyPrefix => NameTest::Local(self.lexer.word.to_string()),
            _ => return Err(self.no_step()),
        };
        self.lexer.advance()?;
        Ok(test)
    }

    /// An element's name without a prefix, in the default element namespace.
    pub(super) fn element_name(&mut self, local: &str, at: usize) -> Result<NameTest, Refused> {
        let uri = self.namespaces.uri("").unwrap_or_default();
        let (test, repeated) = (in_namespace(uri, Some(local)), uri.len());
        self.charge_expansion(repeated, at)?;
        Ok(test)
    }

    /// Parses the parentheses of `text()`, `node()`, `comment()` or `processing-instruction('target')`.
    pub(super) fn node_type(&mut self, name: &str, start: usize) -> Result<NodeTest, Refused> {
        let mut test = match name {
            "text" => NodeTest::Text,
            "node" => NodeTest::Any,
            "comment" => NodeTest::Comment,
            "processing-instruction" => NodeTest::Instruction(None),
            _ => {
                let (code, reason) = hints::node_type(name);
                return Err(self.refuse(start, code, reason));
            }
        };
        self.lexer.advance()?;
        if let (NodeTest::Instruction(target), Token::Text) = (&mut test, self.lexer.token) {
            *target = Some(self.lexer.word.to_string());
            self.lexer.advance()?;
        }
        self.expect(Token::CloseParen, "`)`")?;
        Ok(test)
    }
}

/// A name test with its URI, whose white space is normalised as XPath 3.1 says.
fn in_namespace(uri: &str, local: Option<&str>) -> NameTest {
    let uri = match uri.bytes().any(xml_chars::is_space) {
        true => {
            uri.split(['\t', '\n', '\r', ' ']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        }
        false => uri.to_string(),
    };
    match local {
        None => NameTest::AnyIn(uri),
        Some(local) => NameTest::Name(Name { uri, local: local.to_string() }),
    }
}
