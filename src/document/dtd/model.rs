//! Content models, and how often each child may occur under them: `(a, b?, (c | a)*)` gives `a` at least
//! once, `b` at most once, `c` any number of times.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    Empty,
    Any,
    /// Text, with these elements among it in any number and order.
    Mixed(Vec<String>),
    Children(Particle),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence {
    Once,
    /// `?`
    Optional,
    /// `*`
    Repeated,
    /// `+`
    AtLeastOnce,
}

impl Occurrence {
    pub fn symbol(self) -> &'static str {
        match self {
            Occurrence::Once => "",
            Occurrence::Optional => "?",
            Occurrence::Repeated => "*",
            Occurrence::AtLeastOnce => "+",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Particle {
    pub kind: ParticleKind,
    pub occurrence: Occurrence,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParticleKind {
    Name(String),
    Sequence(Vec<Particle>),
    Choice(Vec<Particle>),
}

/// How often a child occurs under one parent; no `max` means unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cardinality {
    pub min: u32,
    pub max: Option<u32>,
}

impl Cardinality {
    pub const ANY: Cardinality = Cardinality { min: 0, max: None };
    const NONE: Cardinality = Cardinality { min: 0, max: Some(0) };
    const ONE: Cardinality = Cardinality { min: 1, max: Some(1) };

    /// Of a sequence of both.
    fn plus(self, other: Cardinality) -> Cardinality {
        Cardinality {
            min: self.min.saturating_add(other.min),
            max: self.max.zip(other.max).map(|(one, two)| one.saturating_add(two)),
        }
    }

    /// Of a choice between both.
    fn or(self, other: Cardinality) -> Cardinality {
        Cardinality {
            min: self.min.min(other.min),
            max: self.max.zip(other.max).map(|(one, two)| one.max(two)),
        }
    }

    fn times(self, occurrence: Occurrence) -> Cardinality {
        match occurrence {
            Occurrence::Once => self,
            Occurrence::Optional => Cardinality { min: 0, ..self },
            Occurrence::Repeated => Cardinality::ANY,
            Occurrence::AtLeastOnce => Cardinality { max: None, ..self },
        }
    }
}

impl Particle {
    /// The elements of the model in the order of first mention, with their cardinalities.
    pub fn cardinalities(&self) -> Vec<(&str, Cardinality)> {
        let counts = self.count();
        let mut ordered = Vec::with_capacity(counts.len());
        let mut seen = BTreeSet::new();
        self.names(&mut |name| {
            if seen.insert(name) {
                ordered.push((name, counts[name]));
            }
        });
        ordered
    }

    fn names<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match &self.kind {
            ParticleKind::Name(name) => visit(name),
            ParticleKind::Sequence(parts) | ParticleKind::Choice(parts) => {
                parts.iter().for_each(|part| part.names(visit));
            }
        }
    }

    fn count(&self) -> BTreeMap<&str, Cardinality> {
        let mut counts: BTreeMap<&str, Cardinality> = BTreeMap::new();
        match &self.kind {
            ParticleKind::Name(name) => {
                counts.insert(name, Cardinality::ONE);
            }
            ParticleKind::Sequence(parts) => {
                for (name, count) in parts.iter().flat_map(Particle::count) {
                    let sum = counts.entry(name).or_insert(Cardinality::NONE);
                    *sum = sum.plus(count);
                }
            }
            ParticleKind::Choice(parts) => {
                // A name's minimum is 0 as soon as one branch lacks it: count the branches that have it.
                let mut having: BTreeMap<&str, usize> = BTreeMap::new();
                for (name, count) in parts.iter().flat_map(Particle::count) {
                    *having.entry(name).or_insert(0) += 1;
                    counts.entry(name).and_modify(|either| *either = either.or(count)).or_insert(count);
                }
                for (name, count) in &mut counts {
                    if having[name] < parts.len() {
                        count.min = 0;
                    }
                }
            }
        }
        for count in counts.values_mut() {
            *count = count.times(self.occurrence);
        }
        counts
    }
}
