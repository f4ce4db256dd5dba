//! Function calls.

use super::expression::Operand;
use super::lexer::Token;
use super::refusal::Refused;
use super::{Parser, hints};
use crate::error::Position;
use crate::limits::PATTERN_SIZE_LIMIT;
use crate::query::ast::{Expr, Test};
use crate::query::data_use::DataUse;
use crate::query::pattern::{BadPattern, Pattern};
use crate::query::picture::Picture;
use crate::query::replacement::Replacement;
use crate::query::value::{Computed, FirstArgument, Function, Kind, Signature, Value};

const FUNCTIONS_NAMESPACE: &str = "http://www.w3.org/2005/xpath-functions";
pub(super) const TYPES_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema";

impl<'a> Parser<'a> {
    /// `function = name "(" (or-expr ("," or-expr)*)? ")"`
    pub(super) fn function(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        if !is_condition(name) && Function::named(name).is_none() {
            return Err(self.unknown_function(name));
        }
        let arguments = self.arguments()?;
        let count = arguments.len();
        let mut arguments = arguments.into_iter();
        let condition = match (name, count) {
            ("not", 1) => arguments.next().map(|operand| Expr::Not(Box::new(operand.into_condition()))),
            ("boolean", 1) => arguments.next().map(Operand::into_condition),
            ("true", 0) => Some(Expr::TRUE),
            ("false", 0) => Some(Expr::FALSE),
            _ => None,
        };
        if let Some(condition) = condition {
            return Ok(Operand::Boolean(condition));
        }
        match Function::named(name) {
            Some(signature) => self.call(signature, arguments.collect(), start),
            None => {
                let wanted = usize::from(matches!(name, "not" | "boolean"));
                Err(self.refuse(start, "argument", hints::arguments(name, (wanted, wanted), count)))
            }
        }
    }

    /// A function with a prefix: `fn:` of XPath's own functions, `xs:` of types.
    pub(super) fn prefixed_function(&mut self) -> Result<Operand<'a>, Refused> {
        let (prefix, local) = (self.lexer.word, self.lexer.local.unwrap_or("*"));
        let uri = self.function_namespace(prefix)?;
        let is_type = uri == TYPES_NAMESPACE;
        let signature = match uri {
            FUNCTIONS_NAMESPACE => return self.function(local),
            // Of one value; `string()` also takes the context node.
            TYPES_NAMESPACE if local == "string" => Function::named("string"),
            TYPES_NAMESPACE => Function::named(&format!("xs:{local}")),
            _ => None,
        };
        let Some(signature) = signature else { return Err(self.unknown_function(local)) };
        let start = self.lexer.start;
        let arguments = self.arguments()?;
        if is_type && arguments.is_empty() {
            let reason = hints::arguments(&format!("xs:{local}"), (1, 1), 0);
            return Err(self.refuse(start, "argument", reason));
        }
        if let (true, [argument]) = (signature.kind.is_moment(), arguments.as_slice())
            && let Some(literal) = argument.literal()
            && Value::Call(signature.function, vec![Value::Literal(literal)]).is_no_moment()
        {
            return Err(self.refuse(start, "argument", hints::no_moment(signature.name)));
        }
        self.call(signature, arguments, start)
    }

    /// The namespace of a function's or type's prefix; `fn` and `xs` need no declaration.
    pub(super) fn function_namespace(&self, prefix: &str) -> Result<&str, Refused> {
        match prefix {
            "fn" if self.namespaces.uri(prefix).is_none() => Ok(FUNCTIONS_NAMESPACE),
            "xs" if self.namespaces.uri(prefix).is_none() => Ok(TYPES_NAMESPACE),
            _ => self.uri(prefix, self.lexer.start),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Operand<'a>>, Refused> {
        self.enter()?;
        self.lexer.advance()?;
        self.lexer.advance()?;
        let mut arguments = Vec::new();
        while self.lexer.token != Token::CloseParen {
            if !arguments.is_empty() {
                self.expect(Token::Comma, "`,` or `)`")?;
            }
            let start = self.lexer.start;
            let argument = self.or_expr()?;
            self.refuse_moment(&argument, start)?;
            arguments.push(argument);
        }
        self.lexer.advance()?;
        self.leave();
        Ok(arguments)
    }

    fn call(
        &mut self,
        signature: &Signature,
        mut arguments: Vec<Operand<'a>>,
        start: usize,
    ) -> Result<Operand<'a>, Refused> {
        let Signature { function, name, kind, .. } = *signature;
        let (fewest, most) = signature.arguments;
        if arguments.len() < fewest || arguments.len() > most {
            let reason = hints::arguments(name, signature.arguments, arguments.len());
            return Err(self.refuse(start, "argument", reason));
        }
        if arguments.is_empty() {
            let uses_context = signature.of_context || most == 0;
            if let (true, 0, Some(variable)) = (uses_context, self.predicates, self.construction.variable) {
                return Err(self.refuse(start, "context", hints::context(variable)));
            }
            if signature.of_context {
                arguments.push(Operand::Path(self.context_path()));
            }
        }
        let is_right = match signature.first {
            FirstArgument::Any => true,
            FirstArgument::Nodes => arguments[0].kind() == Kind::Nodes,
            FirstArgument::Items => arguments[0].kind().is_many(),
        };
        if !is_right {
            let items = if signature.first == FirstArgument::Items { " or a sequence" } else { "" };
            let reason = format!("the argument of `{name}()` must be a path{items}");
            return Err(self.refuse(start, "argument", reason));
        }
        self.check_pattern(function, &arguments, start)?;
        self.note_data(signature, &arguments, start)?;
        Ok(match (function, arguments.as_slice()) {
            (Function::Contains, [Operand::Path(path), Operand::Text(text)]) => {
                Operand::Boolean(Expr::Path(path.clone(), Test::Contains(text.to_string())))
            }
            (Function::StartsWith, [Operand::Path(path), Operand::Text(text)]) => {
                Operand::Boolean(Expr::Path(path.clone(), Test::StartsWith(text.to_string())))
            }
            (Function::Exists, _) if arguments[0].kind() == Kind::Nodes => {
                Operand::Boolean(arguments.remove(0).into_condition())
            }
            (Function::Empty, _) if arguments[0].kind() == Kind::Nodes => {
                Operand::Boolean(Expr::Not(Box::new(arguments.remove(0).into_condition())))
            }
            _ => {
                let value = Value::Call(function, arguments.into_iter().map(Operand::into_value).collect());
                match kind {
                    Kind::Boolean => Operand::Boolean(Expr::Computed(Box::new(Computed::new(value)))),
                    _ => Operand::Value(value),
                }
            }
        })
    }
}

