//! Transformations that are evaluated tuple by tuple: several variables, and all else that blocks cannot express.
//!
//! ```text
//! for $o in //order, $i in $o/item where $i/@n > 5 order by $i/@n return <r>{ $o/id, count($i/x) }</r>
//!
//! clauses  for $v in //order    for $v2 in $v/item[@n > 5]
//! order    $v2/@n
//! result   an element r with the sequence $v/id, count($v2/x)
//! ```
//!
//! A condition of `where` stands at the first variable that can decide it: as a predicate of the variable's path where
//! that says the same, else as a clause after the one that binds it. `V` is an expression: a `Value`, or a compiled one.

use super::ast::{Expr, Test};
use super::transformation::Element;
use super::value::{Clause, Computed, Value};

/// `for … let … where … order by … return …`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flwor<V = Value> {
    pub clauses: Vec<Clause<V>>,
    /// Most significant first. Without any, tuples come in the order of their clauses.
    pub order: Vec<OrderKey<V>>,
    pub result: Content<V>,
}

/// A key of `order by`: nodes compare as the string of the first, and may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderKey<V = Value> {
    pub value: V,
    pub is_descending: bool,
    /// Whether an empty key, and NaN, come after all others.
    pub is_empty_greatest: bool,
}

/// The content that a transformation constructs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<V = Value> {
    /// Text between tags and braces.
    Text(String),
    Element(Box<Element<Content<V>, Content<V>>>),
    /// An expression in braces: strings and numbers side by side in it are separated by spaces.
    Enclosed(Box<Content<V>>),
    /// `a, b`
    Sequence(Vec<Content<V>>),
    /// Copies of nodes; a string, a number or a boolean as text.
    Value(V),
    If(V, Box<Content<V>>, Box<Content<V>>),
    Flwor(Box<Flwor<V>>),
}

impl Content {
    /// The condition under which a tuple survives that is not inside of another: then the transformation matches.
    /// `None` if there are no tuples at all.
    pub fn has_tuple(&self) -> Option<Expr> {
        match self {
            Content::Text(_) | Content::Value(_) => None,
            Content::Element(element) => any(&element.content),
            Content::Enclosed(content) => content.has_tuple(),
            Content::Sequence(parts) => any(parts),
            Content::If(condition, yes, no) => {
                let (yes, no) = (yes.has_tuple(), no.has_tuple());
                if yes.is_none() && no.is_none() {
                    return None;
                }
                let holds = Content::condition(condition);
                let fails = Expr::Not(Box::new(holds.clone()));
                Some(Expr::Or(vec![
                    Expr::And(vec![holds, yes.unwrap_or(Expr::FALSE)]),
                    Expr::And(vec![fails, no.unwrap_or(Expr::FALSE)]),
                ]))
            }
            Content::Flwor(flwor) => Some(match flwor.clauses.as_slice() {
                [Clause::For(_, Value::Nodes(path))] => Expr::Path(path.clone(), Test::Exists),
                clauses => Expr::Computed(Box::new(Computed::new(Value::Some(clauses.to_vec())))),
            }),
        }
    }

    fn condition(value: &Value) -> Expr {
        match value {
            Value::Condition(expr) => expr.clone(),
            value => Expr::Computed(Box::new(Computed::new(value.clone()))),
        }
    }
}

fn any(parts: &[Content]) -> Option<Expr> {
    let mut tuples: Vec<Expr> = parts.iter().filter_map(Content::has_tuple).collect();
    match tuples.len() {
        0 | 1 => tuples.pop(),
        _ => Some(Expr::Or(tuples)),
    }
}

impl<V> Content<V> {
    /// The same with each expression replaced, in the order in which they are written.
    pub fn map<W>(&self, replace: &mut impl FnMut(&V) -> W) -> Content<W> {
        match self {
            Content::Text(text) => Content::Text(text.clone()),
            Content::Element(element) => {
                Content::Element(Box::new(element.map(&mut |part| part.map(replace))))
            }
            Content::Enclosed(content) => Content::Enclosed(Box::new(content.map(replace))),
            Content::Sequence(parts) => {
                Content::Sequence(parts.iter().map(|part| part.map(replace)).collect())
            }
            Content::Value(value) => Content::Value(replace(value)),
            Content::If(condition, yes, no) => {
                let condition = replace(condition);
                Content::If(condition, Box::new(yes.map(replace)), Box::new(no.map(replace)))
            }
            Content::Flwor(flwor) => {
                let clauses = flwor.clauses.iter().map(|clause| clause.map(replace)).collect();
                let order = flwor.order.iter().map(|key| key.map(replace)).collect();
                Content::Flwor(Box::new(Flwor { clauses, order, result: flwor.result.map(replace) }))
            }
        }
    }

    /// The `for`s that are not inside of others.
    pub fn outermost(&self) -> Vec<&Flwor<V>> {
        match self {
            Content::Text(_) | Content::Value(_) => Vec::new(),
            Content::Element(element) => element.content.iter().flat_map(Content::outermost).collect(),
            Content::Enclosed(content) => content.outermost(),
            Content::Sequence(parts) => parts.iter().flat_map(Content::outermost).collect(),
            Content::If(_, yes, no) => [yes.outermost(), no.outermost()].concat(),
            Content::Flwor(flwor) => vec![flwor],
        }
    }

    /// Calls `visit` with each `for`.
    pub fn for_each_flwor_mut(&mut self, visit: &mut impl FnMut(&mut Flwor<V>)) {
        match self {
            Content::Text(_) | Content::Value(_) => {}
            Content::Element(element) => {
                let values = element.attributes.iter_mut().flat_map(|attribute| &mut attribute.value);
                values.for_each(|part| part.for_each_flwor_mut(visit));
                element.content.iter_mut().for_each(|part| part.for_each_flwor_mut(visit));
            }
            Content::Enclosed(content) => content.for_each_flwor_mut(visit),
            Content::Sequence(parts) => parts.iter_mut().for_each(|part| part.for_each_flwor_mut(visit)),
            Content::If(_, yes, no) => {
                yes.for_each_flwor_mut(visit);
                no.for_each_flwor_mut(visit);
            }
            Content::Flwor(flwor) => {
                visit(flwor);
                flwor.result.for_each_flwor_mut(visit);
            }
        }
    }

    /// Calls `visit` with each expression.
    pub fn for_each_value(&self, visit: &mut impl FnMut(&V)) {
        self.map(&mut |value| visit(value));
    }
}

impl<V> OrderKey<V> {
    fn map<W>(&self, replace: &mut impl FnMut(&V) -> W) -> OrderKey<W> {
        let OrderKey { is_descending, is_empty_greatest, .. } = *self;
        OrderKey { value: replace(&self.value), is_descending, is_empty_greatest }
    }
}
