//! Queries → a frozen segment. Each query is decomposed when it is added; its linear paths go into one shared trie.
//!
//! ```text
//! //a/b[@x = 1]    trie //a ─/b─ 2    condition 0: @x = 1 at node 2            alternative {0}
//! //a[c]/b         trie //a ─/c─ 3    conditions 1: node 2, 2: node 3          alternative {1, 2}, anchor //a
//! ```
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | adds queries: trie, conditions, alternatives |
//! | `alternatives` | the alternatives while building |
//! | `transformations` | the linear paths of transformations |
//! | `frequency` | how often conditions hold |
//! | `freeze` | writes the flat arrays |
//! | `sizes` | limits of a segment |

pub mod alternatives;
mod freeze;
pub mod frequency;
pub mod sizes;
mod transformations;

use rustc_hash::FxHashMap;

use crate::ids::{AnchorId, ConditionId, Id, LabelId, SubjectId, TenantId, TrieNodeId};
use crate::query::QueryId;
use crate::query::ast::{Literal, NameTest, Query};
use crate::query::decompose::{Alternative, Check, DOCUMENT, Decomposition, LinearPath, Subject, decompose};
use crate::query::joined::with_records;
use crate::segment::build::alternatives::Alternatives;
use crate::segment::format::NONE;
use crate::segment::format::constants::{Constant, Constants};
use crate::segment::format::entries::*;
use crate::segment::format::labels::Labels;
use crate::segment::format::trie::Trie;
use crate::segment::rows::range::Range;
use crate::segment::rows::shape::Under;
use crate::segment::twig::Twigs;
use crate::tuning::{PRIOR_ANY, PRIOR_EQUAL, PRIOR_PATH, PRIOR_PRESENT, PRIOR_UNEQUAL};

/// An entry while a segment is built.
struct Entry {
    node: TrieNodeId,
    subject: SubjectId,
    exists: ConditionId,
    slot: u32,
    flags: u8,
    /// Side, bound, condition.
    bounds: Vec<(u8, f64, ConditionId)>,
}

/// A condition while a segment is built.
#[derive(Clone, Copy)]
struct Condition {
    /// The trie node it is reached at.
    node: TrieNodeId,
    /// The subject that it tests, `NONE` for the element itself, and the order of its constant.
    subject: SubjectId,
    constant: u64,
    /// The expected share of messages in which it holds, before anything is measured.
    prior: f32,
}

impl Condition {
    fn new(node: TrieNodeId, prior: f32) -> Condition {
        Condition { node, subject: SubjectId::NONE, constant: 0, prior }
    }
}

/// An id for some nodes of the trie, `NONE` for the others.
struct PerNode<I>(Vec<I>);

impl<I> Default for PerNode<I> {
    fn default() -> PerNode<I> {
        PerNode(Vec::new())
    }
}

impl<I: Id> PerNode<I> {
    fn at(&mut self, node: TrieNodeId) -> &mut I {
        if self.0.len() <= node.index() {
            self.0.resize(node.index() + 1, I::NONE);
        }
        &mut self.0[node.index()]
    }

    /// The nodes that have an id, with it.
    fn iter(&self) -> impl Iterator<Item = (TrieNodeId, I)> {
        (0..).map(TrieNodeId).zip(self.0.iter().copied()).filter(|&(_, id)| id != I::NONE)
    }
}

/// A distinct query of a tenant.
struct Planned {
    id: QueryId,
    tenant: TenantId,
    twig: u32,
    /// First and one past last of its alternatives.
    alternatives: (u32, u32),
}

impl Planned {
    /// Whether it is filed in several places, so that it could be found twice.
    fn is_multi(&self) -> bool {
        self.alternatives.1 - self.alternatives.0 > 1
    }
}

/// Collects queries, each reduced to flat parts at once, so that a million fit.
pub struct Builder {
    labels: Labels,
    trie: Trie,
    tenants: Vec<String>,
    tenant_ids: FxHashMap<String, TenantId>,
    constants: Constants,
    twigs: Twigs,

    entries: Vec<Entry>,
    entry_ids: FxHashMap<(TrieNodeId, SubjectId), u32>,
    conditions: Vec<Condition>,
    /// By trie node, as `anchors`.
    node_condition: PerNode<ConditionId>,
    equal: FxHashMap<(u32, Constant), ConditionId>,
    unequal: FxHashMap<(u32, Constant), ConditionId>,
    anchors: PerNode<AnchorId>,
    anchor_count: u32,
    /// Per slot, its entry.
    slot_entries: Vec<u32>,

