//! The four declarations: elements, attribute lists, entities and notations.

use std::collections::BTreeSet;

use super::input::{Input, Problem};
use super::literals::{DefaultValue, Surroundings, attribute_value, collapse_spaces, entity_value};
use super::model::{Content, Occurrence, Particle, ParticleKind};
use super::parser::Parser;
use super::{
    AttributeDeclaration, AttributeDefault, AttributeType, Entity, EntityKind, ExternalId, unread_entity,
};
use crate::error::{Exceeded, ReadError};

/// The deepest nesting of content models, independent of `Limits::depth`: they are read recursively.
const MODEL_DEPTH: usize = 512;

impl<'a> Parser<'a> {
    // --- elements ---

    pub fn element(&mut self, floor: usize) -> Result<(), ReadError> {
        self.require_space(floor, "after `<!ELEMENT`")?;
        let name = self.input.name("the name of an element")?;
        self.require_space(floor, "after the name of an element")?;
        let content = if self.input.eat("EMPTY") {
            Content::Empty
        } else if self.input.eat("ANY") {
            Content::Any
        } else {
            self.input.expect("(", "to begin a content model, `EMPTY` or `ANY`")?;
            self.space(floor)?;
            if self.input.eat("#PCDATA") {
                Content::Mixed(self.mixed(floor)?)
            } else {
                Content::Children(self.group(floor, 1)?)
            }
        };
        self.space(floor)?;
        self.input.expect(">", "to end an element declaration")?;
        self.dtd.elements.declare(name, content);
        Ok(())
    }

