//! The parsed transformation: blocks that bind one variable each and the elements constructed around them, or what is
//! evaluated tuple by tuple (`flwor.rs`).
//!
//! A block has no `where`: the parser turns its condition into a predicate of the binding path's last step.
//! Names in paths are expanded; constructed names keep their prefixes, because the output shows them.
//!
//! Before: `<r>{ for $v in //a where $v/b = 1 return <c>{ $v/d }</c> }</r>`.
//! After: an element `r` that holds a block with the path `//a[b = 1]`, the return path `d`, and the
//! template `<c>{ 0 }</c>`.

use super::ast::{Expr, NameTest, Path, Test};
use super::blocks;
use super::flwor::Content;
use super::value::Value;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transformation {
    /// Blocks, which the operators that transformations share can run.
    Blocks(Blocks),
    Tuples(Content),
}

impl Transformation {
    pub fn of(content: Content) -> Transformation {
        match blocks::of_content(&content) {
            Some(blocks) => Transformation::Blocks(blocks),
            None => Transformation::Tuples(content),
        }
    }

    /// The filter that decides whether the transformation matches: a tuple survives that is not inside of another.
    pub fn filter(&self) -> Expr {
        match self {
            Transformation::Blocks(blocks) => blocks.filter(),
            Transformation::Tuples(content) => content.has_tuple().unwrap_or(Expr::FALSE),
        }
    }

    /// Calls `visit` with each expression.
    pub fn for_each_value(&self, visit: &mut impl FnMut(&Value)) {
        match self {
            Transformation::Blocks(blocks) => {
                blocks.for_each_path(|path| visit(&Value::Nodes(path.clone())));
            }
            Transformation::Tuples(content) => content.for_each_value(visit),
        }
    }

    /// Calls `visit` with each name test of its paths, also in conditions and in computed content.
    pub fn for_each_name_test(&self, visit: &mut impl FnMut(&NameTest)) {
        match self {
            Transformation::Blocks(blocks) => blocks.for_each_path(|path| path.for_each_name_test(visit)),
            Transformation::Tuples(content) => {
                content.for_each_value(&mut |value| value.for_each_name_test(visit));
            }
        }
    }

    /// Replaces the paths of blocks by `map_path` of them, the expressions of what is evaluated tuple by tuple by
    /// `map_value` of them.
    pub fn map(&mut self, map_path: impl Fn(Path) -> Path, map_value: impl Fn(&Value) -> Value) {
        match self {
            Transformation::Blocks(blocks) => blocks.map_paths(map_path),
            Transformation::Tuples(content) => *content = content.map(&mut |value| map_value(value)),
        }
    }
}

/// A block, or one constructed element that contains blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    pub outer: Outer,
    /// In the order in which they are written.
    pub blocks: Vec<Block>,
}

/// A part outside the blocks. A block is an index into `Blocks::blocks`.
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
pub struct Element<T, P = Part> {
    pub name: PrefixedName,
    /// Prefix and URI of each declaration, including those that the element's own names need.
    pub namespaces: Vec<(String, String)>,
    pub attributes: Vec<Attribute<P>>,
    pub content: Vec<T>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefixedName {
    /// Empty if there is none.
    pub prefix: String,
    pub local: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute<P = Part> {
    pub name: PrefixedName,
    pub value: Vec<P>,
}

impl<T> Element<T, T> {
    /// The same with its parts replaced, those of attribute values first.
    pub fn map<U>(&self, replace: &mut impl FnMut(&T) -> U) -> Element<U, U> {
        let attribute = |attribute: &Attribute<T>, replace: &mut _| Attribute {
            name: attribute.name.clone(),
            value: attribute.value.iter().map(replace).collect(),
        };
        Element {
            name: self.name.clone(),
            namespaces: self.namespaces.clone(),
            attributes: self.attributes.iter().map(|each| attribute(each, &mut *replace)).collect(),
            content: self.content.iter().map(&mut *replace).collect(),
        }
    }
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

impl Blocks {
    /// Some block binds an element.
    fn filter(&self) -> Expr {
        let binds = |block: &Block| Expr::Path(block.binding.clone(), Test::Exists);
        match self.blocks.as_slice() {
            [block] => binds(block),
            blocks => Expr::Or(blocks.iter().map(binds).collect()),
        }
    }

    pub fn for_each_path(&self, mut visit: impl FnMut(&Path)) {
        for block in &self.blocks {
            visit(&block.binding);
            block.returns.iter().for_each(&mut visit);
        }
    }

    /// Replaces every path by `map` of it, and merges return paths that are equal then.
    fn map_paths(&mut self, map: impl Fn(Path) -> Path) {
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

impl Blocks {
    /// A key for what is constructed, equal for transformations that differ only in their bindings.
    pub fn construction(&self) -> String {
        let blocks: Vec<_> = self.blocks.iter().map(|block| (&block.returns, &block.template)).collect();
        format!("{:?}", (&self.outer, blocks))
    }
}
