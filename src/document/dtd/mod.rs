//! The DTD reader, for internal subsets and for DTD files.
//!
//! ```text
//! <!ENTITY % inline "em | code">
//! <!ELEMENT p (#PCDATA | %inline;)*>     elements: p → Mixed(em, code)
//! <!ATTLIST p lang CDATA "en">           attributes: p → lang, default `en`
//! ```
//!
//! The parser reads from a stack of texts: `%inline;` pushes the replacement text `em | code`, and the
//! end of that text pops it. So the declarations never see a reference.
//!
//! It enforces every well-formedness rule of declarations (XML 1.0, fifth edition, §2.8, §3.2–3.4 and
//! §4.2–4.5), and of the validity rules two: a declaration and a conditional section end in the entity
//! they began in.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | the result, `Dtd`, and the two entry points |
//! | `model.rs` | content models and the cardinalities they imply |
//! | `input.rs` | the text being read: a stack of entities, tokens, errors with their position |
//! | `parser.rs` | the loop over declarations; parameter entities, conditional sections, comments |
//! | `declarations.rs` | the four declarations |
//! | `literals.rs` | entity values and attribute defaults |
//! | `json.rs` | a DTD's elements as JSON, for Python |

mod declarations;
mod input;
mod json;
mod literals;
mod model;
mod parser;
#[cfg(test)]
mod tests;

pub use model::{Cardinality, Content, Occurrence, Particle, ParticleKind};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::ReadError;
use crate::limits::Limits;
use parser::Parser;

/// The parts of the prolog that change how an internal subset is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prolog {
    /// `standalone="yes"`.
    pub standalone: bool,
    /// The DOCTYPE names an external subset (which is never fetched).
    pub external: bool,
}

/// Reads an internal subset. `start` is just after `[`; the offset returned is that of the closing `]`.
pub fn read_internal(
    source: &[u8],
    start: usize,
    prolog: Prolog,
    limits: &Limits,
) -> Result<(Dtd, usize), ReadError> {
    Parser::internal(source, start, prolog, limits).read()
}

/// Returns the bytes of an external parameter entity by its system identifier, if the caller has them.
pub type Resolve<'a> = dyn Fn(&str) -> Option<Vec<u8>> + 'a;

/// Reads a DTD file. `resolve` provides external parameter entities, because the kernel does no I/O. If it
/// does not have one, the error names its system identifier.
pub fn read_external(text: &[u8], limits: &Limits, resolve: &Resolve) -> Result<Dtd, ReadError> {
    let text = input::decode(text, limits)?;
    Ok(Parser::external(&text, limits, resolve).read()?.0)
}

/// The declarations of a DTD. The first declaration of a name wins.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dtd {
    pub elements: Table<Content>,
    /// By element, declared or not; in the order of declaration.
    pub attributes: Table<Vec<AttributeDeclaration>>,
    pub entities: Table<Entity>,
    pub parameter_entities: Table<Entity>,
    pub notations: Table<ExternalId>,
    /// Whether there are references to parameter entities. If so, or if there is an external subset, an
    /// entity that is not declared may be declared in a part that was not read.
    pub has_parameter_references: bool,
    /// Bytes that entities have added so far; `Limits::expansion` bounds them.
    pub expanded: usize,
    /// References in attribute defaults to entities that were not read, which are left out.
    pub skipped_entities: u32,
}

/// Why a reference to an entity that was not read is refused.
pub(super) fn unread_entity(name: &str) -> String {
    format!(
        "the entity {name} is in an external part of the DTD, which is not read; declare it in the message, or switch skip_unread_entities on to leave it out"
    )
}

impl Dtd {
    /// The attributes declared for an element.
    pub fn attributes_of(&self, element: &[u8]) -> &[AttributeDeclaration] {
        self.attributes.get(element).map_or(&[], |attributes| attributes)
    }

    /// The element graph: which elements an element may contain and how often, in the order of its content
    /// model.
    pub fn children_of(&self, element: &[u8]) -> Vec<(&str, Cardinality)> {
        match self.elements.get(element) {
            None | Some(Content::Empty) => Vec::new(),
            Some(Content::Any) => self.elements.iter().map(|(name, _)| (name, Cardinality::ANY)).collect(),
            Some(Content::Mixed(names)) => {
                names.iter().map(|name| (name.as_str(), Cardinality::ANY)).collect()
            }
            Some(Content::Children(particle)) => particle.cardinalities(),
        }
    }