    fn mixed(&mut self, floor: usize) -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        self.space(floor)?;
        while self.input.eat("|") {
            self.space(floor)?;
            names.push(self.input.name("the name of an element")?);
            self.space(floor)?;
        }
        self.input.expect(")", "to end a content model")?;
        if !self.input.eat("*") && !names.is_empty() {
            return Err(self.input.unexpected("`*` after a model of text and elements"));
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    /// Reads a group after its `(`.
    fn group(&mut self, floor: usize, depth: usize) -> Result<Particle, ReadError> {
        let limit = self.limits.depth.min(MODEL_DEPTH);
        if depth > limit {
            return Err(self.input.error(Problem {
                code: "depth-limit",
                reason: format!("a content model is nested {depth} levels deep where {limit} are allowed"),
                exceeded: Some(Exceeded { value: depth as u64, limit: limit as u64 }),
            }));
        }
        let mut parts = Vec::new();
        let mut separator = None;
        loop {
            self.space(floor)?;
            parts.push(if self.input.eat("(") {
                self.group(floor, depth + 1)?
            } else {
                let kind = ParticleKind::Name(self.input.name("the name of an element or `(`")?);
                Particle { kind, occurrence: self.occurrence() }
            });
            self.space(floor)?;
            if self.input.eat(")") {
                break;
            }
            let wanted = match separator {
                None if self.input.starts_with("|") => "|",
                None => ",",
                Some(separator) => separator,
            };
            self.input.expect(wanted, "or `)` in a content model")?;
            separator = Some(wanted);
        }
        let kind =
            if separator == Some("|") { ParticleKind::Choice(parts) } else { ParticleKind::Sequence(parts) };
        Ok(Particle { kind, occurrence: self.occurrence() })
    }

    fn occurrence(&mut self) -> Occurrence {
        if self.input.eat("?") {
            Occurrence::Optional
        } else if self.input.eat("*") {
            Occurrence::Repeated
        } else if self.input.eat("+") {
            Occurrence::AtLeastOnce
        } else {
            Occurrence::Once
        }
    }

    // --- attributes ---

    pub fn attributes(&mut self, floor: usize) -> Result<(), ReadError> {
        self.require_space(floor, "after `<!ATTLIST`")?;
        let element = self.input.name("the name of an element")?;
        loop {
            let spaced = self.space(floor)?;
            if self.input.eat(">") {
                break;
            }
            if !spaced {
                return Err(self.input.unexpected("white space or `>` in an attribute declaration"));
            }
            let name = self.input.name("the name of an attribute")?;
            self.require_space(floor, "after the name of an attribute")?;
            let kind = self.attribute_type(floor)?;
            self.require_space(floor, "after the type of an attribute")?;
            let default = self.attribute_default(floor, &kind)?;
            if self.declarations_count {
                self.declare_attribute(&element, AttributeDeclaration { name, kind, default })?;
            }
        }
        if self.declarations_count {
            self.dtd.attributes.entry(&element);
        }
        Ok(())
    }

    fn declare_attribute(&mut self, element: &str, attribute: AttributeDeclaration) -> Result<(), ReadError> {
        let attributes = self.dtd.attributes.entry(element);
        if attributes.iter().any(|earlier| earlier.name == attribute.name) {
            return Ok(());
        }
        attributes.push(attribute);
        let (value, limit) = (attributes.len(), self.limits.attributes);
        if value > limit {
            return Err(self.input.error(Problem {
                code: "attributes-limit",
                reason: format!("`{element}` has {value} attributes declared where {limit} are allowed"),
                exceeded: Some(Exceeded { value: value as u64, limit: limit as u64 }),
            }));
        }
        Ok(())
    }

    fn attribute_type(&mut self, floor: usize) -> Result<AttributeType, ReadError> {
        if self.input.eat("(") {
            return Ok(AttributeType::Enumeration(self.tokens(floor, |input| input.nmtoken("a value"))?));
        }
        let mark = self.input.mark();
        Ok(match self.input.name("the type of an attribute")?.as_str() {
            "CDATA" => AttributeType::Cdata,
            "ID" => AttributeType::Id,
            "IDREF" => AttributeType::Idref,
            "IDREFS" => AttributeType::Idrefs,
            "ENTITY" => AttributeType::Entity,
            "ENTITIES" => AttributeType::Entities,
            "NMTOKEN" => AttributeType::Nmtoken,
            "NMTOKENS" => AttributeType::Nmtokens,
            "NOTATION" => {
                self.require_space(floor, "after `NOTATION`")?;
                self.input.expect("(", "to begin a list of notations")?;
                AttributeType::Notation(
                    self.tokens(floor, |input| input.plain_name("the name of a notation"))?,
                )
            }
            other => {
                let reason = format!("`{other}` is not an attribute type");
                self.input.back_to(mark);
                return Err(self.input.error(Problem::new("bad-declaration", reason)));
            }
        })
    }

    /// Reads the rest of a list in parentheses, separated by `|`.
    fn tokens(
        &mut self,
        floor: usize,
        token: impl Fn(&mut Input<'a>) -> Result<String, ReadError>,
    ) -> Result<Vec<String>, ReadError> {
        let mut tokens = Vec::new();
        loop {
            self.space(floor)?;
            tokens.push(token(&mut self.input)?);
            self.space(floor)?;
            if self.input.eat(")") {
                return Ok(tokens);
            }
            self.input.expect("|", "or `)` in a list of values")?;
        }
    }

    fn attribute_default(
        &mut self,
        floor: usize,
        kind: &AttributeType,
    ) -> Result<AttributeDefault, ReadError> {
        if self.input.eat("#REQUIRED") {
            return Ok(AttributeDefault::Required);
        }
        if self.input.eat("#IMPLIED") {
            return Ok(AttributeDefault::Implied);
        }
        let fixed = self.input.eat("#FIXED");
        if fixed {
            self.require_space(floor, "after `#FIXED`")?;
        }
        let mark = self.input.mark();
        let literal = self.input.quoted("the default of an attribute")?;
        let surroundings =
            Surroundings { prolog: self.prolog, outside: self.is_outside(), raw: self.input.is_raw() };
        let value = attribute_value(&self.dtd, &surroundings, &literal, &mut self.budget)
            .and_then(|value| self.skip_unread(value))
            .map_err(|problem| {
                self.input.back_to(mark);
                self.input.error(problem)
            })?;
        let value = if kind.is_tokenized() { collapse_spaces(&value) } else { value };
        Ok(if fixed { AttributeDefault::Fixed(value) } else { AttributeDefault::Value(value) })
    }

    /// The text of a default. Counts the references that it lacks because their entities were not read, or refuses
    /// them. They do not matter in a DTD file, and in declarations that are ignored.
    fn skip_unread(&mut self, value: DefaultValue) -> Result<String, Problem> {
        if let Some(name) = value.unread.first()
            && self.resolve.is_none()
            && self.declarations_count
        {
            if !self.limits.skip_unread_entities {
                return Err(Problem::new("unread-entity", unread_entity(name)));
            }
            self.dtd.skipped_entities += value.unread.len() as u32;
        }
        Ok(value.text)
    }

    /// Whether this is in a parameter entity or an external subset.
    fn is_outside(&self) -> bool {
        self.resolve.is_some() || self.input.depth() > 1
    }

    // --- entities and notations ---

    pub fn entity(&mut self, floor: usize) -> Result<(), ReadError> {
        let outside = self.is_outside();
        self.require_space(floor, "after `<!ENTITY`")?;
        let parameter = self.input.eat("%");
        if parameter {
            self.require_space(floor, "after `%`")?;
        }
        let name = self.input.plain_name("the name of an entity")?;
        self.require_space(floor, "after the name of an entity")?;
        let kind = if self.input.starts_with("\"") || self.input.starts_with("'") {
            let mark = self.input.mark();
            let literal = self.input.quoted("the value of an entity")?;
            match entity_value(self, &literal) {
                Ok(text) => EntityKind::Internal(text.into()),
                Err(problem) => {
                    self.input.back_to(mark);
                    return Err(self.input.error(problem));
                }
            }
        } else {
            let id = self.external_id(floor, "the value of an entity, `SYSTEM` or `PUBLIC`")?;
            let spaced = self.space(floor)?;
            if !parameter && spaced && self.input.eat("NDATA") {
                self.require_space(floor, "after `NDATA`")?;
                EntityKind::Unparsed(id, self.input.plain_name("the name of a notation")?)
            } else {
                EntityKind::External(id)
            }
        };
        self.space(floor)?;
        self.input.expect(">", "to end an entity declaration")?;
        if self.declarations_count {
            let table = if parameter { &mut self.dtd.parameter_entities } else { &mut self.dtd.entities };
            table.declare(name, Entity { kind, outside });
        }
        Ok(())
    }

    fn external_id(&mut self, floor: usize, wanted: &str) -> Result<ExternalId, ReadError> {
        let public = if self.input.eat("PUBLIC") {
            self.require_space(floor, "after `PUBLIC`")?;
            let public = self.public_literal()?;
            self.require_space(floor, "after a public identifier")?;
            Some(public)
        } else if self.input.eat("SYSTEM") {
            self.require_space(floor, "after `SYSTEM`")?;
            None
        } else {
            return Err(self.input.unexpected(wanted));
        };
        Ok(ExternalId { public, system: Some(self.input.quoted("a system identifier")?) })
    }

    fn public_literal(&mut self) -> Result<String, ReadError> {
        let mark = self.input.mark();
        let public = self.input.quoted("a public identifier")?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || " \r\n-'()+,./:=?;!*#@$_%".contains(c);
        if let Some(c) = public.chars().find(|&c| !allowed(c)) {
            self.input.back_to(mark);
            let reason = format!("`{c}` is not allowed in a public identifier");
            return Err(self.input.error(Problem::new("bad-declaration", reason)));
        }
        Ok(public.split([' ', '\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
    }

    pub fn notation(&mut self, floor: usize) -> Result<(), ReadError> {
        self.require_space(floor, "after `<!NOTATION`")?;
        let name = self.input.plain_name("the name of a notation")?;
        self.require_space(floor, "after the name of a notation")?;
        let id = if self.input.eat("PUBLIC") {
            self.require_space(floor, "after `PUBLIC`")?;
            let public = Some(self.public_literal()?);
            let spaced = self.space(floor)?;
            let system = match self.input.peek() {
                Some('"' | '\'') if spaced => Some(self.input.quoted("a system identifier")?),
                _ => None,
            };
            ExternalId { public, system }
        } else {
            self.external_id(floor, "`SYSTEM` or `PUBLIC`")?
        };
        self.space(floor)?;
        self.input.expect(">", "to end a notation declaration")?;
        self.dtd.notations.declare(name, id);
        Ok(())
    }
}
