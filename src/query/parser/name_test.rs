//! Name tests: `a`, `p:a`, `Q{uri}a`, `*:a`, `p:*`, `*`, with their namespaces.

use super::Parser;
use super::lexer::Token;
use super::refusal::Refused;
use crate::query::ast::{Name, NameTest};
use crate::query::value::WalkAxis;
use crate::util::xml_chars;

impl Parser<'_> {
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
        let default = if self.in_envelope { None } else { self.namespaces.uri("") };
        let uri = default.unwrap_or_default();
        let (test, repeated) = (in_namespace(uri, Some(local)), uri.len());
        self.charge_expansion(repeated, at)?;
        Ok(test)
    }

    /// The namespace of a prefix: bound by an enclosing constructed element, or by the subscription.
    pub(super) fn uri(&self, prefix: &str, at: usize) -> Result<&str, Refused> {
        let found = self.construction.prefixes.uri(prefix).or_else(|| self.namespaces.uri(prefix));
        found.ok_or_else(|| {
            let reason = format!(
                "the prefix `{prefix}` is not bound to a namespace; bind it in the namespaces of the query"
            );
            self.refuse(at, "unbound-prefix", reason)
        })
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
