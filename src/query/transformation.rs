//! The parsed transformation: for-where-return blocks and the elements constructed around them.
//!
//! There is no `where`: the parser turns its condition into a predicate of the binding path's last step.
//! Names in paths are expanded; constructed names keep their prefixes, because the output shows them.
//!
//! Before: `<r>{ for $v in //a where $v/b = 1 return <c>{ $v/d }</c> }</r>`.
//! After: an element `r` that holds a block with the path `//a[b = 1]`, the return path `d`, and the
//! template `<c>{ 0 }</c>`.

use super::ast::{Expr, Path, Test};

/// A block, or one constructed element that contains blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transformation {
    pub outer: Outer,
    /// In the order in which they are written.
    pub blocks: Vec<Block>,
}

/// A part outside the blocks. A block is an index into `Transformation::blocks`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outer {
    Text(String),
    Element(Element<Outer>),
    Block(usize),
}

/// `for $v in PATH return TEMPLATE`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Selects the elements to bind; absolute.
    pub binding: Path,
    /// The distinct paths in the template, relative to the bound element. A path without steps is the
    /// bound element itself.
    pub returns: Vec<Path>,
    pub template: Vec<Item>,
}

/// A part of a template. A return path is an index into `Block::returns`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    Text(String),
    Element(Element<Item>),
    /// `{ $v/path }`: copies of the nodes. Attributes become attributes of the enclosing element.
    Nodes(usize),
    /// `{ count($v/path) }`
    Count(usize),
    /// `{ string($v/path) }`: the string-value of the first node.
    First(usize),
}

/// `<name …>…</name>`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element<T> {
    pub name: PrefixedName,
    /// Prefix and URI of each declaration, including those that the element's own names need.
    pub namespaces: Vec<(String, String)>,
    pub attributes: Vec<Attribute>,
    pub content: Vec<T>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefixedName {
    /// Empty if there is none.
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
    /// The nodes' string-values, separated by spaces.
    Values(usize),
    Count(usize),
    First(usize),
}

impl Transformation {
    /// The filter that decides whether the transformation matches: some block binds an element.
    pub fn filter(&self) -> Expr {
        let binds = |block: &Block| Expr::Path(block.binding.clone(), Test::Exists);
        match self.blocks.as_slice() {
            [block] => binds(block),
            blocks => Expr::Or(blocks.iter().map(binds).collect()),
        }
    }

    /// Replaces every path by `map` of it, and merges return paths that are equal then.
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
    /// Replaces each index of a return path by `places` of it.
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
    /// A key for what is constructed, equal for transformations that differ only in their bindings.
    pub fn construction(&self) -> String {
        let blocks: Vec<_> = self.blocks.iter().map(|block| (&block.returns, &block.template)).collect();
        format!("{:?}", (&self.outer, blocks))
    }
}
