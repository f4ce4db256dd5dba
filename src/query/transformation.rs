//! The parsed transformation: for-where-return blocks and the elements constructed around them.
//!
//! `where` is gone: a condition on the bound element is one more predicate of the binding path's last
//! step. Names in paths are expanded; constructed names keep their prefixes, because prefixes are output.
//!
//! Before: `<r>{ for $v in //a where $v/b = 1 return <c>{ $v/d }</c> }</r>`.
//! After: an element `r` that holds a block with the path `//a[b = 1]`, the return path `d`, and the
//! template `<c>{ 0 }</c>`.

use super::ast::{Expr, Path, Test};

/// What is built for a message: a block, or one element with blocks in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transformation {
    pub outer: Outer,
    /// In the order in which they are written.
    pub blocks: Vec<Block>,
}

/// What stands outside the blocks. A block is named by its place in `Transformation::blocks`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outer {
    Text(String),
    Element(Element<Outer>),
    Block(usize),
}

/// `for $v in PATH return TEMPLATE`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Selects the elements that are bound, absolute.
    pub binding: Path,
    /// The distinct paths that the template takes nodes from, relative to the bound element; no steps
    /// stand for the bound element itself.
    pub returns: Vec<Path>,
    pub template: Vec<Item>,
}

/// A part of a template. Return paths are named by their place in `Block::returns`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    Text(String),
    Element(Element<Item>),
    /// `{ $v/path }`: the nodes themselves. Attributes go to the constructed element around.
    Nodes(usize),
    /// `{ count($v/path) }`
    Count(usize),
    /// `{ string($v/path) }`: the first node's.
    First(usize),
}

/// `<name …>…</name>`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element<T> {
    pub name: PrefixedName,
    /// Prefix and URI of what the element declares, prefixes of its own names included.
    pub namespaces: Vec<(String, String)>,
    pub attributes: Vec<Attribute>,
    pub content: Vec<T>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefixedName {
    /// Empty where there is none.
    pub prefix: String,
    pub local: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    pub name: PrefixedName,
    pub value: Vec<Part>,
}

/// A part of an attribute value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    Text(String),
    /// The nodes' string-values, with a blank between two.
    Values(usize),
    Count(usize),
    First(usize),
}

impl Transformation {
    /// The filter that decides whether a message concerns it: some block binds an element.
    pub fn filter(&self) -> Expr {
        let binds = |block: &Block| Expr::Path(block.binding.clone(), Test::Exists);
        match self.blocks.as_slice() {
            [block] => binds(block),
            blocks => Expr::Or(blocks.iter().map(binds).collect()),
        }
    }

    /// Replaces every path. Return paths that have become equal become one.
    pub fn map_paths(&mut self, map: impl Fn(Path) -> Path) {
        for block in &mut self.blocks {
            block.binding = map(std::mem::take(&mut block.binding));
            let mut distinct: Vec<Path> = Vec::with_capacity(block.returns.len());
            let mut places = Vec::with_capacity(block.returns.len());
            for path in block.returns.drain(..).map(&map) {
                let place = distinct.iter().position(|known| *known == path);
                places.push(place.unwrap_or(distinct.len()));
                if place.is_none() {
                    distinct.push(path);
                }
            }
            block.returns = distinct;
            block.template.iter_mut().for_each(|item| item.renumber(&places));
        }
    }
}

impl Item {
    /// Gives each return path the place that `places` tells for it.
    fn renumber(&mut self, places: &[usize]) {
        match self {
            Item::Text(_) => {}
            Item::Element(element) => {
                for part in element.attributes.iter_mut().flat_map(|attribute| &mut attribute.value) {
                    if let Part::Values(place) | Part::Count(place) | Part::First(place) = part {
                        *place = places[*place];
                    }
                }
                element.content.iter_mut().for_each(|item| item.renumber(places));
            }
            Item::Nodes(place) | Item::Count(place) | Item::First(place) => *place = places[*place],
        }
    }
}

impl Transformation {
    /// What is constructed, whatever is bound: equal for transformations that bind otherwise only.
    pub fn construction(&self) -> String {
        let blocks: Vec<_> = self.blocks.iter().map(|block| (&block.returns, &block.template)).collect();
        format!("{:?}", (&self.outer, blocks))
    }
}
