//! Query → what a message needs to match it: for each of its alternatives the one linear path, with its test, that tells
//! most. And the place of the query, by which it is put into a shard.
//!
//! ```text
//! /order[@sku = 'A-1'][note]   →  /order/@sku with the value 'A-1'
//! //a[b > 3]                   →  //a/b with a number above 3
//! //a/b or //c                 →  //a/b is there; or //c is there
//! not(//a)                     →  nothing
//! ```
//!
//! An equality tells more than a path, and a long path more than a short one. The choice depends on the query alone, so
//! equal queries are always in the same shard.

use crate::query::ast::{Expr, Literal, Operator, Query, Test};
use crate::query::weaken::{NecessaryLine, weaken};
use crate::query::{Namespaces, QueryId, parse};
use crate::util::hash::folded_multiply;

/// What one alternative needs of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Need {
    /// A node of the path with this value.
    Value {
        path: String,
        kind: Kind,
        value: u64,
    },
    /// A number of the path that is not below, or not above, the bound.
    AtLeast {
        path: String,
        bound: f64,
    },
    AtMost {
        path: String,
        bound: f64,
    },
    /// A node of the path.
    Path {
        path: String,
    },
    Nothing,
}

/// How a value is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Kind {
    Text = 1,
    Number = 2,
    Normalized = 4,
}

/// How queries are put into shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// By the id of the query.
    Hash,
    /// By what a message needs: queries that need the same value are side by side, those that need nothing are apart.
    Test,
}

/// The needs of a query, one for each alternative; none if it never matches.
pub fn needs_of(query: &Query) -> Vec<Need> {
    let alternatives = weaken(query).alternatives;
    alternatives.iter().map(|lines| need_of(lines)).collect()
}

fn need_of(lines: &[NecessaryLine]) -> Need {
    let best = lines.iter().filter_map(|line| Some((rank(line)?, line))).min_by(|a, b| a.0.cmp(&b.0));
    let Some((_, line)) = best else { return Need::Nothing };
    let path = line.path.clone();
    match &line.test {
        Test::Compare(Operator::Equal, Literal::Text(text)) => {
            Need::Value { path, kind: Kind::Text, value: hash_of(text.as_bytes()) }
        }
        Test::Compare(Operator::Equal, Literal::Number(number)) => {
            Need::Value { path, kind: Kind::Number, value: hash_of_number(*number) }
        }
        Test::Normalized(text) => {
            Need::Value { path, kind: Kind::Normalized, value: hash_of(text.as_bytes()) }
        }
        Test::Compare(Operator::Greater | Operator::GreaterOrEqual, Literal::Number(bound)) => {
            Need::AtLeast { path, bound: *bound }
        }
        Test::Compare(Operator::Less | Operator::LessOrEqual, Literal::Number(bound)) => {
            Need::AtMost { path, bound: *bound }
        }
        _ => Need::Path { path },
    }
}

/// The order of preference: the kind of test, then long paths, then the text. None if it cannot be routed by.
fn rank(line: &NecessaryLine) -> Option<(u8, usize, &str)> {
    let class = match &line.test {
        Test::Compare(Operator::Equal, Literal::Text(text)) if !text.is_empty() => 0,
        Test::Compare(Operator::Equal, _) | Test::Normalized(_) => 1,
        _ => 2,
    };
    (!line.path.is_empty()).then(|| (class, usize::MAX - line.steps, line.line.as_str()))
}

/// The place of a query among all: a class (2 bits), what it needs (62 bits), the query (64 bits). A shard holds the
/// queries between two places.
pub fn place(query: &Query, tenant: &str, placement: Placement) -> u128 {
    let id = u64::from_le_bytes(query.id().0[..8].try_into().expect("eight bytes"));
    let tenant = hash_of(tenant.as_bytes());
    let own = folded_multiply(id ^ tenant, 0xA24B_AED4_963E_E407);
    let (class, key) = match placement {
        Placement::Hash => (0, own),
        Placement::Test => {
            let needs = needs_of(query);
            let all = needs.iter().map(|need| class_and_key(need, tenant));
            // A query with several alternatives is as broad as the broadest of them.
            all.max().unwrap_or((0, own))
        }
    };
    (class as u128) << 126 | (key as u128 >> 2) << 64 | own as u128
}