    alternatives: Alternatives,
    queries: Vec<Planned>,
    query_ids: FxHashMap<(TenantId, QueryId), u32>,
    texts: Vec<u8>,
    text_ends: Vec<u64>,
    /// Each target, and the place of its query in `queries`.
    targets: Vec<(u64, u32)>,

    /// Scratch: the trie node of each twig node of the query being added.
    grown: Vec<TrieNodeId>,
}

impl Builder {
    /// A builder for queries of these tenants: each has a separate root in the trie, so that one
    /// tenant's message never meets another's queries. `expected` queries will fit without growing.
    pub fn new(tenants: Vec<String>, expected: usize) -> Builder {
        let mut trie = Trie::default();
        for _ in &tenants {
            trie.root();
        }
        let tenant_ids =
            tenants.iter().enumerate().map(|(id, name)| (name.clone(), TenantId::from(id))).collect();
        Builder {
            labels: Labels::default(),
            trie,
            tenants,
            tenant_ids,
            constants: Constants::default(),
            twigs: Twigs::default(),
            entries: Vec::new(),
            entry_ids: FxHashMap::default(),
            conditions: Vec::new(),
            node_condition: PerNode::default(),
            equal: FxHashMap::default(),
            unequal: FxHashMap::default(),
            anchors: PerNode::default(),
            anchor_count: 0,
            slot_entries: Vec::new(),
            alternatives: Alternatives::default(),
            queries: Vec::new(),
            query_ids: FxHashMap::with_capacity_and_hasher(expected, Default::default()),
            texts: Vec::new(),
            text_ends: Vec::new(),
            targets: Vec::new(),
            grown: Vec::new(),
        }
    }

    /// Adds a target with its query; equal queries of a tenant are one.
    pub fn add(&mut self, target: u64, tenant: &str, query: &Query, id: QueryId, canonical: &str) {
        let tenant = self.tenant_ids[tenant];
        let number = self.queries.len() as u32;
        let number = *self.query_ids.entry((tenant, id)).or_insert(number);
        self.targets.push((target, number));
        if number as usize == self.queries.len() {
            self.texts.extend(canonical.as_bytes());
            self.text_ends.push(self.texts.len() as u64);
            self.plan(tenant, query, id);
        }
    }

