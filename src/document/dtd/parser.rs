//! The loop over the declarations of a DTD, `Parser::read`, and what is allowed between them: references to
//! parameter entities, conditional sections, comments, processing instructions.
//!
//! Throughout, `floor` is the number of open texts where a declaration began. Within the declaration,
//! texts above the floor may be entered and left; it must end at the floor.
//!
//! ```text
//! <!ENTITY % model "(a, b)">
//! <!ELEMENT r %model;>
//!           floor = 1, `%model;` opens text 2, its end returns to 1, `>` ends the declaration
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::input::{Budget, Input, Problem, external_text};
use super::literals::inside_declaration;
use super::{Dtd, EntityKind, Prolog, Resolve};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::util::xml_chars::is_space;

pub(super) struct Parser<'a> {
    pub input: Input<'a>,
    pub dtd: Dtd,
    pub limits: Limits,
    pub prolog: Prolog,
    /// `None` for an internal subset: its external parameter entities are not read.
    pub resolve: Option<&'a Resolve<'a>>,
    /// The texts of external parameter entities that were read, by index.
    fetched: BTreeMap<usize, Arc<str>>,
    open_entities: BTreeSet<usize>,
    pub budget: Budget,
    /// For each open `INCLUDE` section, the number of open texts where it began.
    included: Vec<usize>,
    /// False after a reference to a parameter entity that was not read. That may contain earlier
    /// declarations, so later entity and attribute declarations are ignored (§5.1).
    pub declarations_count: bool,
}

