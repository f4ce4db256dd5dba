//! Function calls.

use std::borrow::Cow;
use std::sync::Arc;

use super::patterns::Compiled;
use super::{Evaluated, Item};
use crate::data::Node;
use crate::document::{NodeRef, OtherKind};
use crate::matching::budget::{Decided, WorkLimit};
use crate::matching::twigs::verify::Verifier;
use crate::query::atomic::Atomic;
use crate::query::functions;
use crate::query::moment;
use crate::query::picture::Picture;
use crate::query::replacement::{self, Replacement};
use crate::query::value::{FUNCTIONS, Function};
use crate::tuning::PATTERN_STEP_SIZE;

const XML_NAMESPACE: &[u8] = b"http://www.w3.org/XML/1998/namespace";

/// The bytes of a string.
type Text<'a> = Cow<'a, [u8]>;

/// A namespace URI and a local name.
type NameParts<'a> = (&'a [u8], &'a [u8]);

impl<'a> Verifier<'a> {
    /// The value of a function; its arguments are the values named at `at`.
    pub(super) fn call(
        &mut self,
        function: u32,
        at: u32,
        count: u32,
        context: NodeRef,
    ) -> Result<Evaluated<'a>, WorkLimit> {
        let argument = |place: u32| self.words[(at + place) as usize];
        let first = if count > 0 { argument(0) } else { 0 };
        Ok(match FUNCTIONS[function as usize].function {
            Function::Last => Evaluated::Number(self.focus.size as f64),
            Function::Position => Evaluated::Number(self.focus.position as f64),
            Function::Count => Evaluated::Number(self.value(first, context)?.count() as f64),
            Function::LocalName => Evaluated::Text(Cow::Borrowed(
                self.name_parts(first, context)?.map_or(b"", |(_, local)| local),
            )),
            Function::NamespaceUri => {
                Evaluated::Text(Cow::Borrowed(self.name_parts(first, context)?.map_or(b"", |(uri, _)| uri)))
            }
            Function::Name => {
                let node = self.nodes_of_value(first, context)?.first().copied();
                let name =
                    node.and_then(|Node { tree, node }| self.trees.document(tree).qualified_name(node));
                let local =
                    || node.and_then(|node| self.name_parts_of(node)).map_or(&b""[..], |(_, local)| local);
                Evaluated::Text(Cow::Borrowed(name.unwrap_or_else(local)))
            }
            Function::String => Evaluated::Text(self.text_of(first, context)?),
            Function::Concat => {
                let mut all = Vec::new();
                for place in 0..count {
                    let text = self.text_of(self.words[(at + place) as usize], context)?;
                    self.budget.spend(text.len())?;
                    all.extend_from_slice(&text);
                }
                Evaluated::Text(Cow::Owned(all))
            }
            Function::StartsWith => {
                let (text, prefix) = self.two_texts(at, context)?;
                Evaluated::Boolean(text.starts_with(&prefix))
            }
            Function::Contains => {
                let (text, part) = self.two_texts(at, context)?;
                Evaluated::Boolean(memchr::memmem::find(&text, &part).is_some())
            }
            Function::SubstringBefore => {
                let (text, separator) = self.two_texts(at, context)?;
                Evaluated::Text(slice(text, |text| functions::substring_before(text, &separator)))
            }
            Function::SubstringAfter => {
                let (text, separator) = self.two_texts(at, context)?;
                Evaluated::Text(slice(text, |text| functions::substring_after(text, &separator)))
            }
            Function::Substring => {
                let (start, length) = (argument(1), (count > 2).then(|| argument(2)));
                let text = self.text_of(first, context)?;
                let start = self.number_of(start, context)?;
                let length = length.map(|length| self.number_of(length, context)).transpose()?;
                Evaluated::Text(slice(text, |text| functions::substring(text, start, length)))
            }
            Function::StringLength => {
                Evaluated::Number(functions::length(&self.text_of(first, context)?) as f64)
            }
            Function::NormalizeSpace => {
                let text = self.text_of(first, context)?;
                self.budget.spend(text.len())?;
                Evaluated::Text(match text {
                    Cow::Borrowed(text) => functions::normalize_space(text),
                    Cow::Owned(text) => Cow::Owned(functions::normalize_space(&text).into_owned()),
                })
            }
            Function::Translate => {
                let to = argument(2);
                let (text, from) = self.two_texts(at, context)?;
                let to = self.text_of(to, context)?;
                self.budget.spend(text.len() + from.len())?;
                Evaluated::Text(Cow::Owned(functions::translate(&text, &from, &to)))
            }
            Function::Lang => {
                let wanted = self.text_of(first, context)?;
                Evaluated::Boolean(self.is_in_language(context, &wanted)?)
            }
            Function::Number => Evaluated::Number(self.number_of(first, context)?),
            // `Iterator::sum` of nothing is -0.
            Function::Sum => Evaluated::Number(
                self.numbers(first, context)?.into_iter().fold(0.0, |sum, number| sum + number),
            ),
            Function::Floor => Evaluated::Number(self.number_of(first, context)?.floor()),
            Function::Ceiling => Evaluated::Number(self.number_of(first, context)?.ceil()),
            Function::Round => Evaluated::Number(functions::round(self.number_of(first, context)?)),
            Function::Date => Evaluated::Number(moment::date(&self.text_of(first, context)?)),
            Function::DateTime => Evaluated::Number(moment::date_time(&self.text_of(first, context)?)),
            Function::Exists => Evaluated::Boolean(self.value(first, context)?.count() > 0),
            Function::Empty => Evaluated::Boolean(self.value(first, context)?.count() == 0),
            Function::EndsWith => {
                let (text, suffix) = self.two_texts(at, context)?;
                Evaluated::Boolean(text.ends_with(&suffix))
            }
            Function::LowerCase => {
                let text = self.text_of(first, context)?;
                self.budget.spend(text.len())?;
                Evaluated::Text(Cow::Owned(functions::lower_case(&text)))
            }
            Function::UpperCase => {
                let text = self.text_of(first, context)?;
                self.budget.spend(text.len())?;
                Evaluated::Text(Cow::Owned(functions::upper_case(&text)))
            }
            Function::Matches => {
                let text = self.text_of(first, context)?;
                let pattern = self.pattern(argument(1), (count > 2).then(|| argument(2)), text.len())?;
                Evaluated::Boolean(pattern.is_some_and(|pattern| pattern.regex.is_match(&text)))
            }
            Function::Replace => {
                let text = self.text_of(first, context)?;
                let flags = (count > 3).then(|| argument(3));
                let pattern = self.pattern(argument(1), flags, text.len())?;
                let is_plain = flags.is_some_and(|flags| self.text(flags).contains(&b'q'));
                let with = std::str::from_utf8(self.text(argument(2))).unwrap_or_default();
                let groups = pattern.as_ref().map_or(0, |pattern| pattern.groups);
                let (Some(pattern), Ok(with)) = (pattern, Replacement::parse(with, groups, is_plain)) else {
                    return Ok(Evaluated::Text(text));
                };
                let replaced = with.replace(&pattern.regex, &text, self.budget.left()).ok_or(WorkLimit)?;
                self.budget.spend(replaced.len())?;
                Evaluated::Text(Cow::Owned(replaced))
            }
            Function::Tokenize => {
                let text = self.text_of(first, context)?;
                let (pattern, flags) = ((count > 1).then(|| argument(1)), (count > 2).then(|| argument(2)));
                let parts = match pattern {
                    Some(pattern) => match self.pattern(pattern, flags, text.len())? {
                        Some(pattern) => parts(&text, |text| replacement::tokenize(&pattern.regex, text)),
                        None => Vec::new(),
                    },
                    None => parts(&text, functions::words),
                };
                self.budget.spend(parts.len())?;
                Evaluated::Items(parts)
            }
            Function::StringJoin => {
                let separator = (count > 1).then(|| argument(1));
                Evaluated::Text(Cow::Owned(self.joined(first, separator, context)?))
            }
            Function::Abs => Evaluated::Number(self.number_of(first, context)?.abs()),
            Function::Min => self.extreme(first, context, f64::min)?,
            Function::Max => self.extreme(first, context, f64::max)?,
            Function::Avg => {
                let numbers = self.numbers(first, context)?;
                let average = numbers.iter().fold(0.0, |sum, number| sum + number) / numbers.len() as f64;
                Self::number_or_nothing((!numbers.is_empty()).then_some(average))
            }
            Function::DistinctValues => Evaluated::Items(self.distinct(first, context)?),
            // Compiled as what they are.
            Function::Doc | Function::Collection => Evaluated::Nodes(Vec::new()),
            Function::FormatNumber => {
                let number = self.number_of(first, context)?;
                let picture = self.text(argument(1));
                self.budget.spend(picture.len())?;
                // It was checked when the query was registered.
                let picture = std::str::from_utf8(picture).map(Picture::parse);
                let written = picture.ok().and_then(Result::ok).map(|picture| picture.format(number));
                let written = written.unwrap_or_default().into_bytes();
                self.budget.spend(written.len())?;
                Evaluated::Text(Cow::Owned(written))
            }
            Function::Integer => self.cast(Atomic::Integer, first, context)?,
            Function::Decimal => self.cast(Atomic::Decimal, first, context)?,
            Function::Double => self.cast(Atomic::Double, first, context)?,
        })
    }

    /// A compiled pattern, for searching so many bytes.
    fn pattern(
        &mut self,
        pattern: u32,
        flags: Option<u32>,
        bytes: usize,
    ) -> Result<Option<Arc<Compiled>>, WorkLimit> {
        let flags = flags.map_or(&b""[..], |flags| self.text(flags));
        let compiled = self.memo.patterns.compiled(self.text(pattern), flags);
        let per_byte = 1 + compiled.as_ref().map_or(0, |compiled| compiled.size) / PATTERN_STEP_SIZE;
        self.budget.spend(bytes.saturating_mul(per_byte))?;
        Ok(compiled)
    }

    /// The number that a value is cast to, or NaN.
    fn cast(&mut self, target: Atomic, value: u32, context: NodeRef) -> Result<Evaluated<'a>, WorkLimit> {
        Ok(Evaluated::Number(match self.value(value, context)? {
            Evaluated::Number(number) if target == Atomic::Integer => number.trunc(),
            Evaluated::Number(number) => number,
            Evaluated::Boolean(boolean) => f64::from(u8::from(boolean)),
            other => {
                let text = other.text(self.trees);
                self.budget.spend_bytes(text.len())?;
                target.number_of(&text)
            }
        }))
    }

    fn two_texts(&mut self, at: u32, context: NodeRef) -> Result<(Text<'a>, Text<'a>), WorkLimit> {
        let (first, second) = (self.words[at as usize], self.words[at as usize + 1]);
        Ok((self.text_of(first, context)?, self.text_of(second, context)?))
    }

    /// The namespace URI and the local part of the name of a set's first node, if it has a name.
    fn name_parts(&mut self, nodes: u32, context: NodeRef) -> Result<Option<NameParts<'a>>, WorkLimit> {
        Ok(self.nodes_of_value(nodes, context)?.first().and_then(|&node| self.name_parts_of(node)))
    }

    fn name_parts_of(&self, Node { tree, node }: Node) -> Option<NameParts<'a>> {
        let (document, vocabulary, _) = self.trees.at(tree);
        let name = match node {
            NodeRef::Element(element) => document.element(element).name,
            NodeRef::Attribute(_, place) => document.attributes[place as usize].name,
            NodeRef::Other(place) => match document.others[place as usize].kind {
                OtherKind::Instruction { target } => return Some((b"", target.of(&document.values))),
                OtherKind::Comment => return None,
            },
            NodeRef::Document | NodeRef::Text(_) => return None,
        };
        if self.document.envelope_name() == Some(name) {
            return None;
        }
        let (uri, local) = vocabulary.name_parts(name);
        Some((vocabulary.uri_text(uri), local))
    }

    /// Whether the nearest `xml:lang` around a node is a language.
    fn is_in_language(&mut self, node: NodeRef, wanted: &[u8]) -> Decided {
        let document = self.document;
        let Some(name) = self.vocabulary.find_name(XML_NAMESPACE, b"lang") else { return Ok(false) };
        let mut element = document.element_around(node);
        while let Some(at) = element {
            self.budget.spend(1 + document.attributes_of(at).len())?;
            if let Some(lang) = document.attributes_of(at).iter().find(|attribute| attribute.name == name) {
                return Ok(functions::is_language(document.value(lang), wanted));
            }
            let parent = document.element(at).parent;
            element = parent.is_some().then_some(parent);
        }
        Ok(false)
    }
}

/// A part of a text, borrowed if the text is.
fn slice<'a>(text: Cow<'a, [u8]>, part: impl for<'t> Fn(&'t [u8]) -> &'t [u8]) -> Cow<'a, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(part(text)),
        Cow::Owned(text) => Cow::Owned(part(&text).to_vec()),
    }
}

/// Parts of a text as items.
fn parts<'a>(text: &Text<'a>, split: impl for<'t> Fn(&'t [u8]) -> Vec<&'t [u8]>) -> Vec<Item<'a>> {
    match text {
        Cow::Borrowed(text) => split(text).into_iter().map(|part| Item::Text(Cow::Borrowed(part))).collect(),
        Cow::Owned(text) => {
            split(text).into_iter().map(|part| Item::Text(Cow::Owned(part.to_vec()))).collect()
        }
    }
}
