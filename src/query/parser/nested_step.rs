//! Expressions as steps: `a/(b | c)`, `a/string()`. What paths can say is written out, `a/b | a/c`; everything else is
//! evaluated for each node.

use super::Parser;
use super::expression::Operand;
use super::lexer::Token;
use super::path::Route;
use super::refusal::Refused;
use super::sequence::union_of;
use crate::query::ast::{Axis, Path, Start};
use crate::query::value::{Kind, Value, Walk, walk_steps};

impl<'a> Parser<'a> {
    /// Each path followed by each rest.
    pub(super) fn joined(&mut self, paths: &[Path], rests: &[Path], at: usize) -> Result<Vec<Path>, Refused> {
        let written = self.lexer.start - at;
        self.charge_expansion(written * (paths.len() * rests.len() - 1), at)?;
        let mut all = Vec::with_capacity(paths.len() * rests.len());
        for path in paths {
            all.extend(rests.iter().map(|rest| {
                let mut path = path.clone();
                path.steps.extend(rest.steps.iter().cloned());
                path
            }));
        }
        Ok(all)
    }

    /// `a/(b | c)`, `a/string()`: an expression for each node so far. Here before the parenthesis or the name.
    pub(super) fn nested_step(&mut self, mut route: Route, descends: bool) -> Result<Operand<'a>, Refused> {
        let at = self.lexer.start;
        self.predicates += 1;
        let inner = match self.lexer.token {
            Token::OpenParen => self.parentheses()?,
            Token::Prefixed => self.prefixed_function()?,
            _ => self.function(self.lexer.word)?,
        };
        self.refuse_moment(&inner, at)?;
        let inner = match self.lexer.token {
            Token::OpenBracket if inner.kind().is_many() => self.filtered(inner)?,
            _ => inner,
        };
        self.predicates -= 1;
        let inner = nodes_of(inner);
        let joined = match (&route, inner) {
            (Route::Simple(path), inner @ (Operand::Path(_) | Operand::Union(_))) => {
                let mut rests =
                    if let Operand::Union(paths) = inner { paths } else { vec![inner.into_path()] };
                let can_descend = |rest: &Path| !descends || !rest.steps.is_empty();
                let starts = std::slice::from_ref(path);
                if !rests.is_empty()
                    && rests.iter().all(|rest| is_joinable(starts, rest) && can_descend(rest))
                {
                    if descends {
                        // `a//(b | c)` is `a//b | a//c`.
                        rests.iter_mut().for_each(|rest| rest.steps[0].axis = Axis::Descendant);
                    }
                    let mut paths = self.joined(starts, &rests, at)?;
                    match paths.len() {
                        1 => Operand::Path(paths.remove(0)),
                        _ => Operand::Union(paths),
                    }
                } else {
                    self.each(route, descends, Operand::Union(rests))
                }
            }
            (_, inner) => {
                if descends {
                    route.descend();
                }
                self.each(route, false, inner)
            }
        };
        match self.lexer.token {
            Token::Slash | Token::DoubleSlash => self.path_from(joined),
            _ => Ok(joined),
        }
    }

    fn each(&self, mut route: Route, descends: bool, inner: Operand<'a>) -> Operand<'a> {
        if descends {
            route.descend();
        }
        let start = Box::new(route.into_operand().into_value());
        Operand::Value(Value::Each(start, Box::new(inner.into_value())))
    }

    /// A value that starts at the context node, started from each of these nodes instead.
    pub(super) fn starting_from(
        &mut self,
        value: Value,
        paths: &[Path],
        at: usize,
    ) -> Result<Value, Refused> {
        let nodes = || Operand::Union(paths.to_vec()).into_value();
        Ok(match value {
            Value::Nodes(path) if path == Path::CONTEXT => nodes(),
            Value::Nodes(path) if path.start == Start::Context => {
                let steps = walk_steps(&path.steps);
                Value::Walk(Box::new(Walk { start: nodes(), steps }))
            }
            Value::Union(parts) => match relative_paths(&parts, paths) {
                Some(rests) => Operand::Union(self.joined(paths, &rests, at)?).into_value(),
                None => Value::Each(Box::new(nodes()), Box::new(Value::Union(parts))),
            },
            Value::Walk(walk) => {
                let Walk { start, steps } = *walk;
                match self.starting_from(start, paths, at)? {
                    Value::Walk(mut before) => {
                        before.steps.extend(steps);
                        Value::Walk(before)
                    }
                    start => Value::Walk(Box::new(Walk { start, steps })),
                }
            }
            Value::Each(start, each) => Value::Each(Box::new(self.starting_from(*start, paths, at)?), each),
            value => Value::Each(Box::new(nodes()), Box::new(value)),
        })
    }
}

/// A sequence of nodes as nodes: a step starts from each of them once.
pub(super) fn nodes_of(operand: Operand<'_>) -> Operand<'_> {
    match operand {
        Operand::Sequence(operands)
            if !operands.is_empty() && operands.iter().all(|operand| operand.kind() == Kind::Nodes) =>
        {
            union_of(operands)
        }
        operand => operand,
    }
}

/// Whether the steps of one path can follow those of all others.
pub(super) fn is_joinable(paths: &[Path], rest: &Path) -> bool {
    rest.start == Start::Context && (rest.steps.is_empty() || paths.iter().all(|path| !path.ends_in_leaf()))
}

/// The parts of a union, if they are paths that can follow all of these.
fn relative_paths(parts: &[Value], paths: &[Path]) -> Option<Vec<Path>> {
    let relative = |part: &Value| match part {
        Value::Nodes(path) if is_joinable(paths, path) => Some(path.clone()),
        _ => None,
    };
    parts.iter().map(relative).collect()
}