impl<'a> Parser<'a> {
    /// Notes that local data is named.
    fn note_data(
        &mut self,
        signature: &Signature,
        arguments: &[Operand<'a>],
        start: usize,
    ) -> Result<(), Refused> {
        if !matches!(signature.function, Function::Doc | Function::Collection) {
            return Ok(());
        }
        let is_name = |name: &str| {
            let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_in_name)
        };
        match arguments {
            [Operand::Text(name)] if is_name(name) => {
                let position = Position::of(self.lexer.text.as_bytes(), start);
                let is_collection = signature.function == Function::Collection;
                self.data.push(DataUse { name: name.to_string(), is_collection, position });
                Ok(())
            }
            _ => Err(self.refuse(start, "data-name", hints::data_name(signature.name))),
        }
    }

    /// Refuses patterns that cannot be searched for, and pictures that are not valid: they are literals, so that none fails on a message.
    fn check_pattern(
        &self,
        function: Function,
        arguments: &[Operand<'a>],
        start: usize,
    ) -> Result<(), Refused> {
        if function == Function::FormatNumber {
            return match &arguments[1] {
                Operand::Text(picture) => match Picture::parse(picture) {
                    Ok(_) => Ok(()),
                    Err(reason) => Err(self.refuse(start, "picture", hints::picture(&reason))),
                },
                _ => Err(self.refuse(start, "picture", hints::PICTURE_LITERAL.to_string())),
            };
        }
        let flags_at = match function {
            Function::Matches | Function::Tokenize => 2,
            Function::Replace => 3,
            _ => return Ok(()),
        };
        let refuse = |reason: String| Err(self.refuse(start, "pattern", reason));
        let mut texts = Vec::new();
        for argument in arguments.iter().skip(1) {
            match argument {
                Operand::Text(text) => texts.push(*text),
                _ => return refuse(hints::PATTERN_LITERAL.to_string()),
            }
        }
        let [pattern, ..] = texts.as_slice() else { return Ok(()) };
        let flags = texts.get(flags_at - 1).copied().unwrap_or_default();
        let pattern = match Pattern::parse(pattern, flags) {
            Ok(pattern) => pattern,
            Err(BadPattern::Syntax(reason)) => {
                return refuse(format!("the regular expression is refused: {reason}"));
            }
            Err(BadPattern::TooLarge(size)) => {
                let what = "the regular expression is too large with its repetitions written out";
                return Err(self.refuse_limit(start, "pattern-limit", what, size, PATTERN_SIZE_LIMIT));
            }
        };
        if function == Function::Matches {
            return Ok(());
        }
        if pattern.matches_empty {
            return refuse(hints::MATCHES_EMPTY.to_string());
        }
        if function == Function::Replace
            && let Err(reason) = Replacement::parse(texts[1], pattern.groups, flags.contains('q'))
        {
            return refuse(reason);
        }
        Ok(())
    }
}

/// Functions that are parts of conditions, not values.
fn is_condition(name: &str) -> bool {
    matches!(name, "not" | "boolean" | "true" | "false")
}
