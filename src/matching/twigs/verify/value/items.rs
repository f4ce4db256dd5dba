//! Sequences of XPath 2.0: their items, and the functions that take all of them.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::{Evaluated, Focus};
use crate::data::Node;
use crate::document::NodeRef;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::{Trees, Verifier};
use crate::query::functions::{self, number_text};
use crate::query::number::number;

#[derive(Clone)]
pub enum Item<'a> {
    Node(Node),
    Number(f64),
    Text(Cow<'a, [u8]>),
    Boolean(bool),
}

impl<'a> From<Item<'a>> for Evaluated<'a> {
    fn from(item: Item<'a>) -> Evaluated<'a> {
        match item {
            Item::Node(node) => Evaluated::Nodes(vec![node]),
            Item::Number(number) => Evaluated::Number(number),
            Item::Text(text) => Evaluated::Text(text),
            Item::Boolean(boolean) => Evaluated::Boolean(boolean),
        }
    }
}

impl<'a> Item<'a> {
    pub fn text(&self, trees: Trees<'a>) -> Cow<'a, [u8]> {
        match self {
            Item::Node(node) => Cow::Borrowed(trees.value_of(*node)),
            Item::Number(number) => Cow::Owned(number_text(*number).into_bytes()),
            Item::Text(text) => text.clone(),
            Item::Boolean(boolean) => Cow::Borrowed(if *boolean { b"true" } else { b"false" }),
        }
    }

    pub fn number(&self, trees: Trees<'a>) -> f64 {
        match self {
            Item::Node(node) => number(trees.value_of(*node)),
            Item::Number(number) => *number,
            Item::Text(text) => number(text),
            Item::Boolean(boolean) => f64::from(u8::from(*boolean)),
        }
    }

    /// The bytes that are read to know its string or number.
    pub fn text_length(&self, trees: Trees<'_>) -> usize {
        match self {
            Item::Node(node) => trees.value_of(*node).len(),
            Item::Text(text) => text.len(),
            Item::Number(_) | Item::Boolean(_) => 0,
        }
    }
}

impl<'a> Verifier<'a> {
    /// The items of a value.
    pub(super) fn items(&mut self, value: u32, context: NodeRef) -> Result<Vec<Item<'a>>, WorkLimit> {
        let items = match self.value(value, context)? {
            Evaluated::Nodes(nodes) => nodes.into_iter().map(Item::Node).collect(),
            Evaluated::Items(items) => items,
            Evaluated::Number(number) => vec![Item::Number(number)],
            Evaluated::Text(text) => vec![Item::Text(text)],
            Evaluated::Boolean(boolean) => vec![Item::Boolean(boolean)],
        };
        self.budget.spend(items.len())?;
        Ok(items)
    }

    /// The items of a value, whose strings or numbers are read.
    fn read_items(&mut self, value: u32, context: NodeRef) -> Result<Vec<Item<'a>>, WorkLimit> {
        let items = self.items(value, context)?;
        items.iter().try_for_each(|item| self.budget.spend_bytes(item.text_length(self.trees)))?;
        Ok(items)
    }

    pub(super) fn numbers(&mut self, value: u32, context: NodeRef) -> Result<Vec<f64>, WorkLimit> {
        let trees = self.trees;
        Ok(self.read_items(value, context)?.iter().map(|item| item.number(trees)).collect())
    }

    /// A number, or nothing.
    pub(super) fn number_or_nothing(number: Option<f64>) -> Evaluated<'a> {
        number.map_or(Evaluated::Items(Vec::new()), Evaluated::Number)
    }

    /// `string-join()`
    pub(super) fn joined(
        &mut self,
        value: u32,
        separator: Option<u32>,
        context: NodeRef,
    ) -> Result<Vec<u8>, WorkLimit> {
        let items = self.read_items(value, context)?;
        let separator = match separator {
            Some(separator) => self.text_of(separator, context)?,
            None => Cow::Borrowed(&b""[..]),
        };
        let mut all = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let text = item.text(self.trees);
            self.budget.spend(text.len() + separator.len())?;
            if place > 0 {
                all.extend_from_slice(&separator);
            }
            all.extend_from_slice(&text);
        }
        Ok(all)
    }

    /// `distinct-values()`: as strings, each where it is first.
    pub(super) fn distinct(&mut self, value: u32, context: NodeRef) -> Result<Vec<Item<'a>>, WorkLimit> {
        let trees = self.trees;
        let mut known = FxHashSet::default();
        let mut items = self.read_items(value, context)?;
        items.retain(|item| known.insert(item.text(trees)));
        Ok(items)
    }

    /// A value for each node of another.
    pub(super) fn each(
        &mut self,
        start: u32,
        each: u32,
        context: NodeRef,
    ) -> Result<Evaluated<'a>, WorkLimit> {
        let nodes = self.nodes_of_value(start, context)?;
        let outer = self.focus;
        let size = nodes.len();
        let (mut found, mut items) = (Vec::new(), Vec::new());
        let all = nodes.into_iter().enumerate().try_for_each(|(place, node)| {
            self.focus = Focus { position: place + 1, size };
            match self.within(node.tree, |verifier| verifier.value(each, node.node))? {
                Evaluated::Nodes(mut nodes) => found.append(&mut nodes),
                Evaluated::Items(mut more) => items.append(&mut more),
                Evaluated::Number(number) => items.push(Item::Number(number)),
                Evaluated::Text(text) => items.push(Item::Text(text)),
                Evaluated::Boolean(boolean) => items.push(Item::Boolean(boolean)),
            }
            self.budget.spend(1)
        });
        // Also past the work limit: the verifier goes on with the next query.
        self.focus = outer;
        all?;
        Ok(match items.is_empty() {
            true => Evaluated::Nodes(self.nodes_in_order(found)),
            false => Evaluated::Items(items),
        })
    }

    /// The items at positions; the predicates depend on nothing else.
    pub(super) fn filter_items(
        &mut self,
        items: Vec<Item<'a>>,
        (at, count): (u32, u32),
        context: NodeRef,
    ) -> Result<Vec<Item<'a>>, WorkLimit> {
        let outer = self.focus;
        let kept = (at..at + count).try_fold(items, |items, predicate| {
            let predicate = self.words[predicate as usize];
            let size = items.len();
            let mut kept = Vec::new();
            for (place, item) in items.into_iter().enumerate() {
                self.focus = Focus { position: place + 1, size };
                if self.keeps(predicate, context)? {
                    kept.push(item);
                }
            }
            Ok(kept)
        });
        self.focus = outer;
        kept
    }

    /// `min()` and `max()`
    pub(super) fn extreme(
        &mut self,
        value: u32,
        context: NodeRef,
        chosen: fn(f64, f64) -> f64,
    ) -> Result<Evaluated<'a>, WorkLimit> {
        let numbers = self.numbers(value, context)?;
        Ok(Self::number_or_nothing(functions::extreme(numbers.into_iter(), chosen)))
    }
}