impl<'a> Parser<'a> {
    pub fn internal(source: &'a [u8], start: usize, prolog: Prolog, limits: &Limits) -> Parser<'a> {
        Parser::new(Input::new(source, start, false, limits), prolog, None, limits)
    }

    pub fn external(text: &'a [u8], limits: &Limits, resolve: &'a Resolve<'a>) -> Parser<'a> {
        Parser::new(Input::new(text, 0, true, limits), Prolog::default(), Some(resolve), limits)
    }

    fn new(
        input: Input<'a>,
        prolog: Prolog,
        resolve: Option<&'a Resolve<'a>>,
        limits: &Limits,
    ) -> Parser<'a> {
        Parser {
            input,
            dtd: Dtd::default(),
            limits: *limits,
            prolog,
            resolve,
            fetched: Default::default(),
            open_entities: Default::default(),
            budget: Budget::new(limits),
            included: Vec::new(),
            declarations_count: true,
        }
    }

    /// Reads all declarations; returns the offset where they end.
    pub fn read(mut self) -> Result<(Dtd, usize), ReadError> {
        let internal = self.resolve.is_none();
        if !internal {
            self.input.text_declaration()?;
        }
        loop {
            self.separators()?;
            if self.input.at_end() {
                if !self.included.is_empty() {
                    return Err(self.input.unexpected("`]]>` to end a conditional section"));
                }
                if internal {
                    return Err(self.input.unexpected("a declaration or `]`"));
                }
                break;
            }
            let floor = self.input.depth();
            if self.included.last() == Some(&floor) && self.input.eat("]]>") {
                self.included.pop();
                continue;
            }
            if internal && floor == 1 && self.input.starts_with("]") {
                break;
            }
            self.declaration(floor)?;
            if self.input.depth() != floor {
                let reason = "a declaration must end in the parameter entity where it began";
                return Err(self.input.error(Problem::new("parameter-reference", reason)));
            }
        }
        self.dtd.expanded = self.budget.spent;
        Ok((self.dtd, self.input.offset()))
    }

    /// `DeclSep`: white space and references to parameter entities between declarations.
    fn separators(&mut self) -> Result<(), ReadError> {
        loop {
            self.input.eat_space();
            if self.input.at_parameter_reference() {
                self.enter()?;
            } else if self.input.at_end() && self.input.depth() > 1 {
                if self.included.last() == Some(&self.input.depth()) {
                    return Err(self.input.unexpected("`]]>` to end a conditional section"));
                }
                self.leave();
            } else {
                return Ok(());
            }
        }
    }

    fn declaration(&mut self, floor: usize) -> Result<(), ReadError> {
        if self.input.starts_with("<!--") {
            self.comment()
        } else if self.input.starts_with("<?") {
            self.instruction()
        } else if self.input.eat("<!ELEMENT") {
            self.element(floor)
        } else if self.input.eat("<!ATTLIST") {
            self.attributes(floor)
        } else if self.input.eat("<!ENTITY") {
            self.entity(floor)
        } else if self.input.eat("<!NOTATION") {
            self.notation(floor)
        } else if self.input.starts_with("<![") && (self.input.is_external() || floor > 1) {
            self.conditional(floor)
        } else {
            Err(self.input.unexpected("a declaration"))
        }
    }

    // --- parameter entities ---

    /// Skips white space inside a declaration. A parameter entity is expanded with a space on either side
    /// (§4.4.8), so entering or leaving one counts as white space.
    pub fn space(&mut self, floor: usize) -> Result<bool, ReadError> {
        let mut found = false;
        loop {
            found |= self.input.eat_space();
            if self.input.at_parameter_reference() {
                if !self.input.is_external() {
                    return Err(self.input.error(inside_declaration()));
                }
                self.enter()?;
            } else if self.input.at_end() && self.input.depth() > floor {
                self.leave();
            } else {
                return Ok(found);
            }
            found = true;
        }
    }

    pub fn require_space(&mut self, floor: usize, place: &str) -> Result<(), ReadError> {
        if self.space(floor)? { Ok(()) } else { Err(self.input.unexpected(&format!("white space {place}"))) }
    }

    /// Enters the parameter entity referred to here, if it can be read.
    fn enter(&mut self) -> Result<(), ReadError> {
        let mark = self.input.mark();
        self.input.eat("%");
        let name = self.input.plain_name("the name of a parameter entity")?;
        self.input.expect(";", "after the name of a parameter entity")?;
        let found = self.parameter_entity(&name).and_then(|found| match found {
            Some((entity, ..)) if self.is_open(entity) => {
                let reason = format!("the parameter entity `{name}` contains itself");
                Err(Problem::new("entity-recursion", reason))
            }
            found => Ok(found),
        });
        match found {
            Ok(Some((entity, text, from_outside))) => {
                self.input.enter(entity, text, from_outside, mark);
                self.open_entities.insert(entity);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(problem) => {
                self.input.back_to(mark);
                Err(self.input.error(problem))
            }
        }
    }

    fn leave(&mut self) {
        if let Some(entity) = self.input.leave() {
            self.open_entities.remove(&entity);
        }
    }

    pub fn is_open(&self, entity: usize) -> bool {
        self.open_entities.contains(&entity)
    }

    /// The index and text of a parameter entity, and whether the text is external; charged to the budget.
    /// `None` if it is not declared or must not be read; later declarations are then ignored.
    pub fn parameter_entity(&mut self, name: &str) -> Result<Option<(usize, Arc<str>, bool)>, Problem> {
        self.dtd.has_parameter_references = true;
        let Some(position) = self.dtd.parameter_entities.position(name) else {
            if self.resolve.is_some() {
                let reason = format!("the parameter entity `{name}` is not declared");
                return Err(Problem::new("undeclared-entity", reason));
            }
            self.declarations_count &= self.prolog.standalone;
            return Ok(None);
        };
        let (text, from_outside) = match &self.dtd.parameter_entities.at(position).1.kind {
            EntityKind::Internal(text) => (Arc::clone(text), false),
            EntityKind::External(id) | EntityKind::Unparsed(id, _) => {
                let Some(resolve) = self.resolve else {
                    self.declarations_count &= self.prolog.standalone;
                    return Ok(None);
                };
                if let Some(text) = self.fetched.get(&position) {
                    (Arc::clone(text), true)
                } else {
                    let system = id.system.clone().unwrap_or_default();
                    let text = self.fetch(name, &system, resolve)?;
                    self.fetched.insert(position, Arc::clone(&text));
                    (text, true)
                }
            }
        };
        self.budget.spend(text.len())?;
        Ok(Some((position, text, from_outside)))
    }

    fn fetch(&self, name: &str, system: &str, resolve: &Resolve) -> Result<Arc<str>, Problem> {
        let bytes = resolve(system).ok_or_else(|| {
            Problem::new(
                "unresolved-entity",
                format!("the parameter entity `{name}` is the external text `{system}`, which was not given"),
            )
        })?;
        let text = external_text(&bytes, &self.limits).map_err(|error| Problem {
            code: error.code,
            reason: format!("`{system}`: {error}"),
            exceeded: error.exceeded,
        })?;
        Ok(text.into())
    }

    // --- comments, instructions, conditional sections ---

    fn comment(&mut self) -> Result<(), ReadError> {
        let mark = self.input.mark();
        let text = self.input.delimited("<!--", "-->", "a comment")?;
        if text.contains("--") || text.ends_with('-') {
            self.input.back_to(mark);
            return Err(self.input.error(Problem::new("bad-comment", "`--` is not allowed in a comment")));
        }
        Ok(())
    }

    fn instruction(&mut self) -> Result<(), ReadError> {
        let mark = self.input.mark();
        self.input.eat("<?");
        let target = self.input.plain_name("the target of a processing instruction")?;
        if target.eq_ignore_ascii_case("xml") {
            self.input.back_to(mark);
            let reason = "`xml` is not allowed as the target of a processing instruction; a text declaration must come first";
            return Err(self.input.error(Problem::new("reserved-target", reason)));
        }
        let text = self.input.delimited("", "?>", "a processing instruction")?;
        if !text.is_empty() && !is_space(text.as_bytes()[0]) {
            self.input.back_to(mark);
            let reason = "white space is expected after the target of a processing instruction";
            return Err(self.input.error(Problem::new("bad-declaration", reason)));
        }
        Ok(())
    }

    /// Opens `<![INCLUDE[`, which the loop of `read` closes; skips `<![IGNORE[…]]>` entirely.
    fn conditional(&mut self, floor: usize) -> Result<(), ReadError> {
        self.input.eat("<![");
        self.space(floor)?;
        let keyword = self.input.name("`INCLUDE` or `IGNORE`")?;
        self.space(floor)?;
        self.input.expect("[", "in a conditional section")?;
        match keyword.as_str() {
            "INCLUDE" => {
                self.included.push(floor);
                Ok(())
            }
            "IGNORE" => self.skip_ignored(),
            _ => {
                let reason = format!("`{keyword}` where `INCLUDE` or `IGNORE` is expected");
                Err(self.input.error(Problem::new("bad-declaration", reason)))
            }
        }
    }

    fn skip_ignored(&mut self) -> Result<(), ReadError> {
        let mut depth = 1;
        while depth > 0 {
            match self.input.skip_to(&["<![", "]]>"])? {
                Some(0) => depth += 1,
                Some(_) => depth -= 1,
                None => return Err(self.input.unexpected("`]]>` to end a conditional section")),
            }
            let _ = self.input.eat("<![") || self.input.eat("]]>");
        }
        Ok(())
    }
}
