//! The summary of a shard: what its queries need of a message, together. A file, from which the routing index is built.
//!
//! It is bounded in bytes: of the paths with most values only the path is kept, so that any value there leads to the
//! shard. That makes it weaker, and never wrong.
//!
//! ```text
//! tamissum, format (u32), tenants (u32), of each: name, flags (u8: 1 always), paths (u32)
//!   of each path: text, flags (u8: 1 any node), lower bound and upper bound (f64), of each kind: keys (u32), key (u64)…
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::needs::{Kind, Need, base_of, hash_of, key, needs_of, short_id};
use crate::query::{Query, QueryId};

const MAGIC: &[u8; 8] = b"tamissum";
const FORMAT: u32 = 1;

/// The kinds of values, in the order of the file.
pub const KINDS: [Kind; 3] = [Kind::Text, Kind::Number, Kind::Normalized];

/// What the queries of a shard need, by tenant.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Summary {
    pub tenants: BTreeMap<String, TenantNeeds>,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct TenantNeeds {
    /// Whether some query needs nothing: all messages of the tenant visit the shard.
    pub always: bool,
    pub paths: BTreeMap<String, PathNeeds>,
}

/// Which nodes of a path lead to the shard.
#[derive(Clone, PartialEq, Debug)]
pub struct PathNeeds {
    /// Any node.
    pub any: bool,
    /// A number that is at least the lower bound, or at most the upper one.
    pub lower: f64,
    pub upper: f64,
    /// By kind, the keys of values.
    pub keys: [BTreeSet<u64>; 3],
}

impl Default for PathNeeds {
    fn default() -> PathNeeds {
        PathNeeds { any: false, lower: f64::INFINITY, upper: f64::NEG_INFINITY, keys: Default::default() }
    }
}

impl PathNeeds {
    fn key_count(&self) -> usize {
        self.keys.iter().map(BTreeSet::len).sum()
    }

    /// Whether numbers are compared with a bound.
    pub fn has_bounds(&self) -> bool {
        self.lower < f64::INFINITY || self.upper > f64::NEG_INFINITY
    }

    fn generalise(&mut self) {
        *self = PathNeeds { any: true, ..PathNeeds::default() };
    }
}

impl Summary {
    pub fn add(&mut self, tenant: &str, query: &Query) {
        let needs = self.tenants.entry(tenant.to_string()).or_default();
        let tenant = hash_of(tenant.as_bytes());
        for need in needs_of(query) {
            match need {
                Need::Nothing => needs.always = true,
                Need::Path { path } => needs.path(path).any = true,
                // A bound that is no number compares with nothing; it may as well lead here.
                Need::AtLeast { path, bound } => {
                    let lower = &mut needs.path(path).lower;
                    *lower = lower.min(bound);
                }
                Need::AtMost { path, bound } => {
                    let upper = &mut needs.path(path).upper;
                    *upper = upper.max(bound);
                }
                Need::Value { path, kind, value } => {
                    let base = base_of(tenant, short_id(QueryId::of(&path)));
                    let place = KINDS.iter().position(|&other| other == kind).expect("a kind");
                    needs.path(path).keys[place].insert(key(base, kind, value));
                }
            }
        }
    }

    /// Generalises it until it takes at most so many bytes, or nothing is left to generalise.
    pub fn fit(&mut self, most_bytes: usize) {
        for tenant in self.tenants.values_mut() {
            tenant.paths.values_mut().filter(|path| path.any).for_each(PathNeeds::generalise);
        }
        let mut bytes = self.bytes();
        let mut sizes: Vec<(usize, String, String)> = Vec::new();
        for (tenant, needs) in &self.tenants {
            let valued = needs.paths.iter().filter(|(_, path)| path.key_count() > 0);
            sizes.extend(valued.map(|(path, needs)| (needs.key_count(), tenant.clone(), path.clone())));
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        for (keys, tenant, path) in sizes {
            if bytes <= most_bytes {
                return;
            }
            bytes -= keys * size_of::<u64>();
            self.tenants
                .get_mut(&tenant)
                .and_then(|needs| needs.paths.get_mut(&path))
                .expect("there")
                .generalise();
        }
    }

    fn bytes(&self) -> usize {
        self.tenants
            .iter()
            .map(|(name, needs)| {
                let paths = needs.paths.iter();
                name.len() + paths.map(|(path, needs)| path.len() + 32 + 8 * needs.key_count()).sum::<usize>()
            })
            .sum()
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(FORMAT.to_le_bytes());
        out.extend((self.tenants.len() as u32).to_le_bytes());
        for (name, needs) in &self.tenants {
            push_text(&mut out, name);
            out.push(needs.always as u8);
            out.extend((needs.paths.len() as u32).to_le_bytes());
            for (path, needs) in &needs.paths {
                push_text(&mut out, path);
                out.push(needs.any as u8);
                out.extend(needs.lower.to_le_bytes());
                out.extend(needs.upper.to_le_bytes());
                for keys in &needs.keys {
                    out.extend((keys.len() as u32).to_le_bytes());
                    keys.iter().for_each(|key| out.extend(key.to_le_bytes()));
                }
            }
        }
        out
    }

    /// None if the bytes are damaged.
    pub fn read(bytes: &[u8]) -> Option<Summary> {
        let mut input = Input(bytes.strip_prefix(MAGIC)?);
        if input.number()? != FORMAT {
            return None;
        }
        let mut summary = Summary::default();
        for _ in 0..input.number()? {
            let name = input.text()?;
            let mut needs = TenantNeeds { always: input.flag()?, paths: BTreeMap::new() };
            for _ in 0..input.number()? {
                let path = input.text()?;
                let mut one = PathNeeds { any: input.flag()?, ..PathNeeds::default() };
                (one.lower, one.upper) = (f64::from_bits(input.word()?), f64::from_bits(input.word()?));
                for keys in &mut one.keys {
                    for _ in 0..input.number()? {
                        keys.insert(input.word()?);
                    }
                }
                needs.paths.insert(path, one);
            }
            summary.tenants.insert(name, needs);
        }
        input.0.is_empty().then_some(summary)
    }
}

impl TenantNeeds {
    fn path(&mut self, path: String) -> &mut PathNeeds {
        self.paths.entry(path).or_default()
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Bytes that are read from the front.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take::<1>().map(|[flag]| flag != 0)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Namespaces, parse};

    fn summary() -> Summary {
        let mut summary = Summary::default();
        for (tenant, text) in [
            ("t", "//a[@x = 'k']"),
            ("t", "//a[@x = 7][b]"),
            ("t", "//c[d > 3]"),
            ("u", "not(//a)"),
            ("u", "//e"),
        ] {
            summary.add(tenant, &parse(text, &Namespaces::default()).expect("a query"));
        }
        summary
    }

    #[test]
    fn a_summary_is_read_as_it_was_written_and_damage_is_seen() {
        let bytes = summary().write();
        assert_eq!(Summary::read(&bytes), Some(summary()));
        for end in 0..bytes.len() {
            assert_eq!(Summary::read(&bytes[..end]), None);
        }
    }

    #[test]
    fn a_summary_that_is_too_large_is_generalised() {
        let mut summary = summary();
        summary.fit(0);
        let paths = &summary.tenants["t"].paths;
        assert!(paths["//a/@x"].any && paths["//a/@x"].keys.iter().all(BTreeSet::is_empty));
        assert!(paths["//c/d"].has_bounds());
    }
}
