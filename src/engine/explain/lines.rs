//! The nodes that the linear paths of a query bind in a message. Each step is evaluated once for all paths that share
//! it, from all elements that the step before binds: the cost is steps × elements, however many paths there are.

use rustc_hash::FxHashMap;

use crate::document::{Document, NodeRef};
use crate::ids::ElementId;
use crate::matching::automaton::names::Names;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::verify::Verifier;
use crate::query::ast::{Axis, NameTest};
use crate::query::decompose::{DOCUMENT, Decomposition, LinearPath, Subject, TwigStep};
use crate::query::envelope::is_root;
use crate::util::bitset::Bits;

/// The number of nodes that a linear path binds.
#[derive(Clone, Default)]
pub struct Binding {
    /// How many nodes.
    pub nodes: usize,
    /// If it binds none, how many of its steps do bind something, and the first node that they bind.
    pub stops: Option<(usize, NodeRef)>,
}

/// The end of a line as twigs, seen from the element that its path leads to.
#[derive(Clone, Copy)]
pub struct End {
    /// The subject of the path's test.
    pub subject: u32,
    /// The subject with its test.
    pub tested: u32,
}

pub struct Lines<'a> {
    pub parts: &'a Decomposition<'a>,
    /// Per line.
    pub ends: &'a [End],
    pub document: &'a Document,
    pub names: &'a Names,
    /// Walks the twigs of the ends.
    pub verifier: Verifier<'a>,
}

/// The elements that the steps up to a twig node bind.
struct Bound {
    elements: Bits,
    /// The outermost of them: first element and one past the last.
    outermost: Vec<(ElementId, ElementId)>,
}

