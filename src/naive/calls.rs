//! The slow evaluator of functions.

use super::Evaluation;
use super::values::{Evaluated, Focus};
use crate::data::{Node, TreeId};
use crate::document::{NodeRef, OtherKind};
use crate::query::ast::Literal;
use crate::query::atomic::Atomic;
use crate::query::envelope::is_root_name;
use crate::query::functions;
use crate::query::moment;
use crate::query::pattern::Pattern;
use crate::query::picture::Picture;
use crate::query::replacement::{self, Replacement};
use crate::query::value::{Function, Value};

impl Evaluation<'_> {
    pub(super) fn call(&mut self, function: Function, arguments: &[Value], focus: Focus) -> Evaluated {
        // Each argument once: nested calls would double the work at every level.
        let values: Vec<Evaluated> = arguments.iter().map(|argument| self.value(argument, focus)).collect();
        let mut texts = values.iter().map(|value| self.as_text(value.clone())).collect::<Vec<_>>();
        let numbers = values.iter().map(|value| self.as_number(value)).collect::<Vec<_>>();
        let first = values.first();
        let nodes = first.map(|value| value.clone().into_nodes()).unwrap_or_default();
        let items = first.map(|value| value.clone().items()).unwrap_or_default();
        let item_numbers: Vec<f64> = items.iter().map(|item| self.as_number(item)).collect();
        let sum = item_numbers.iter().fold(0.0, |sum, number| sum + number);
        let or_nothing = |number: f64| match items.is_empty() {
            true => Evaluated::Items(Vec::new()),
            false => Evaluated::Number(number),
        };
        match function {
            Function::Last => Evaluated::Number(focus.size as f64),
            Function::Position => Evaluated::Number(focus.position as f64),
            Function::Count => Evaluated::Number(items.len() as f64),
            Function::Sum => Evaluated::Number(sum),
            Function::LocalName => Evaluated::Text(self.name_of(&nodes).1),
            Function::NamespaceUri => Evaluated::Text(self.name_of(&nodes).0),
            Function::Name => {
                let written =
                    nodes.first().and_then(|&Node { tree, node }| self.document(tree).qualified_name(node));
                Evaluated::Text(written.map_or_else(|| self.name_of(&nodes).1, <[u8]>::to_vec))
            }
            Function::String => Evaluated::Text(texts.remove(0)),
            Function::Concat => Evaluated::Text(texts.concat()),
            Function::StartsWith => Evaluated::Boolean(texts[0].starts_with(&texts[1])),
            Function::Contains => Evaluated::Boolean(memchr::memmem::find(&texts[0], &texts[1]).is_some()),
            Function::SubstringBefore => {
                Evaluated::Text(functions::substring_before(&texts[0], &texts[1]).to_vec())
            }
            Function::SubstringAfter => {
                Evaluated::Text(functions::substring_after(&texts[0], &texts[1]).to_vec())
            }
            Function::Substring => {
                Evaluated::Text(functions::substring(&texts[0], numbers[1], numbers.get(2).copied()).to_vec())
            }
            Function::StringLength => Evaluated::Number(functions::length(&texts[0]) as f64),
            Function::NormalizeSpace => Evaluated::Text(functions::normalize_space(&texts[0]).into_owned()),
            Function::Translate => Evaluated::Text(functions::translate(&texts[0], &texts[1], &texts[2])),
            Function::Lang => Evaluated::Boolean(self.is_in_language(focus.node, &texts[0])),
            Function::Number => Evaluated::Number(numbers[0]),
            Function::Floor => Evaluated::Number(numbers[0].floor()),
            Function::Ceiling => Evaluated::Number(numbers[0].ceil()),
            Function::Round => Evaluated::Number(functions::round(numbers[0])),
            Function::Date => Evaluated::Number(moment::date(&texts[0])),
            Function::DateTime => Evaluated::Number(moment::date_time(&texts[0])),
            Function::Exists => Evaluated::Boolean(!items.is_empty()),
            Function::Empty => Evaluated::Boolean(items.is_empty()),
            Function::EndsWith => Evaluated::Boolean(texts[0].ends_with(&texts[1])),
            Function::LowerCase => Evaluated::Text(functions::lower_case(&texts[0])),
            Function::UpperCase => Evaluated::Text(functions::upper_case(&texts[0])),
            Function::Matches => {
                let regex = Self::regex(arguments, 2);
                Evaluated::Boolean(regex.is_some_and(|(_, regex)| regex.is_match(&texts[0])))
            }
            Function::Replace => {
                Evaluated::Text(Self::replaced(arguments, &texts[0], &texts[2]).unwrap_or_default())
            }
            Function::Tokenize => {
                let parts = match Self::regex(arguments, 2) {
                    Some((_, regex)) => replacement::tokenize(&regex, &texts[0]),
                    None => functions::words(&texts[0]),
                };
                Evaluated::Items(parts.into_iter().map(|part| Evaluated::Text(part.to_vec())).collect())
            }
            Function::StringJoin => {
                let strings: Vec<_> = items.into_iter().map(|item| self.as_text(item)).collect();
                Evaluated::Text(strings.join(texts.get(1).map_or(&b""[..], Vec::as_slice)))
            }
            Function::Abs => Evaluated::Number(numbers[0].abs()),
            Function::Min => or_nothing(item_numbers.iter().fold(f64::INFINITY, |least, &number| {
                if number.is_nan() || number < least { number } else { least }
            })),
            Function::Max => or_nothing(item_numbers.iter().fold(f64::NEG_INFINITY, |most, &number| {
                if number.is_nan() || number > most { number } else { most }
            })),
            Function::Avg => or_nothing(sum / item_numbers.len() as f64),
            Function::DistinctValues => {
                let mut known = Vec::new();
                let is_new = |item: &Evaluated| {
                    let text = self.as_text(item.clone());
                    let is_new = !known.contains(&text);
                    known.push(text);
                    is_new
                };
                Evaluated::Items(items.into_iter().filter(is_new).collect())
            }
            Function::Doc | Function::Collection => self.documents(arguments),
            Function::FormatNumber => {
                let picture = std::str::from_utf8(&texts[1]).map(Picture::parse);
                let written = |picture: Picture| picture.format(numbers[0]).into_bytes();
                Evaluated::Text(picture.ok().and_then(Result::ok).map(written).unwrap_or_default())
            }
            Function::Integer => {
                let value = self.value(&arguments[0], focus);
                self.cast(Atomic::Integer, value)
            }
            Function::Decimal => {
                let value = self.value(&arguments[0], focus);
                self.cast(Atomic::Decimal, value)
            }
            Function::Double => {
                let value = self.value(&arguments[0], focus);
                self.cast(Atomic::Double, value)
            }
        }
    }

    /// The namespace URI and the local part of the first node's name; empty if it has none.
    fn name_of(&self, nodes: &[Node]) -> (Vec<u8>, Vec<u8>) {
        let Some(&Node { tree, node }) = nodes.first() else { return Default::default() };
        let (document, vocabulary) = (self.document(tree), self.vocabulary(tree));
        let name = match node {
            NodeRef::Element(element) => document.element(element).name,
            NodeRef::Attribute(_, place) => document.attributes[place as usize].name,
            NodeRef::Other(place) => {
                return match document.others[place as usize].kind {
                    OtherKind::Instruction { target } => (Vec::new(), target.of(&document.values).to_vec()),
                    OtherKind::Comment => Default::default(),
                };
            }
            NodeRef::Document | NodeRef::Text(_) => return Default::default(),
        };
        let (uri, local) = vocabulary.name_parts(name);
        if is_root_name(local) {
            return Default::default();
        }
        (vocabulary.uri_text(uri).to_vec(), local.to_vec())
    }

    fn is_in_language(&self, node: Node, wanted: &[u8]) -> bool {
        let (document, vocabulary) = (self.document(node.tree), self.vocabulary(node.tree));
        let mut around = Some(node);
        while let Some(at) = around {
            if let NodeRef::Element(element) = at.node {
                for attribute in document.attributes_of(element) {
                    let (uri, local) = vocabulary.name_parts(attribute.name);
                    if local == b"lang" && vocabulary.uri_text(uri).ends_with(b"/XML/1998/namespace") {
                        return functions::is_language(document.value(attribute), wanted);
                    }
                }
            }
            around = self.parent(at);
        }
        false
    }

    /// The document nodes of local data.
    fn documents(&self, arguments: &[Value]) -> Evaluated {
        let [Value::Literal(Literal::Text(name))] = arguments else { return Evaluated::Nodes(Vec::new()) };
        let Some(set) = self.data.sets().find(name.as_bytes()) else { return Evaluated::Nodes(Vec::new()) };
        let node = |record| Node { tree: TreeId::of_record(set, record), node: NodeRef::Document };
        Evaluated::Nodes(self.data.sets().at(set).places().map(node).collect())
    }

    /// The regular expression of a call.
    fn regex(arguments: &[Value], flags: usize) -> Option<(Pattern, regex::bytes::Regex)> {
        let pattern = Pattern::of_arguments(arguments, 1, flags)?;
        let regex = pattern.compile()?;
        Some((pattern, regex))
    }

    fn replaced(arguments: &[Value], text: &[u8], with: &[u8]) -> Option<Vec<u8>> {
        let (pattern, regex) = Self::regex(arguments, 3)?;
        let is_plain =
            matches!(arguments.get(3), Some(Value::Literal(Literal::Text(flags))) if flags.contains('q'));
        let with = Replacement::parse(std::str::from_utf8(with).ok()?, pattern.groups, is_plain).ok()?;
        with.replace(&regex, text, usize::MAX)
    }

    fn cast(&self, target: Atomic, value: Evaluated) -> Evaluated {
        Evaluated::Number(match value {
            Evaluated::Number(number) if target == Atomic::Integer => number.trunc(),
            Evaluated::Number(_) | Evaluated::Boolean(_) => self.as_number(&value),
            value => target.number_of(&self.as_text(value)),
        })
    }
}
