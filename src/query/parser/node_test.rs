//! Node tests: names, `text()`, `node()`, `comment()`, `processing-instruction()`.

use super::Parser;
use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use crate::query::value::{NodeTest, WalkAxis};

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
