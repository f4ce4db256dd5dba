//! Constant folding: values that do not depend on the message, or would not if certain node sets were empty.

use std::borrow::Cow;

use super::ast::{Expr, Literal, Operator};
use super::atomic::Atomic;
use super::functions;
use super::moment;
use super::number::number;
use super::pattern::Pattern;
use super::picture::Picture;
use super::value::{Function, Kind, Value};

/// A value that does not depend on the message.
pub enum Constant<'v> {
    Empty,
    Number(f64),
    Text(Cow<'v, [u8]>),
    Boolean(bool),
}

impl<'v> Constant<'v> {
    pub fn boolean(&self) -> bool {
        match self {
            Constant::Empty => false,
            Constant::Number(number) => *number != 0.0 && !number.is_nan(),
            Constant::Text(text) => !text.is_empty(),
            Constant::Boolean(boolean) => *boolean,
        }
    }

    fn number(&self) -> f64 {
        match self {
            Constant::Empty => f64::NAN,
            Constant::Number(number) => *number,
            Constant::Text(text) => number(text),
            Constant::Boolean(boolean) => f64::from(u8::from(*boolean)),
        }
    }

    fn text(self) -> Cow<'v, [u8]> {
        match self {
            Constant::Empty => Cow::Borrowed(b""),
            Constant::Number(number) => Cow::Owned(functions::number_text(number).into_bytes()),
            Constant::Text(text) => text,
            Constant::Boolean(boolean) => Cow::Borrowed(if boolean { b"true" } else { b"false" }),
        }
    }
}

/// The value if the node sets that `empty` names are empty; `None` if it depends on more of the message.
pub fn constant<'v>(value: &'v Value, empty: &dyn Fn(&Value) -> bool) -> Option<Constant<'v>> {
    Some(match value {
        _ if value.kind() == Kind::Nodes => empty(value).then_some(Constant::Empty)?,
        Value::Literal(Literal::Number(number)) => Constant::Number(*number),
        Value::Literal(Literal::Text(text)) => Constant::Text(Cow::Borrowed(text.as_bytes())),
        Value::Condition(expr) if *expr == Expr::TRUE => Constant::Boolean(true),
        Value::Condition(expr) if *expr == Expr::FALSE => Constant::Boolean(false),
        Value::Negative(operand) => Constant::Number(-constant(operand, empty)?.number()),
        Value::Arithmetic(operation, left, right) => {
            let (left, right) = (constant(left, empty)?.number(), constant(right, empty)?.number());
            Constant::Number(operation.of(left, right))
        }
        Value::Compare(operator, left, right) => compare(*operator, left, right, empty)?,
        Value::Call(function, arguments) => call(*function, arguments, empty)?,
        Value::Sequence(values) => match values.iter().all(|value| is_empty(value, empty)) {
            true => Constant::Empty,
            false => return None,
        },
        Value::Each(start, _) | Value::Filter(start, _) if is_empty(start, empty) => Constant::Empty,
        Value::Castable { operand, may_be_empty, .. } if is_empty(operand, empty) => {
            Constant::Boolean(*may_be_empty)
        }
        _ => return None,
    })
}

fn is_empty(value: &Value, empty: &dyn Fn(&Value) -> bool) -> bool {
    matches!(constant(value, empty), Some(Constant::Empty))
}

fn compare<'v>(
    operator: Operator,
    left: &'v Value,
    right: &'v Value,
    empty: &dyn Fn(&Value) -> bool,
) -> Option<Constant<'v>> {
    let (one, other) = (constant(left, empty), constant(right, empty));
    let is_boolean = left.kind() == Kind::Boolean || right.kind() == Kind::Boolean;
    if !is_boolean && matches!((&one, &other), (Some(Constant::Empty), _) | (_, Some(Constant::Empty))) {
        // No node of an empty set passes a comparison.
        return Some(Constant::Boolean(false));
    }
    let (one, other) = (one?, other?);
    let holds = match operator {
        Operator::Equal | Operator::NotEqual => {
            let equal = if is_boolean {
                one.boolean() == other.boolean()
            } else if left.kind() == Kind::Number || right.kind() == Kind::Number {
                one.number() == other.number()
            } else {
                one.text() == other.text()
            };
            equal == (operator == Operator::Equal)
        }
        _ if is_boolean && matches!((&one, &other), (Constant::Empty, _) | (_, Constant::Empty)) => {
            operator.holds(f64::from(u8::from(one.boolean())), f64::from(u8::from(other.boolean())))
        }
        _ => operator.holds(one.number(), other.number()),
    };
    Some(Constant::Boolean(holds))
}