impl Lines<'_> {
    /// Binds each line.
    pub fn bind(mut self) -> Result<Vec<Binding>, WorkLimit> {
        let parts = self.parts;
        let mut bindings = vec![Binding::default(); parts.lines.len()];
        let mut firsts: Vec<Option<ElementId>> = vec![None; parts.nodes.len()];
        let (mut after, mut ending) =
            (vec![Vec::new(); parts.nodes.len()], vec![Vec::new(); parts.nodes.len()]);
        let mut next: Vec<(u32, usize)> = Vec::new();
        for (node, step) in (0..).zip(&parts.nodes) {
            match step.parent {
                DOCUMENT => next.push((node, 0)),
                parent => after[parent as usize].push(node),
            }
        }
        for (at, line) in parts.lines.iter().enumerate() {
            ending[line.node as usize].push(at);
        }
        let mut by_name = ElementsByName::default();
        // The bound elements on the way to the current node only, so that few sets exist at a time.
        let mut way: Vec<Bound> = Vec::new();
        while let Some((node, before)) = next.pop() {
            way.truncate(before);
            let elements = self.step(&parts.nodes[node as usize], way.last(), &mut by_name);
            let Some(first) = elements.iter().next().map(ElementId) else { continue };
            firsts[node as usize] = Some(first);
            for &at in &ending[node as usize] {
                bindings[at] = self.end(at, before + 1, &elements)?;
            }
            let after = &after[node as usize];
            next.extend(after.iter().map(|&node| (node, before + 1)));
            let is_deep = |&node: &u32| parts.nodes[node as usize].axis == Axis::Descendant;
            let outermost = if after.iter().any(is_deep) { self.outermost(&elements) } else { Vec::new() };
            way.push(Bound { elements, outermost });
        }
        for (binding, line) in bindings.iter_mut().zip(&parts.lines) {
            if binding.nodes == 0 && binding.stops.is_none() {
                binding.stops = stops(parts, line, &firsts);
            }
        }
        Ok(bindings)
    }

    /// The elements that a step leads to from those above, or from the document node.
    fn step(&self, step: &TwigStep<'_>, above: Option<&Bound>, by_name: &mut ElementsByName) -> Bits {
        let document = self.document;
        let in_message = above.is_none() && !is_root(step.test);
        let count = if in_message { document.message_end() } else { document.elements.len() };
        let mut elements = Bits::new(document.elements.len());
        let is_below = |element: ElementId| {
            let parent = document.element(element).parent;
            match (step.axis, above) {
                (Axis::Child, None) => parent.is_none(),
                (Axis::Child, Some(above)) => parent.is_some() && above.elements.get(parent.0),
                (Axis::Descendant, None) => true,
                (Axis::Descendant, Some(Bound { outermost, .. })) => {
                    let before = outermost.partition_point(|&(start, _)| start < element);
                    before > 0 && element < outermost[before - 1].1
                }
            }
        };
        let mut visit = |element: ElementId| {
            if is_below(element) {
                elements.set(element.0);
            }
        };
        let label = self.names.label_of(step.test);
        match step.test {
            NameTest::Name(_) => {
                let (start, end) = by_name.range(document, self.names.name_of(label), (0, count as u32));
                (start..end).for_each(|place| visit(by_name.at(place)));
            }
            NameTest::Any => (0..count).map(ElementId::from).for_each(visit),
            NameTest::AnyIn(_) | NameTest::Local(_) => {
                let named =
                    |element: &ElementId| self.names.of(document.element(*element).name).pass_wildcard(label);
                (0..count).map(ElementId::from).filter(named).for_each(visit);
            }
        }
        elements
    }

    /// Where elements are that lie in no other.
    fn outermost(&self, elements: &Bits) -> Vec<(ElementId, ElementId)> {
        let mut outermost = Vec::new();
        let mut until = ElementId(0);
        for element in elements.iter().map(ElementId) {
            if element >= until {
                until = self.document.element(element).end;
                outermost.push((element, until));
            }
        }
        outermost
    }

    /// The binding of a line whose first `steps` steps bind these elements.
    fn end(&mut self, at: usize, steps: usize, elements: &Bits) -> Result<Binding, WorkLimit> {
        let line = &self.parts.lines[at];
        let nodes = match line.subject {
            Subject::Element => elements.iter().count(),
            Subject::Position(_) => self.count_placed(line, elements),
            Subject::Attribute(_) | Subject::Text | Subject::Value => {
                self.select(self.ends[at].tested, elements)?.0
            }
        };
        let first = || elements.iter().next().map(|first| (steps, NodeRef::Element(ElementId(first))));
        let stops = match line.subject {
            _ if nodes > 0 => None,
            Subject::Attribute(_) | Subject::Text => {
                let leaf = self.select(self.ends[at].subject, elements)?.1;
                leaf.map(|leaf| (steps + 1, leaf)).or_else(first)
            }
            Subject::Element | Subject::Value | Subject::Position(_) => first(),
        };
        Ok(Binding { nodes, stops })
    }

    /// How many nodes a twig selects from elements, and the first of them.
    fn select(&mut self, twig: u32, elements: &Bits) -> Result<(usize, Option<NodeRef>), WorkLimit> {
        let (mut count, mut first) = (0, None);
        let mut nodes = Vec::new();
        for element in elements.iter().map(ElementId) {
            self.verifier.select_from(twig, element, &mut nodes)?;
            count += nodes.len();
            // Texts of an element may come after those of one in it.
            first = first.into_iter().chain(nodes.drain(..)).min_by_key(|&node| self.document.order(node));
        }
        Ok((count, first))
    }

    /// Counts the elements at the position among their siblings that a line tests. The siblings that pass the
    /// same name test are all bound.
    fn count_placed(&self, line: &LinearPath<'_>, elements: &Bits) -> usize {
        let Some(asked) = super::place_asked(line) else { return 0 };
        let mut places: FxHashMap<ElementId, u32> = FxHashMap::default();
        let placed = elements.iter().filter(|&element| {
            let place = places.entry(self.document.element(ElementId(element)).parent).or_default();
            *place += 1;
            *place == asked
        });
        placed.count()
    }
}

/// Where a line stops whose last step binds nothing.
fn stops(
    parts: &Decomposition<'_>,
    line: &LinearPath<'_>,
    firsts: &[Option<ElementId>],
) -> Option<(usize, NodeRef)> {
    let step = |node: u32| (node != DOCUMENT).then(|| parts.nodes[node as usize].parent);
    let mut nodes =
        std::iter::successors(Some(line.node), |&node| step(node)).take_while(|&at| at != DOCUMENT);
    let last = nodes.by_ref().find(|&node| firsts[node as usize].is_some())?;
    Some((nodes.count() + 1, NodeRef::Element(firsts[last as usize]?)))
}
