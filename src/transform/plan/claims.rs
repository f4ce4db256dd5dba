//! What is known of a stream before it is made: that it holds nothing twice, that it comes in order.
//!
//! The five claims of seed 001 §6.5.1. By the query alone, a path with few `//` has neither duplicates nor
//! disorder; by a DTD, neither has one whose `//` steps are not on loops. The DTD speaks for messages
//! that conform to it.

use std::fmt;

use crate::query::ast::Axis;
use crate::query::element_path::ElementStep;
use crate::transform::plan::schema::Schema;

/// The number of the claim that proves something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Claim {
    /// At most one `//`: no element is reached in two ways.
    One,
    /// No element of a `//` step but the last is on a loop: neither is one.
    Two,
    /// Neither the binding path nor the path from there on reaches an element in two ways.
    Three,
    /// No `//` up to the bound element: they all lie at one depth.
    Four,
    /// The bound element is on no loop with an element of a `//` step before it.
    Five,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}", *self as u8 + 1)
    }
}

/// Claims 1 and 2: a stream of the path's tuples has no duplicates in the last field.
pub fn distinct(steps: &[ElementStep], schema: Option<&Schema>) -> Option<Claim> {
    let mut deep = steps.iter().filter(|step| step.axis == Axis::Descendant).rev();
    deep.next();
    if deep.clone().next().is_none() {
        return Some(Claim::One);
    }
    let schema = schema?;
    deep.all(|step| !schema.is_on_loop(&step.test)).then_some(Claim::Two)
}

/// Claim 3: none in the pair of bound element and last field.
pub fn distinct_pairs(
    binding: &[ElementStep],
    rest: &[ElementStep],
    schema: Option<&Schema>,
) -> Option<Claim> {
    distinct(binding, schema)?;
    distinct(rest, schema)?;
    Some(Claim::Three)
}

/// Claims 4 and 5: a stream ordered by its last field is ordered by the bound element, too.
pub fn ordered(binding: &[ElementStep], schema: Option<&Schema>) -> Option<Claim> {
    let mut deep = binding.iter().filter(|step| step.axis == Axis::Descendant);
    if deep.clone().next().is_none() {
        return Some(Claim::Four);
    }
    let (schema, bound) = (schema?, binding.last()?);
    deep.all(|step| !schema.are_on_same_loop(&step.test, &bound.test)).then_some(Claim::Five)
}
