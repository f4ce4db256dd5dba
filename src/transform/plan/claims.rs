//! Proofs that a stream has no duplicates, or that its pairs come in order, so that an operator can be dropped.
//!
//! These are the five claims of seed 001 §6.5.1. Claims 1, 3 and 4 hold by the query alone: a path with few `//`
//! steps reaches no element twice. Claims 2 and 5 hold for messages that conform to a DTD in which the elements of
//! `//` steps are on no cycle. Example: `/a//b/c` has one `//`, so its elements are distinct (claim 1); `//a//b`
//! reaches a `b` inside two nested `a` twice, unless the DTD allows no `a` inside an `a` (claim 2).

use std::fmt;

use crate::query::ast::Axis;
use crate::query::element_path::ElementStep;
use crate::transform::plan::schema::Schema;

/// The number of the claim that proves something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Claim {
    /// At most one `//`: every element is reached by one path only.
    One,
    /// No element of a `//` step, except the last one, is on a cycle: every element is reached by one path only.
    Two,
    /// Both the binding path and the path from the bound element reach every element by one path only.
    Three,
    /// No `//` up to the bound element: all bound elements have the same depth.
    Four,
    /// The bound element is on no cycle with an element of an earlier `//` step.
    Five,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}", *self as u8 + 1)
    }
}

/// Claims 1 and 2: the elements at the end of a path are distinct.
pub fn distinct(steps: &[ElementStep], schema: Option<&Schema>) -> Option<Claim> {
    let mut descendant = steps.iter().filter(|step| step.axis == Axis::Descendant).rev();
    descendant.next();
    if descendant.clone().next().is_none() {
        return Some(Claim::One);
    }
    let schema = schema?;
    descendant.all(|step| !schema.is_on_cycle(&step.test)).then_some(Claim::Two)
}

/// Claim 3: the pairs of a bound element and an end are distinct.
pub fn distinct_pairs(
    binding: &[ElementStep],
    rest: &[ElementStep],
    schema: Option<&Schema>,
) -> Option<Claim> {
    distinct(binding, schema)?;
    distinct(rest, schema)?;
    Some(Claim::Three)
}

/// Claims 4 and 5: pairs ordered by their end are also ordered by the bound element.
pub fn ordered(binding: &[ElementStep], schema: Option<&Schema>) -> Option<Claim> {
    let mut descendant = binding.iter().filter(|step| step.axis == Axis::Descendant);
    if descendant.clone().next().is_none() {
        return Some(Claim::Four);
    }
    let (schema, bound) = (schema?, binding.last()?);
    descendant.all(|step| !schema.are_on_same_cycle(&step.test, &bound.test)).then_some(Claim::Five)
}
