//! Interns values: equal values get one dense number. The network interns operators by signature, so that equal
//! operators of different transformations run once per message.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::query::ast::{Name, NameTest};
use crate::query::element_path::{ElementPath, ElementStep};

pub struct Interner<T> {
    values: Vec<T>,
    ids: FxHashMap<T, u32>,
    /// Memory that the values own.
    owned_bytes: usize,
}

/// The memory that a value owns beside its own size.
pub trait OwnedBytes {
    fn owned_bytes(&self) -> usize {
        0
    }
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { values: Vec::new(), ids: FxHashMap::default(), owned_bytes: 0 }
    }
}

impl<T: Clone + Eq + Hash + OwnedBytes> Interner<T> {
    /// The number of a value, which is added if it is new.
    pub fn intern(&mut self, value: T) -> u32 {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let id = self.values.len() as u32;
        self.owned_bytes += 2 * value.owned_bytes();
        self.values.push(value.clone());
        self.ids.insert(value, id);
        id
    }

    pub fn at(&self, id: u32) -> &T {
        &self.values[id as usize]
    }

    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Memory of all values, about: each is stored twice.
    pub fn bytes(&self) -> usize {
        self.owned_bytes + self.values.len() * (2 * size_of::<T>() + size_of::<u32>())
    }
}

impl OwnedBytes for String {
    fn owned_bytes(&self) -> usize {
        self.len()
    }
}

impl OwnedBytes for ElementPath {
    fn owned_bytes(&self) -> usize {
        let names = |step: &ElementStep| match &step.test {
            NameTest::Any => 0,
            NameTest::AnyIn(part) | NameTest::Local(part) => part.len(),
            NameTest::Name(Name { uri, local }) => uri.len() + local.len(),
        };
        self.iter().map(|step| size_of::<ElementStep>() + names(step)).sum()
    }
}