    /// Elements that no other element contains: the possible root elements. If every element is contained
    /// in another one (a recursive root), all of them.
    pub fn roots(&self) -> Vec<&str> {
        let mut below: Vec<&str> = Vec::new();
        for (parent, content) in self.elements.iter() {
            if *content != Content::Any {
                let children = self.children_of(parent.as_bytes());
                below.extend(children.into_iter().map(|(name, _)| name).filter(|&name| name != parent));
            }
        }
        below.sort_unstable();
        let names = || self.elements.iter().map(|(name, _)| name);
        let roots: Vec<&str> = names().filter(|name| below.binary_search(name).is_err()).collect();
        if roots.is_empty() { names().collect() } else { roots }
    }
}

/// `SYSTEM` and `PUBLIC` identifiers; a notation may have the public one alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExternalId {
    pub public: Option<String>,
    pub system: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entity {
    pub kind: EntityKind,
    /// Declared in a parameter entity or an external subset: a standalone document may not refer to it.
    pub outside: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntityKind {
    /// The replacement text: character and parameter-entity references are already replaced,
    /// references to general entities are not (§4.5).
    Internal(Arc<str>),
    External(ExternalId),
    /// External, with `NDATA` and the notation's name.
    Unparsed(ExternalId, String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeDeclaration {
    pub name: String,
    pub kind: AttributeType,
    pub default: AttributeDefault,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttributeType {
    Cdata,
    Id,
    Idref,
    Idrefs,
    Entity,
    Entities,
    Nmtoken,
    Nmtokens,
    Notation(Vec<String>),
    Enumeration(Vec<String>),
}

impl AttributeType {
    /// The keyword, or `enumeration`, which has none.
    pub fn keyword(&self) -> &'static str {
        match self {
            AttributeType::Cdata => "CDATA",
            AttributeType::Id => "ID",
            AttributeType::Idref => "IDREF",
            AttributeType::Idrefs => "IDREFS",
            AttributeType::Entity => "ENTITY",
            AttributeType::Entities => "ENTITIES",
            AttributeType::Nmtoken => "NMTOKEN",
            AttributeType::Nmtokens => "NMTOKENS",
            AttributeType::Notation(_) => "NOTATION",
            AttributeType::Enumeration(_) => "enumeration",
        }
    }

    /// Whether values are tokens: normalising them also trims and collapses spaces (§3.3.3).
    pub fn is_tokenized(&self) -> bool {
        *self != AttributeType::Cdata
    }
}

/// The value of a default is normalised for the attribute's type, entities replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttributeDefault {
    Required,
    Implied,
    Fixed(String),
    Value(String),
}

impl AttributeDefault {
    /// The value of the attribute where an element does not have it.
    pub fn value(&self) -> Option<&str> {
        match self {
            AttributeDefault::Required | AttributeDefault::Implied => None,
            AttributeDefault::Fixed(value) | AttributeDefault::Value(value) => Some(value),
        }
    }
}

/// Declarations by name, in the order of declaration. A tree and not a hash table: the sender of a message
/// chooses the names, and names cannot be made to collide in a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Table<T> {
    entries: Vec<(String, T)>,
    by_name: BTreeMap<Box<[u8]>, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), by_name: BTreeMap::new() }
    }
}

impl<T> Table<T> {
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        self.by_name.get(name).map(|&at| &self.entries[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The index of a name.
    fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name.as_bytes()).copied()
    }

    fn at(&self, position: usize) -> (&str, &T) {
        let (name, value) = &self.entries[position];
        (name, value)
    }

    /// Adds a declaration, unless the name is declared already.
    fn declare(&mut self, name: String, value: T) {
        if !self.by_name.contains_key(name.as_bytes()) {
            self.by_name.insert(name.as_bytes().into(), self.entries.len());
            self.entries.push((name, value));
        }
    }
}

impl<T: Default> Table<T> {
    fn entry(&mut self, name: &str) -> &mut T {
        let at = match self.position(name) {
            Some(at) => at,
            None => {
                self.declare(name.to_owned(), T::default());
                self.entries.len() - 1
            }
        };
        &mut self.entries[at].1
    }
}
