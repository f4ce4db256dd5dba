//! A kind of operator: each told from the others by its signature, so that equal ones are one.

use std::hash::Hash;

use rustc_hash::FxHashMap;

pub struct Interner<S> {
    signatures: Vec<S>,
    ids: FxHashMap<S, u32>,
}

impl<S> Default for Interner<S> {
    fn default() -> Interner<S> {
        Interner { signatures: Vec::new(), ids: FxHashMap::default() }
    }
}

impl<S: Clone + Eq + Hash> Interner<S> {
    /// The operator with this signature.
    pub fn get(&mut self, signature: S) -> u32 {
        if let Some(&id) = self.ids.get(&signature) {
            return id;
        }
        let id = self.signatures.len() as u32;
        self.signatures.push(signature.clone());
        self.ids.insert(signature, id);
        id
    }

    pub fn at(&self, id: u32) -> &S {
        &self.signatures[id as usize]
    }

    pub fn count(&self) -> usize {
        self.signatures.len()
    }
}
