//! Stub.
use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::ElementId;
use crate::query::transformation::Transformation;

pub trait Lists {
    fn bindings(&self, block: usize) -> &[ElementId];
    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef];
}
#[derive(Clone, Debug)]
pub struct ConstructError {
    pub code: &'static str,
    pub reason: String,
    pub exceeded: Option<crate::error::Exceeded>,
}
pub fn construct(
    _: &Transformation,
    _: &Document,
    _: &Vocabulary,
    _: &impl Lists,
    _: usize,
    _: &mut Vec<u8>,
) -> Result<bool, ConstructError> {
    Ok(false)
}
