//! Literals: entity values and attribute defaults, with the references in them replaced. An entity may nest
//! as deep as a message is long, so the texts being expanded are on an explicit stack.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::input::{Budget, Problem};
use super::parser::Parser;
use super::{Dtd, EntityKind, Prolog};
use crate::util::xml_chars::{is_char, is_name_char, is_name_start};

/// The five entities every document has. Declaring them again changes nothing.
pub(super) fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

/// A reference at the start of a text.
enum Reference<'a> {
    Character(char),
    Entity(&'a str),
}

/// Reads `&…;` at the start of `text`; returns the reference and its length.
fn reference(text: &str) -> Result<(Reference<'_>, usize), Problem> {
    let malformed = || {
        let shown: String = text.chars().take(12).collect();
        Problem::new("bad-reference", format!("`{shown}` is not a reference; write a literal `&` as `&amp;`"))
    };
    let end = text.find(';').ok_or_else(malformed)?;
    let body = &text[1..end];
    if let Some(number) = body.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix('x') {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        // `from_str_radix` accepts a sign; a reference has none.
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(malformed());
        }
        let c = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).filter(|&c| is_char(c));
        let c = c.ok_or_else(|| {
            let shown: String = body.chars().take(12).collect();
            Problem::new(
                "illegal-character",
                format!("`&{shown};` is a character that is not allowed in XML"),
            )
        })?;
        return Ok((Reference::Character(c), end + 1));
    }
    Ok((Reference::Entity(entity_name(body).ok_or_else(malformed)?), end + 1))
}

/// Names of entities have no colon.
fn entity_name(text: &str) -> Option<&str> {
    let is_part = |c| is_name_char(c) && c != ':';
    (text.starts_with(is_name_start) && text.chars().all(is_part)).then_some(text)
}

/// One of the texts being expanded.
struct Open {
    text: Arc<str>,
    at: usize,
    /// Its index among the entities; `None` for the literal itself.
    entity: Option<usize>,
}

/// The texts being expanded, innermost last.
struct Nesting {
    open: Vec<Open>,
    is_open: BTreeSet<usize>,
}

impl Nesting {
    fn new(literal: &str) -> Nesting {
        let open = vec![Open { text: literal.into(), at: 0, entity: None }];
        Nesting { open, is_open: BTreeSet::new() }
    }

    fn enter(&mut self, name: &str, entity: usize, text: &Arc<str>) -> Result<(), Problem> {
        if !self.is_open.insert(entity) {
            return Err(Problem::new("entity-recursion", format!("the entity `{name}` contains itself")));
        }
        self.open.push(Open { text: Arc::clone(text), at: 0, entity: Some(entity) });
        Ok(())
    }

    fn leave(&mut self) {
        if let Some(entity) = self.open.pop().and_then(|open| open.entity) {
            self.is_open.remove(&entity);
        }
    }
}

/// The replacement text of an internal entity (§4.5): character and parameter-entity references are
/// replaced, references to general entities stay, line ends are normalised to `\n`.
pub(super) fn entity_value(parser: &mut Parser, literal: &str) -> Result<String, Problem> {
    let references_allowed = parser.input.is_external();
    let raw = parser.input.is_raw();
    let mut value = String::with_capacity(literal.len());
    let mut nesting = Nesting::new(literal);
    while let Some(Open { text, at, .. }) = nesting.open.last_mut() {
        let rest = &text[*at..];
        let raw = raw && nesting.is_open.is_empty();
        let Some(c) = rest.chars().next() else {
            nesting.leave();
            continue;
        };
        match c {
            '&' => {
                let (found, length) = reference(rest)?;
                match found {
                    Reference::Character(c) => value.push(c),
                    Reference::Entity(_) => value.push_str(&rest[..length]),
                }
                *at += length;
            }
            '%' => {
                let name =
                    rest[1..].split_once(';').and_then(|(name, _)| entity_name(name)).ok_or_else(|| {
                        Problem::new("bad-reference", "write a literal `%` in an entity's value as `&#37;`")
                    })?;
                if !references_allowed {
                    return Err(inside_declaration());
                }
                let name = name.to_owned();
                *at += name.len() + 2;
                if let Some((entity, text, _)) = parser.parameter_entity(&name)? {
                    if parser.is_open(entity) {
                        let reason = format!("the parameter entity `{name}` contains itself");
                        return Err(Problem::new("entity-recursion", reason));
                    }
                    nesting.enter(&name, entity, &text)?;
                }
            }
            '\r' if raw => {
                value.push('\n');
                *at += if rest.as_bytes().get(1) == Some(&b'\n') { 2 } else { 1 };
            }
            _ => {
                let length = rest.find(['&', '%', '\r']).unwrap_or(rest.len()).max(c.len_utf8());
                value.push_str(&rest[..length]);
                *at += length;
            }
        }
    }
    Ok(value)
}

