//! Replaces `//` by child steps where a DTD allows a single path, for messages that conform (seed 001 §6.6.1).

use crate::query::ast::{Axis, Name, NameTest};
use crate::query::element_path::{ElementPath, ElementStep};
use crate::transform::plan::schema::{Declared, Schema};

/// Replaces each `//` that stands for a single path. `start` is where the first step starts.
///
/// Before: `//figure//image`. After, if the DTD has no other path: `/book/figure/image`.
pub fn rewrite(path: &[ElementStep], mut start: PathStart, schema: &Schema) -> ElementPath {
    let mut rewritten = ElementPath::with_capacity(path.len());
    for step in path {
        let declared = schema.declared(&step.test);
        let only_path = match (step.axis, start, declared) {
            (Axis::Descendant, PathStart::Document, Some(to)) => schema.only_path(None, to),
            (Axis::Descendant, PathStart::Element(from), Some(to)) => schema.only_path(Some(from), to),
            _ => None,
        };
        match only_path {
            Some(path) => rewritten.extend(path.into_iter().map(|element| child_step(schema.name(element)))),
            None => rewritten.push(step.clone()),
        }
        start = declared.map_or(PathStart::Unknown, PathStart::Element);
    }
    rewritten
}

/// Where a step starts.
#[derive(Clone, Copy)]
pub enum PathStart {
    Document,
    Element(Declared),
    /// Not at a single element of the DTD.
    Unknown,
}

impl PathStart {
    /// Where a step after these starts.
    pub fn after(path: &[ElementStep], schema: &Schema) -> PathStart {
        match path.last() {
            None => PathStart::Document,
            Some(step) => schema.declared(&step.test).map_or(PathStart::Unknown, PathStart::Element),
        }
    }
}

fn child_step(name: &str) -> ElementStep {
    let test = NameTest::Name(Name { uri: String::new(), local: name.to_string() });
    ElementStep { axis: Axis::Child, test }
}
