//! Paths to the values of records: of elements, attributes or text nodes.

use crate::document::Vocabulary;
use crate::ids::{NameId, TagPathId};

/// A path to elements, attributes or text nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeafPath {
    pub elements: TagPathId,
    /// `NONE`: the elements themselves, and their text nodes.
    pub attribute: NameId,
}

/// Which nodes a step of a key's path selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyTest {
    Element,
    Attribute,
    Text,
}

/// A step of a key's path, whose name test is given as a function.
pub struct KeyStep<N> {
    pub test: KeyTest,
    pub descends: bool,
    pub admits: N,
}

impl LeafPath {
    /// The names of its elements, from the root down.
    pub fn names(self, vocabulary: &Vocabulary) -> Vec<NameId> {
        let mut names = Vec::new();
        let mut above = self.elements;
        while above.is_some() {
            let (parent, name) = vocabulary.tag_path_parts(above);
            names.push(name);
            above = parent;
        }
        names.reverse();
        names
    }

    /// Whether a key's path selects nodes at the end of this path, whose elements have these names.
    pub fn is_selected<N: Fn(NameId) -> bool>(self, names: &[NameId], steps: &[KeyStep<N>]) -> bool {
        let Some(last) = steps.last() else { return false };
        match last.test {
            KeyTest::Element => self.attribute.is_none() && select(steps, names),
            KeyTest::Text => self.attribute.is_none() && select_above(steps, names),
            KeyTest::Attribute => {
                self.attribute.is_some() && (last.admits)(self.attribute) && select_above(steps, names)
            }
        }
    }
}

/// Whether steps without the last one select an element of these names from the root down, for a last step that
/// selects its attributes or text nodes.
fn select_above<N: Fn(NameId) -> bool>(steps: &[KeyStep<N>], names: &[NameId]) -> bool {
    let Some((last, above)) = steps.split_last() else { return false };
    match last.descends {
        false => select(above, names),
        true => (0..=names.len()).any(|length| select(above, &names[..length])),
    }
}

/// Whether steps select the element with these names from the root down.
fn select<N: Fn(NameId) -> bool>(steps: &[KeyStep<N>], names: &[NameId]) -> bool {
    let Some((last, above)) = steps.split_last() else { return names.is_empty() };
    let Some((&name, outer)) = names.split_last() else { return false };
    if !(last.admits)(name) {
        return false;
    }
    match last.descends {
        false => select(above, outer),
        true => (0..=outer.len()).any(|length| select(above, &outer[..length])),
    }
}

/// An absolute path of names without namespaces, as record keys and indexed values are given: `/row/id` or
/// `/company/@symbol`. The element `*` is any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValuePath {
    text: Box<str>,
}

impl ValuePath {
    /// Reads a path; `None` if it is none.
    pub fn parse(text: &str) -> Option<ValuePath> {
        let steps = text.strip_prefix('/')?;
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit() || "-.".contains(first))
                && !name.contains(|letter: char| {
                    letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"-_.".contains(letter)
                })
        };
        let mut is_attribute = false;
        for step in steps.split('/') {
            if is_attribute || step != "*" && !is_name(step.strip_prefix('@').unwrap_or(step)) {
                return None;
            }
            is_attribute = step.starts_with('@');
        }
        (!steps.starts_with('@')).then(|| ValuePath { text: text.into() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is this path.
    pub fn is(&self, leaf: LeafPath, vocabulary: &Vocabulary) -> bool {
        let is_name = |name: NameId, wanted: &str| {
            let (uri, local) = vocabulary.name_parts(name);
            local == wanted.as_bytes() && vocabulary.uri_text(uri).is_empty()
        };
        let mut steps: Vec<&str> = self.text[1..].split('/').collect();
        let attribute = steps.pop_if(|step| step.starts_with('@'));
        let is_attribute = match attribute {
            None => leaf.attribute.is_none(),
            Some(attribute) => leaf.attribute.is_some() && is_name(leaf.attribute, &attribute[1..]),
        };
        let names = leaf.names(vocabulary);
        is_attribute
            && names.len() == steps.len()
            && names.iter().zip(steps).all(|(&name, wanted)| wanted == "*" || is_name(name, wanted))
    }
}
