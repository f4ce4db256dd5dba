//! Lines without superfluous `//`, for messages that conform to a DTD (seed 001 §6.6.1).

use crate::query::ast::{Axis, Name, NameTest};
use crate::query::element_path::{ElementPath, ElementStep};
use crate::transform::plan::schema::{Declared, Schema};

/// Writes out each `//` that stands for a single way down. `above` is what the first step starts at.
///
/// Before: `//figure//image`. After, if the DTD has no other way: `/book/figure/image`.
pub fn rewrite(line: &[ElementStep], above: PathStart, schema: &Schema) -> ElementPath {
    let mut rewritten = ElementPath::with_capacity(line.len());
    let mut above = above;
    for step in line {
        let declared = schema.declared(&step.test);
        let way = match (step.axis, above, declared) {
            (Axis::Descendant, PathStart::Document, Some(to)) => schema.only_way(None, to),
            (Axis::Descendant, PathStart::Element(from), Some(to)) => schema.only_way(Some(from), to),
            _ => None,
        };
        match way {
            Some(way) => rewritten.extend(way.into_iter().map(|element| child(schema.name(element)))),
            None => rewritten.push(step.clone()),
        }
        above = declared.map_or(PathStart::Unknown, PathStart::Element);
    }
    rewritten
}

/// Where a step starts.
#[derive(Clone, Copy)]
pub enum PathStart {
    Document,
    Element(Declared),
    /// At no single element of the DTD.
    Unknown,
}

impl PathStart {
    /// Where a step after these starts.
    pub fn after(line: &[ElementStep], schema: &Schema) -> PathStart {
        match line.last() {
            None => PathStart::Document,
            Some(step) => schema.declared(&step.test).map_or(PathStart::Unknown, PathStart::Element),
        }
    }
}

fn child(name: &str) -> ElementStep {
    let test = NameTest::Name(Name { uri: String::new(), local: name.to_string() });
    ElementStep { axis: Axis::Child, test }
}