/// The last class are the *broad* shards, which all messages of their tenants visit: tenants are side by side there.
fn class_and_key(need: &Need, tenant: u64) -> (u8, u64) {
    match need {
        Need::Value { path, kind, value } => (0, key(base_of(tenant, path_id(path)), *kind, *value)),
        Need::Path { path } | Need::AtLeast { path, .. } | Need::AtMost { path, .. } => {
            (1, base_of(tenant, path_id(path)))
        }
        Need::Nothing => (3, tenant),
    }
}

/// The id of a path as a query, shortened.
fn path_id(path: &str) -> u64 {
    short_id(QueryId::of(path))
}

pub fn short_id(id: QueryId) -> u64 {
    u64::from_le_bytes(id.0[..8].try_into().expect("eight bytes"))
}

/// What the keys of a tenant's path have in common.
pub fn base_of(tenant: u64, path: u64) -> u64 {
    folded_multiply(tenant ^ 0x9FB2_1C65_1E98_DF25, path | 1)
}

/// The key of a value at a path.
#[inline]
pub fn key(base: u64, kind: Kind, value: u64) -> u64 {
    folded_multiply(base ^ (kind as u64) << 56, value ^ 0xD6E8_FEB8_6659_FD93)
}

/// Hashes bytes. The hash is not secret: messages with colliding values visit shards in vain, at worst all.
#[inline]
pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = 0x243F_6A88_85A3_08D3 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = folded_multiply(hash ^ u64::from_le_bytes(word), 0x9E37_79B9_7F4A_7C15);
    }
    hash
}

/// Hashes a number, which is not NaN; -0 equals 0.
#[inline]
pub fn hash_of_number(number: f64) -> u64 {
    folded_multiply((number + 0.0).to_bits(), 0xE703_7ED1_A0B4_28DB)
}

/// Whether a path is one linear path for the index, so that it can be looked up.
pub fn is_linear(path: &str) -> bool {
    parse(path, &Namespaces::default()).is_ok_and(|query| matches!(&query.expr, Expr::Path(_, Test::Exists)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Vec<Need> {
        needs_of(&parse(text, &Namespaces::default()).expect("a query"))
    }

    #[test]
    fn an_equality_is_preferred_to_a_path_and_a_long_path_to_a_short_one() {
        let path = |path: &str| Need::Path { path: path.to_string() };
        let value = |path: &str, text: &str| Need::Value {
            path: path.to_string(),
            kind: Kind::Text,
            value: hash_of(text.as_bytes()),
        };
        assert_eq!(needs("/order[@sku = 'A-1'][note]"), [value("/order/@sku", "A-1")]);
        assert_eq!(needs("//a[b]/c/d"), [path("//a/c/d")]);
        assert_eq!(needs("//a[b > 3]"), [Need::AtLeast { path: "//a/b".to_string(), bound: 3.0 }]);
        assert_eq!(needs("not(//a)"), [Need::Nothing]);
        assert_eq!(needs("/a[0]"), []);
        assert_eq!(needs("//b or //a/@x = 'y'"), [value("//a/@x", "y"), path("//b")]);
    }

    #[test]
    fn queries_that_need_the_same_value_are_side_by_side_and_those_that_need_nothing_are_last() {
        let at = |text: &str| place(&parse(text, &Namespaces::default()).unwrap(), "t", Placement::Test);
        let (one, two) = (at("//a[@x = 'k'][b]"), at("//a[@x = 'k'][c]"));
        assert_eq!(one >> 64, two >> 64);
        assert_ne!(one, two);
        assert!(one < at("//b") && at("//b") < at("not(//b)"));
        assert_eq!(at("//a[b][c]"), at("//a[c][b]"));
    }
}