    pub fn tenants(&self) -> FxHashMap<String, TenantId> {
        self.tenant_ids.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Plans a query that is new: its lines become conditions, its alternatives rows to be filed.
    fn plan(&mut self, tenant: TenantId, query: &Query, id: QueryId) {
        if let Some(transformation) = &query.transformation {
            self.grow(tenant, transformation);
        }
        let with_records = with_records(query);
        let parts = decompose(with_records.as_ref().unwrap_or(query));
        self.grown.clear();
        for step in &parts.nodes {
            let parent =
                if step.parent == DOCUMENT { tenant.root() } else { self.grown[step.parent as usize] };
            let label = self.labels.label(step.test);
            self.grown.push(self.trie.child(parent, step.axis, label));
        }
        let first = self.alternatives.count();
        let mut exact = true;
        for alternative in &parts.alternatives {
            self.alternative(&parts, alternative);
            self.alternatives.drop_repeated(first);
            exact &= self.alternatives.is_sure(self.alternatives.count() - 1);
        }
        // Where data cannot serve a join, its queries are verified.
        let twig = match exact && with_records.is_none() {
            true => NONE,
            false => self.twigs.compile(&query.expr, &mut |test| self.labels.label(test)),
        };
        self.queries.push(Planned { id, tenant, twig, alternatives: (first, self.alternatives.count()) });
    }

    fn alternative(&mut self, parts: &Decomposition<'_>, alternative: &Alternative) {
        self.alternatives.begin(alternative.inexact.is_none());
        for (lines, negated) in [(&alternative.positive, false), (&alternative.negative, true)] {
            for &at in lines {
                let line = &parts.lines[at as usize];
                let reaches = alternative.anchors.iter().map(|&anchor| parts.reach(line.node, anchor));
                let counted = alternative.counted.as_ref().is_some_and(|counted| counted.lines.contains(&at));
                self.line(line, negated, Under::new(reaches, counted));
            }
        }
        for &anchor in &alternative.anchors {
            let node = self.grown[anchor as usize];
            let anchor = self.anchors.at(node);
            if anchor.is_none() {
                *anchor = AnchorId(self.anchor_count);
                self.anchor_count += 1;
            }
            self.alternatives.anchor(*anchor);
        }
        if let Some(counted) = &alternative.counted
            && let Some(place) = alternative.anchors.iter().position(|&anchor| anchor == counted.anchor)
        {
            self.alternatives.counted(place as u32, counted.position);
        }
    }

    /// Adds a line or its negation to the alternative that was begun last.
    fn line(&mut self, line: &LinearPath<'_>, negated: bool, under: Under) {
        if let Check::Range(operator, constant) = line.check {
            let slot = self.slot(line);
            match Range::new(slot, operator, constant, negated) {
                Some((range, bound)) => self.alternatives.range(range, bound, under),
                None => self.alternatives.weaken(),
            }
        } else if negated {
            let condition = self.condition(line);
            self.alternatives.negative(condition);
        } else {
            let condition = self.condition(line);
            self.alternatives.positive(condition, under);
        }
    }

    /// The condition of a line that is not a range.
    fn condition(&mut self, line: &LinearPath<'_>) -> ConditionId {
        let node = self.grown[line.node as usize];
        if line.subject == Subject::Element {
            let condition = self.node_condition.at(node);
            if condition.is_none() {
                *condition = ConditionId::from(self.conditions.len());
                let prior = if self.trie.label_of(node) == LabelId::ANY { PRIOR_ANY } else { PRIOR_PATH };
                self.conditions.push(Condition::new(node, prior));
            }
            return *condition;
        }
        let entry = self.entry(node, &line.subject);
        let subject = self.entries[entry as usize].subject;
        let constant = match line.check {
            Check::Exists => {
                let next = ConditionId::from(self.conditions.len());
                let exists = &mut self.entries[entry as usize].exists;
                if exists.is_some() {
                    return *exists;
                }
                *exists = next;
                self.conditions.push(Condition { subject, ..Condition::new(node, PRIOR_PRESENT) });
                return next;
            }
            Check::Equal(literal) | Check::Unequal(literal) => match literal {
                Literal::Text(text) => self.constants.text(text),
                Literal::Number(number) => self.constants.number(*number),
            },
            Check::Normalized(text) => self.constants.normalized(text),
            Check::Position(position) => self.constants.number(position as f64),
            Check::Range(..) => unreachable!("ranges have slots, not conditions"),
        };
        self.entries[entry as usize].flags |= match constant {
            Constant::Text(_) => ENTRY_TEXT,
            Constant::Number(_) => ENTRY_NUMBER,
            Constant::Normalized(_) => ENTRY_NORMALIZED,
        };
        let next = ConditionId::from(self.conditions.len());
        let (tests, prior) = match line.check {
            Check::Unequal(_) => (&mut self.unequal, PRIOR_UNEQUAL),
            Check::Position(position) => (&mut self.equal, 1.0 / (1.0 + position as f32)),
            _ => (&mut self.equal, PRIOR_EQUAL),
        };
        let condition = *tests.entry((entry, constant)).or_insert(next);
        if condition == next {
            let constant = self.constants.order(constant);
            self.conditions.push(Condition { subject, constant, ..Condition::new(node, prior) });
        }
        condition
    }

    /// The slot that gathers the numbers of a line's subject.
    fn slot(&mut self, line: &LinearPath<'_>) -> u32 {
        let node = self.grown[line.node as usize];
        let entry = self.entry(node, &line.subject);
        let slot = &mut self.entries[entry as usize].slot;
        if *slot == NONE {
            *slot = self.slot_entries.len() as u32;
            self.slot_entries.push(entry);
        }
        *slot
    }

    fn entry(&mut self, node: TrieNodeId, subject: &Subject<'_>) -> u32 {
        let subject = match subject {
            Subject::Attribute(NameTest::Any) => SubjectId::attribute(LabelId::ANY),
            Subject::Attribute(test) => SubjectId::attribute(self.labels.label(test)),
            Subject::Text => SubjectId::TEXT,
            Subject::Value => SubjectId::VALUE,
            Subject::Position(test) => SubjectId::position(test),
            Subject::Element => unreachable!("an element's condition belongs to its node"),
        };
        let entries = &mut self.entries;
        *self.entry_ids.entry((node, subject)).or_insert_with(|| {
            entries.push(Entry {
                node,
                subject,
                exists: ConditionId::NONE,
                slot: NONE,
                flags: 0,
                bounds: Vec::new(),
            });
            entries.len() as u32 - 1
        })
    }
}
