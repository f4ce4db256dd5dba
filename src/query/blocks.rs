//! Transformations as blocks, which the shared operators can run: each `for` has one variable, and its template takes
//! nodes by paths from that variable.
//!
//! ```text
//! <r>{ for $v in //a[b = 1] return <c>{ $v/d }</c> }</r>     r, with one block: binds //a[b = 1], returns d
//! for $v in //a, $w in $v/b return <c>{ $w/d }</c>           no block: two variables, evaluated tuple by tuple
//! ```

use super::ast::{Node, Path, Start, Variable};
use super::flwor::{Content, Flwor};
use super::transformation::{Attribute, Block, Blocks, Element, Item, Outer, Part};
use super::value::{Clause, Function, Value};
use super::variables::Uses;

/// The variable of a block: no other is in scope with it.
const BOUND: Variable = Variable(0);

/// The blocks of a transformation; `None` if blocks cannot express it.
pub fn of_content(content: &Content) -> Option<Blocks> {
    let mut blocks = Vec::new();
    let outer = outer(content, &mut blocks)?;
    Some(Blocks { outer, blocks })
}

fn outer(content: &Content, blocks: &mut Vec<Block>) -> Option<Outer> {
    match content {
        Content::Text(text) => Some(Outer::Text(text.clone())),
        Content::Element(constructed) => {
            let attributes = attributes(constructed, |part| match part {
                Content::Text(text) => Some(Part::Text(text.clone())),
                _ => None,
            })?;
            let parts = constructed.content.iter().map(|part| outer(part, blocks));
            Some(Outer::Element(element(constructed, attributes, parts.collect::<Option<_>>()?)))
        }
        Content::Enclosed(content) if matches!(**content, Content::Flwor(_)) => outer(content, blocks),
        Content::Flwor(flwor) => {
            blocks.push(block(flwor)?);
            Some(Outer::Block(blocks.len() - 1))
        }
        _ => None,
    }
}

fn block(flwor: &Flwor) -> Option<Block> {
    let [Clause::For(BOUND, Value::Nodes(binding))] = flwor.clauses.as_slice() else { return None };
    let binds_elements = matches!(binding.steps.last()?.node, Node::Element(_));
    if binding.start != Start::Document || !binds_elements || !flwor.order.is_empty() {
        return None;
    }
    let mut returns = Vec::new();
    let item = match &flwor.result {
        Content::Element(constructed) => Item::Element(template(constructed, &mut returns)?),
        // Attributes belong to the element around the block.
        Content::Value(Value::Nodes(path)) if !selects_attributes(path) => {
            Item::Nodes(return_path(path, &mut returns)?)
        }
        _ => return None,
    };
    Some(Block { binding: binding.clone(), returns, template: vec![item] })
}

fn template(constructed: &Element<Content, Content>, returns: &mut Vec<Path>) -> Option<Element<Item>> {
    let attributes = attributes(constructed, |part| match part {
        Content::Text(text) => Some(Part::Text(text.clone())),
        part => match return_item(part, returns)? {
            Item::Count(place) => Some(Part::Count(place)),
            Item::First(place) => Some(Part::First(place)),
            Item::Nodes(place) => Some(Part::Values(place)),
            Item::Text(_) | Item::Element(_) => None,
        },
    })?;
    let parts = constructed.content.iter().map(|part| match part {
        Content::Text(text) => Some(Item::Text(text.clone())),
        Content::Element(constructed) => Some(Item::Element(template(constructed, returns)?)),
        part => return_item(part, returns),
    });
    Some(element(constructed, attributes, parts.collect::<Option<_>>()?))
}

/// `{ $v/path }`, `{ count($v/path) }` or `{ string($v/path) }`
fn return_item(part: &Content, returns: &mut Vec<Path>) -> Option<Item> {
    let Content::Enclosed(content) = part else { return None };
    match &**content {
        Content::Value(Value::Nodes(path)) => return_path(path, returns).map(Item::Nodes),
        Content::Value(Value::Call(function, arguments)) => {
            let [Value::Nodes(path)] = arguments.as_slice() else { return None };
            match function {
                Function::Count => return_path(path, returns).map(Item::Count),
                Function::String => return_path(path, returns).map(Item::First),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The place of a path among the return paths, relative to the bound element.
fn return_path(path: &Path, returns: &mut Vec<Path>) -> Option<usize> {
    if path.start != Start::Variable(BOUND) || Uses::are_in_steps(path) {
        return None;
    }
    let path = Path { start: Start::Context, steps: path.steps.clone() };
    let known = returns.iter().position(|known| *known == path);
    Some(known.unwrap_or_else(|| {
        returns.push(path);
        returns.len() - 1
    }))
}

fn selects_attributes(path: &Path) -> bool {
    path.steps.last().is_some_and(|last| matches!(last.node, Node::Attribute(_)))
}

fn attributes(
    element: &Element<Content, Content>,
    mut part: impl FnMut(&Content) -> Option<Part>,
) -> Option<Vec<Attribute>> {
    let attribute = |attribute: &Attribute<Content>| {
        let value = attribute.value.iter().map(&mut part).collect::<Option<_>>()?;
        Some(Attribute { name: attribute.name.clone(), value })
    };
    element.attributes.iter().map(attribute).collect()
}

fn element<T>(
    constructed: &Element<Content, Content>,
    attributes: Vec<Attribute>,
    content: Vec<T>,
) -> Element<T> {
    let Element { name, namespaces, .. } = constructed;
    Element { name: name.clone(), namespaces: namespaces.clone(), attributes, content }
}