fn call<'v>(
    function: Function,
    arguments: &'v [Value],
    empty: &dyn Fn(&Value) -> bool,
) -> Option<Constant<'v>> {
    let argument = |place: usize| constant(&arguments[place], empty);
    let text = |place: usize| argument(place).map(Constant::text);
    let number = |place: usize| argument(place).map(|argument| argument.number());
    let owned = |text: &[u8]| Constant::Text(Cow::Owned(text.to_vec()));
    Some(match function {
        Function::Count | Function::Sum => match argument(0)? {
            Constant::Empty => Constant::Number(0.0),
            _ => return None,
        },
        Function::LocalName | Function::NamespaceUri | Function::Name | Function::String => {
            Constant::Text(text(0)?)
        }
        Function::Concat => {
            let parts: Option<Vec<_>> = (0..arguments.len()).map(text).collect();
            owned(&parts?.concat())
        }
        Function::StartsWith => Constant::Boolean(text(0)?.starts_with(&text(1)?)),
        Function::Contains => Constant::Boolean(memchr::memmem::find(&text(0)?, &text(1)?).is_some()),
        Function::SubstringBefore => owned(functions::substring_before(&text(0)?, &text(1)?)),
        Function::SubstringAfter => owned(functions::substring_after(&text(0)?, &text(1)?)),
        Function::Substring => {
            let length = if arguments.len() > 2 { Some(number(2)?) } else { None };
            owned(functions::substring(&text(0)?, number(1)?, length))
        }
        Function::StringLength => Constant::Number(functions::length(&text(0)?) as f64),
        Function::NormalizeSpace => owned(&functions::normalize_space(&text(0)?)),
        Function::Translate => {
            Constant::Text(Cow::Owned(functions::translate(&text(0)?, &text(1)?, &text(2)?)))
        }
        Function::Number => Constant::Number(number(0)?),
        Function::Floor => Constant::Number(number(0)?.floor()),
        Function::Ceiling => Constant::Number(number(0)?.ceil()),
        Function::Round => Constant::Number(functions::round(number(0)?)),
        Function::Date => Constant::Number(moment::date(&text(0)?)),
        Function::DateTime => Constant::Number(moment::date_time(&text(0)?)),
        Function::Exists => Constant::Boolean(!matches!(argument(0)?, Constant::Empty)),
        Function::Empty => Constant::Boolean(matches!(argument(0)?, Constant::Empty)),
        Function::EndsWith => Constant::Boolean(text(0)?.ends_with(&text(1)?)),
        Function::LowerCase => Constant::Text(Cow::Owned(functions::lower_case(&text(0)?))),
        Function::UpperCase => Constant::Text(Cow::Owned(functions::upper_case(&text(0)?))),
        // Patterns are not compiled for this.
        Function::Matches if text(0)?.is_empty() => {
            Constant::Boolean(Pattern::of_arguments(arguments, 1, 2)?.matches_empty)
        }
        Function::Replace if text(0)?.is_empty() => Constant::Text(Cow::Borrowed(b"")),
        Function::Tokenize if text(0)?.is_empty() => Constant::Empty,
        Function::Min | Function::Max | Function::Avg | Function::DistinctValues => match argument(0)? {
            Constant::Empty => Constant::Empty,
            _ => return None,
        },
        Function::StringJoin => match argument(0)? {
            Constant::Empty => Constant::Text(Cow::Borrowed(b"")),
            _ => return None,
        },
        Function::Abs => Constant::Number(number(0)?.abs()),
        Function::Integer => Constant::Number(Atomic::Integer.number_of(&text(0)?)),
        Function::Decimal => Constant::Number(Atomic::Decimal.number_of(&text(0)?)),
        Function::Double => Constant::Number(Atomic::Double.number_of(&text(0)?)),
        Function::Matches | Function::Replace | Function::Tokenize => return None,
        Function::Last | Function::Position | Function::Lang => return None,
        Function::Doc | Function::Collection => return None,
        Function::FormatNumber => {
            let picture = text(1)?;
            let picture = Picture::parse(std::str::from_utf8(&picture).ok()?).ok()?;
            owned(picture.format(number(0)?).as_bytes())
        }
    })
}