pub(super) fn inside_declaration() -> Problem {
    Problem::new(
        "parameter-reference",
        "in an internal subset, references to parameter entities are allowed only between declarations",
    )
}

/// The surroundings of a literal that change its value.
pub(super) struct Surroundings {
    pub prolog: Prolog,
    /// Whether the literal is in a parameter entity or an external subset.
    pub outside: bool,
    /// Whether line ends in the literal are not normalised yet.
    pub raw: bool,
}

/// A default, without the entities that were not read.
pub(super) struct DefaultValue {
    pub text: String,
    /// The names of these entities, once for each reference.
    pub unread: Vec<String>,
}

/// The normalised value of an attribute's default (§3.3.3); `collapse_spaces` completes tokenised types.
pub(super) fn attribute_value(
    dtd: &Dtd,
    surroundings: &Surroundings,
    literal: &str,
    budget: &mut Budget,
) -> Result<DefaultValue, Problem> {
    let mut value = String::with_capacity(literal.len());
    let mut unread = Vec::new();
    let mut nesting = Nesting::new(literal);
    while let Some(Open { text, at, entity }) = nesting.open.last_mut() {
        let rest = &text[*at..];
        let Some(c) = rest.chars().next() else {
            nesting.leave();
            continue;
        };
        match c {
            '<' => {
                return Err(Problem::new(
                    "less-than-in-attribute",
                    "`<` is not allowed in an attribute value; write `&lt;`",
                ));
            }
            '&' => {
                let (found, length) = reference(rest)?;
                *at += length;
                match found {
                    Reference::Character(c) => value.push(c),
                    Reference::Entity(name) => {
                        if let Some(c) = predefined(name) {
                            value.push(c);
                        } else if let Some((entity, text)) = general_entity(dtd, surroundings, name)? {
                            budget.spend(text.len())?;
                            let (name, text) = (name.to_owned(), Arc::clone(text));
                            nesting.enter(&name, entity, &text)?;
                        } else {
                            unread.push(name.to_owned());
                        }
                    }
                }
            }
            ' ' | '\t' | '\n' | '\r' => {
                value.push(' ');
                let pair = surroundings.raw && entity.is_none() && rest.starts_with("\r\n");
                *at += if pair { 2 } else { 1 };
            }
            c => {
                value.push(c);
                *at += c.len_utf8();
            }
        }
    }
    Ok(DefaultValue { text: value, unread })
}

/// The text of an entity that a default refers to; `None` if it may be declared in a part that was not
/// read.
fn general_entity<'a>(
    dtd: &'a Dtd,
    surroundings: &Surroundings,
    name: &str,
) -> Result<Option<(usize, &'a Arc<str>)>, Problem> {
    let Surroundings { prolog, outside, .. } = *surroundings;
    let must_be_declared = prolog.standalone || !(prolog.external || dtd.has_parameter_references);
    let Some(position) = dtd.entities.position(name) else {
        if !must_be_declared {
            return Ok(None);
        }
        return Err(Problem::new(
            "undeclared-entity",
            format!("the entity `{name}` is not declared before this reference to it"),
        ));
    };
    let (_, entity) = dtd.entities.at(position);
    if prolog.standalone && entity.outside && !outside {
        return Err(Problem::new(
            "undeclared-entity",
            format!("the entity `{name}` is declared in a parameter entity, and the document is standalone"),
        ));
    }
    match &entity.kind {
        EntityKind::Internal(text) => Ok(Some((position, text))),
        EntityKind::External(_) => Err(Problem::new(
            "external-entity",
            format!("the entity `{name}` is external, which is not allowed in an attribute value"),
        )),
        EntityKind::Unparsed(..) => Err(Problem::new(
            "unparsed-entity",
            format!("the entity `{name}` is unparsed and cannot be referred to"),
        )),
    }
}

/// Trims, and collapses runs of spaces. Other white space comes from character references and stays.
pub(super) fn collapse_spaces(value: &str) -> String {
    value.split(' ').filter(|token| !token.is_empty()).collect::<Vec<_>>().join(" ")
}
