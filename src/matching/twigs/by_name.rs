//! The elements of a document by name: a counting sort, made when the first `//name` step needs it.

use crate::document::Document;
use crate::ids::{ElementId, NameId};

#[derive(Default)]
pub struct ElementsByName {
    ready: bool,
    /// Elements by name, in document order within a name.
    elements: Vec<ElementId>,
    /// Per name, one past its last element; the elements of a name begin where those of the name before end.
    ends: Vec<u32>,
}

impl ElementsByName {
    /// Forgets the last document.
    pub fn reset(&mut self) {
        self.ready = false;
    }

    /// The positions of the elements called `name` that lie in a range of elements.
    pub fn range(&mut self, document: &Document, name: NameId, (start, end): (u32, u32)) -> (usize, usize) {
        if !self.ready {
            self.sort(document);
        }
        if name.index() >= self.ends.len() {
            return (0, 0);
        }
        let first = if name.0 == 0 { 0 } else { self.ends[name.index() - 1] as usize };
        let named = &self.elements[first..self.ends[name.index()] as usize];
        let from = named.partition_point(|element| element.0 < start);
        let to = from + named[from..].partition_point(|element| element.0 < end);
        (first + from, first + to)
    }

    #[inline]
    pub fn at(&self, place: usize) -> ElementId {
        self.elements[place]
    }

    fn sort(&mut self, document: &Document) {
        self.ready = true;
        let names = document.elements.iter().map(|element| element.name.index() + 1).max().unwrap_or(0);
        self.ends.clear();
        self.ends.resize(names + 1, 0);
        document.elements.iter().for_each(|element| self.ends[element.name.index() + 1] += 1);
        for name in 0..names {
            self.ends[name + 1] += self.ends[name];
        }
        self.elements.clear();
        self.elements.resize(document.elements.len(), ElementId::NONE);
        // Filling moves each start to the end of its name: starts become ends.
        for (index, element) in document.elements.iter().enumerate() {
            let place = &mut self.ends[element.name.index()];
            self.elements[*place as usize] = ElementId::from(index);
            *place += 1;
        }
        self.ends.truncate(names);
    }
}
