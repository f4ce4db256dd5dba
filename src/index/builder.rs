//! Queries in, a frozen segment out: the subscription flow's `plan → index segment`.

use rustc_hash::FxHashMap;

use crate::index::columns::{Columns, View};
use crate::index::constants::{Constant, Constants, freeze_equal, freeze_unequal};
use crate::index::frequency::{Frequencies, Measured, PRIOR_RANGE};
use crate::index::range::Range;
use crate::index::rows::{self, Alternatives, number_of};
use crate::index::segment::Segment;
use crate::index::trie::{ANY, Labels, NONE, Trie};
use crate::index::twig::Twigs;
use crate::query::QueryId;
use crate::query::ast::{Literal, NameTest, Query};
use crate::query::decompose::{Alternative, Check, DOCUMENT, Decomposition, Line, Subject, decompose};

/// Subjects of entries that are not attributes; labels are far below.
pub const SUBJECT_TEXT: u32 = u32::MAX - 1;
pub const SUBJECT_VALUE: u32 = u32::MAX - 2;
/// The place among siblings of the same name, or among all sibling elements.
pub const SUBJECT_POSITION: u32 = u32::MAX - 3;
pub const SUBJECT_POSITION_ANY: u32 = u32::MAX - 4;

/// Flags of entries: compared for equality with texts, with numbers.
pub const ENTRY_TEXT: u8 = 1;
pub const ENTRY_NUMBER: u8 = 2;

/// The share of messages in which a condition is expected to hold while none were seen.
const PRIOR_ANY: f32 = 0.6;
const PRIOR_PRESENT: f32 = 0.3;
const PRIOR_PATH: f32 = 0.2;
const PRIOR_EQUAL: f32 = 0.01;
const PRIOR_UNEQUAL: f32 = 0.4;

/// Up to so many bounds of a subject become conditions.
const FEW_BOUNDS: usize = 32;

/// An entry while a segment is built.
struct Entry {
    node: u32,
    subject: u32,
    exists: u32,
    slot: u32,
    flags: u8,
    /// Side, bound, condition.
    bounds: Vec<(u8, f64, u32)>,
}

/// A condition while a segment is built.
#[derive(Clone, Copy)]
struct Condition {
    /// The trie node it is reached at.
    node: u32,
    /// What it looks at, `NONE` for the element itself, and the order of its constant.
    subject: u32,
    constant: u64,
    /// How often to expect it before anything is measured.
    prior: f32,
}

impl Condition {
    fn new(node: u32, prior: f32) -> Condition {
        Condition {
            node,
            subject: NONE,
            constant: 0,
            prior,
        }
    }
}

/// A distinct query of a tenant.
struct Planned {
    id: QueryId,
    tenant: u32,
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
    tenant_ids: FxHashMap<String, u32>,
    constants: Constants,
    twigs: Twigs,

    entries: Vec<Entry>,
    entry_ids: FxHashMap<(u32, u32), u32>,
    conditions: Vec<Condition>,
    node_condition: FxHashMap<u32, u32>,
    equal: FxHashMap<(u32, Constant), u32>,
    unequal: FxHashMap<(u32, Constant), u32>,
    anchors: FxHashMap<u32, u32>,
    /// Per slot, its entry.
    slot_entries: Vec<u32>,

    alternatives: Alternatives,
    queries: Vec<Planned>,
    query_ids: FxHashMap<(u32, QueryId), u32>,
    texts: Vec<u8>,
    text_ends: Vec<u64>,
    /// (target, query)
    targets: Vec<(u64, u32)>,

    /// Scratch: the trie node of each twig node of the query being added.
    grown: Vec<u32>,
}

impl Builder {
    /// A builder for queries of these tenants: each has a root of its own in the trie, so that one
    /// tenant's message never meets another's queries. `expected` queries will fit without growing.
    pub fn new(tenants: Vec<String>, expected: usize) -> Builder {
        let mut trie = Trie::default();
        for _ in &tenants {
            trie.root();
        }
        let tenant_ids = tenants
            .iter()
            .enumerate()
            .map(|(id, name)| (name.clone(), id as u32))
            .collect();
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
            node_condition: FxHashMap::default(),
            equal: FxHashMap::default(),
            unequal: FxHashMap::default(),
            anchors: FxHashMap::default(),
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

    /// The roots of the tenants.
    pub fn tenants(&self) -> FxHashMap<String, u32> {
        self.tenant_ids.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Plans a query that is new: its lines become conditions, its alternatives rows to be filed.
    fn plan(&mut self, tenant: u32, query: &Query, id: QueryId) {
        let parts = decompose(query);
        self.grown.clear();
        for step in &parts.nodes {
            let parent = if step.parent == DOCUMENT {
                tenant
            } else {
                self.grown[step.parent as usize]
            };
            let label = self.labels.label(step.test);
            self.grown.push(self.trie.child(parent, step.axis, label));
        }
        let first = self.alternatives.count();
        let mut exact = true;
        for alternative in &parts.alternatives {
            self.alternative(&parts, alternative);
            exact &= self.alternatives.is_sure(self.alternatives.count() - 1);
        }
        let twig = if exact {
            NONE
        } else {
            self.twigs
                .compile(&query.expr, &mut |test| self.labels.label(test))
        };
        self.queries.push(Planned {
            id,
            tenant,
            twig,
            alternatives: (first, self.alternatives.count()),
        });
    }

    fn alternative(&mut self, parts: &Decomposition<'_>, alternative: &Alternative) {
        self.alternatives.begin(alternative.exact);
        for (lines, negated) in [(&alternative.positive, false), (&alternative.negative, true)] {
            for &line in lines {
                let line = &parts.lines[line as usize];
                let passes = |(bit, &anchor)| (parts.passes(line.node, anchor) as u32) << bit;
                let under = alternative.anchors.iter().take(32).enumerate().map(passes).sum();
                self.line(line, negated, under);
            }
        }
        for &anchor in &alternative.anchors {
            let node = self.grown[anchor as usize];
            let next = self.anchors.len() as u32;
            let anchor = *self.anchors.entry(node).or_insert(next);
            self.alternatives.anchor(anchor);
        }
    }

    /// Adds a line or its negation to the alternative that was begun last, with a bit for each
    /// anchor it passes through.
    fn line(&mut self, line: &Line<'_>, negated: bool, under: u32) {
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
    fn condition(&mut self, line: &Line<'_>) -> u32 {
        let node = self.grown[line.node as usize];
        if line.subject == Subject::Element {
            let next = self.conditions.len() as u32;
            let condition = *self.node_condition.entry(node).or_insert(next);
            if condition == next {
                let prior = if self.trie.label_of(node) == ANY {
                    PRIOR_ANY
                } else {
                    PRIOR_PATH
                };
                self.conditions.push(Condition::new(node, prior));
            }
            return condition;
        }
        let entry = self.entry(node, &line.subject);
        let subject = self.entries[entry as usize].subject;
        let constant = match line.check {
            Check::Exists => {
                let next = self.conditions.len() as u32;
                let exists = &mut self.entries[entry as usize].exists;
                if *exists != NONE {
                    return *exists;
                }
                *exists = next;
                self.conditions.push(Condition {
                    subject,
                    ..Condition::new(node, PRIOR_PRESENT)
                });
                return next;
            }
            Check::Equal(literal) | Check::Unequal(literal) => match literal {
                Literal::Text(text) => self.constants.text(text),
                Literal::Number(number) => self.constants.number(*number),
            },
            Check::Position(position) => self.constants.number(position as f64),
            Check::Range(..) => unreachable!("ranges have slots, not conditions"),
        };
        self.entries[entry as usize].flags |= match constant {
            Constant::Text(_) => ENTRY_TEXT,
            Constant::Number(_) => ENTRY_NUMBER,
        };
        let next = self.conditions.len() as u32;
        let (tests, prior) = match line.check {
            Check::Unequal(_) => (&mut self.unequal, PRIOR_UNEQUAL),
            Check::Position(position) => (&mut self.equal, 1.0 / (1.0 + position as f32)),
            _ => (&mut self.equal, PRIOR_EQUAL),
        };
        let condition = *tests.entry((entry, constant)).or_insert(next);
        if condition == next {
            let constant = self.constants.order(constant);
            self.conditions.push(Condition {
                subject,
                constant,
                ..Condition::new(node, prior)
            });
        }
        condition
    }

    /// The slot that gathers the numbers of a line's subject.
    fn slot(&mut self, line: &Line<'_>) -> u32 {
        let node = self.grown[line.node as usize];
        let entry = self.entry(node, &line.subject);
        let slot = &mut self.entries[entry as usize].slot;
        if *slot == NONE {
            *slot = self.slot_entries.len() as u32;
            self.slot_entries.push(entry);
        }
        *slot
    }

    fn entry(&mut self, node: u32, subject: &Subject<'_>) -> u32 {
        let subject = match subject {
            Subject::Attribute(NameTest::Any) => ANY,
            Subject::Attribute(test) => self.labels.label(test),
            Subject::Text => SUBJECT_TEXT,
            Subject::Value => SUBJECT_VALUE,
            Subject::Position if self.trie.label_of(node) == ANY => SUBJECT_POSITION_ANY,
            Subject::Position => SUBJECT_POSITION,
            Subject::Element => unreachable!("an element's condition belongs to its node"),
        };
        let entries = &mut self.entries;
        *self.entry_ids.entry((node, subject)).or_insert_with(|| {
            entries.push(Entry {
                node,
                subject,
                exists: NONE,
                slot: NONE,
                flags: 0,
                bounds: Vec::new(),
            });
            entries.len() as u32 - 1
        })
    }

    /// Freezes what was added. `measure` runs the automaton over messages seen and counts how
    /// often each condition holds, so that queries are filed under rare ones.
    pub fn freeze(mut self, measure: impl FnOnce(View<'_>) -> Measured) -> Segment {
        let mut columns = Columns::default();
        self.turn_ranges_into_conditions();
        let exact = self.exact_queries();
        let conditions = self.number_conditions(&exact);
        let queries = self.number_queries(&exact, &conditions);
        self.freeze_queries(&queries, &mut columns);
        self.alternatives.renumber(&conditions);
        self.freeze_automaton(&conditions, &mut columns);
        columns.counts = vec![
            conditions.len() as u32,
            self.anchors.len() as u32,
            self.slot_entries.len() as u32,
            exact.iter().filter(|&&condition| condition != NONE).count() as u32,
            self.queries.iter().filter(|query| query.is_multi()).count() as u32,
        ];
        // Nothing is filed if conditions say it all, and then nothing need be measured.
        let is_filed = exact.contains(&NONE);
        let measured = if is_filed {
            measure(columns.view())
        } else {
            Measured::default()
        };
        let mut priors = vec![0.0; conditions.len()];
        for (condition, &number) in self.conditions.iter().zip(&conditions) {
            priors[number as usize] = condition.prior;
        }
        let frequencies = Frequencies::new(priors, measured);
        let rows = self
            .queries
            .iter()
            .enumerate()
            .filter(|(number, _)| exact[*number] == NONE)
            .flat_map(|(number, query)| {
                let multi = query.is_multi();
                let (first, last) = query.alternatives;
                let queries = &queries;
                (first..last).map(move |alternative| rows::Planned {
                    query: queries[number],
                    tenant: query.tenant,
                    alternative,
                    multi,
                })
            });
        rows::freeze(
            rows,
            &self.alternatives,
            &frequencies,
            self.tenants.len(),
            &mut columns,
        );
        Segment::new(&columns, &self.texts, &self.text_ends)
    }

    /// Where a subject is compared with few bounds, each becomes a condition: it can then be looked
    /// up by value, combined and settled like the others. A subject with many keeps its slot, and
    /// rows compare its numbers.
    fn turn_ranges_into_conditions(&mut self) {
        let bounds = self.alternatives.bounds();
        let mut conditions = FxHashMap::default();
        for of_slot in bounds.chunk_by(|a, b| a.0 / 2 == b.0 / 2) {
            if of_slot.len() > FEW_BOUNDS {
                continue;
            }
            let slot = of_slot[0].0 / 2;
            let entry = &mut self.entries[self.slot_entries[slot] as usize];
            entry.slot = NONE;
            for &(side, bound) in of_slot {
                let next = self.conditions.len() as u32;
                conditions.insert((side, bound), next);
                entry.bounds.push((side as u8 & 1, number_of(bound), next));
                let (subject, constant) = (entry.subject, bound);
                self.conditions.push(Condition {
                    subject,
                    constant,
                    ..Condition::new(entry.node, PRIOR_RANGE)
                });
            }
        }
        self.alternatives.replace_ranges(&conditions);
    }

    /// Per query, the one condition that says exactly whether it matches, or `NONE`.
    ///
    /// A condition speaks for one query at most: the two then share a number, and a set bit is a
    /// match with no row in between.
    fn exact_queries(&self) -> Vec<u32> {
        let mut taken = vec![false; self.conditions.len()];
        let exact = |query: &Planned| {
            let (first, last) = query.alternatives;
            let condition = if last - first == 1 {
                self.alternatives.sole_condition(first)
            } else {
                None
            };
            match condition {
                Some(condition) if !std::mem::replace(&mut taken[condition as usize], true) => condition,
                _ => NONE,
            }
        };
        self.queries.iter().map(exact).collect()
    }

    /// New numbers for conditions: those of exact queries first, and in each part conditions that
    /// hold together side by side: those met at an element of a name, with a value of an attribute.
    /// It makes masks short and puts the rows that a message needs next to each other.
    fn number_conditions(&self, exact: &[u32]) -> Vec<u32> {
        let mut is_exact = vec![false; self.conditions.len()];
        exact
            .iter()
            .filter(|&&condition| condition != NONE)
            .for_each(|&condition| {
                is_exact[condition as usize] = true;
            });
        let key = |(at, condition): (usize, &Condition)| {
            let Condition {
                node,
                subject,
                constant,
                ..
            } = *condition;
            let met = (self.trie.label_of(node), subject.wrapping_add(1), constant);
            (!is_exact[at], met, self.trie.reversed(node), at as u32)
        };
        let mut order: Vec<_> = self.conditions.iter().enumerate().map(key).collect();
        order.sort_unstable();
        let mut numbers = vec![0; order.len()];
        for (number, &(_, _, _, condition)) in order.iter().enumerate() {
            numbers[condition as usize] = number as u32;
        }
        numbers
    }

    /// New numbers for queries: exact ones by their condition, then those with several
    /// alternatives, then the rest.
    fn number_queries(&self, exact: &[u32], conditions: &[u32]) -> Vec<u32> {
        let exact_count = exact.iter().filter(|&&condition| condition != NONE).count() as u32;
        let mut multi = exact_count;
        let mut rest = exact_count + self.queries.iter().filter(|query| query.is_multi()).count() as u32;
        let number = |(query, &condition): (&Planned, &u32)| {
            let next = match condition {
                NONE if query.is_multi() => &mut multi,
                NONE => &mut rest,
                condition => return conditions[condition as usize],
            };
            *next += 1;
            *next - 1
        };
        self.queries.iter().zip(exact).map(number).collect()
    }

    fn freeze_queries(&mut self, numbers: &[u32], columns: &mut Columns) {
        let count = self.queries.len();
        columns.query_id = vec![[0; 16]; count];
        columns.query_twig = vec![NONE; count];
        let several = self.tenants.len() > 1;
        columns.query_tenant = vec![0; if several { count } else { 0 }];
        for (query, &number) in self.queries.iter().zip(numbers) {
            columns.query_id[number as usize] = query.id.0;
            columns.query_twig[number as usize] = query.twig;
            if several {
                columns.query_tenant[number as usize] = query.tenant;
            }
        }
        for tenant in &self.tenants {
            columns.tenant_bytes.extend(tenant.as_bytes());
            columns.tenant_ends.push(columns.tenant_bytes.len() as u32);
        }
        columns.twig = std::mem::take(&mut self.twigs).freeze();
        self.freeze_texts(numbers);
        for (_, query) in &mut self.targets {
            *query = numbers[*query as usize];
        }
        self.targets.sort_unstable();
        columns.target = self.targets.iter().map(|&(target, _)| target).collect();
        columns.target_query = self.targets.iter().map(|&(_, query)| query).collect();
        let mut starts = vec![0u32; count + 1];
        self.targets
            .iter()
            .for_each(|&(_, query)| starts[query as usize + 1] += 1);
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut fill = starts.clone();
        columns.target_order = vec![0; self.targets.len()];
        for (index, &(_, query)) in self.targets.iter().enumerate() {
            columns.target_order[fill[query as usize] as usize] = index as u32;
            fill[query as usize] += 1;
        }
        // One target each: the starts would say nothing.
        columns.query_targets = if self.targets.len() == count {
            Vec::new()
        } else {
            starts
        };
    }

    /// Puts the canonical texts into the order of the new numbers.
    fn freeze_texts(&mut self, numbers: &[u32]) {
        let mut order = vec![0; numbers.len()];
        for (old, &number) in numbers.iter().enumerate() {
            order[number as usize] = old;
        }
        let mut texts = Vec::with_capacity(self.texts.len());
        let mut ends = Vec::with_capacity(self.text_ends.len());
        for old in order {
            let start = if old == 0 {
                0
            } else {
                self.text_ends[old - 1] as usize
            };
            texts.extend_from_slice(&self.texts[start..self.text_ends[old] as usize]);
            ends.push(texts.len() as u64);
        }
        self.texts = texts;
        self.text_ends = ends;
    }

    fn freeze_automaton(&mut self, conditions: &[u32], columns: &mut Columns) {
        let nodes = self.trie.count();
        let renumbered = std::mem::take(&mut self.trie).freeze(columns);
        std::mem::take(&mut self.labels).freeze(columns);
        columns.node_condition = vec![NONE; nodes];
        for (&node, &condition) in &self.node_condition {
            columns.node_condition[renumbered[node as usize] as usize] = conditions[condition as usize];
        }
        if !self.anchors.is_empty() {
            columns.node_anchor = vec![NONE; nodes];
            for (&node, &anchor) in &self.anchors {
                columns.node_anchor[renumbered[node as usize] as usize] = anchor;
            }
        }
        let entries = self.freeze_entries(&renumbered, conditions, nodes, columns);
        let constants = std::mem::take(&mut self.constants);
        // Sorted: the same subscriptions give the same bytes, whatever a hash map's order.
        let frozen = |tests: &FxHashMap<(u32, Constant), u32>| {
            let frozen = |(&(entry, constant), &condition): (&(u32, Constant), &u32)| {
                [
                    entries[entry as usize],
                    constants.frozen(constant),
                    conditions[condition as usize],
                ]
            };
            let mut tests: Vec<[u32; 3]> = tests.iter().map(frozen).collect();
            tests.sort_unstable();
            tests
        };
        let tests = frozen(&self.equal);
        freeze_unequal(&frozen(&self.unequal), self.entries.len(), columns);
        constants.freeze(columns);
        freeze_equal(columns.hash_seed[0], &tests, columns);
    }

    /// Lays out entries by node and returns the new number of each.
    fn freeze_entries(
        &self,
        renumbered: &[u32],
        conditions: &[u32],
        nodes: usize,
        columns: &mut Columns,
    ) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_unstable_by_key(|&entry| {
            let entry = &self.entries[entry as usize];
            (renumbered[entry.node as usize], entry.subject)
        });
        let mut numbers = vec![0; order.len()];
        if order.is_empty() {
            return numbers;
        }
        columns.node_entries = vec![0; nodes + 1];
        for (number, &old) in order.iter().enumerate() {
            let entry = &self.entries[old as usize];
            numbers[old as usize] = number as u32;
            columns.node_entries[renumbered[entry.node as usize] as usize + 1] += 1;
            columns.entry_subject.push(entry.subject);
            let exists = if entry.exists == NONE {
                NONE
            } else {
                conditions[entry.exists as usize]
            };
            columns.entry_exists.push(exists);
            columns.entry_slot.push(entry.slot);
            columns.entry_flags.push(entry.flags);
            columns.entry_bounds.push(columns.bound.len() as u32);
            for &(side, bound, condition) in &entry.bounds {
                columns.bound_side.push(side);
                columns.bound.push(bound);
                columns.bound_condition.push(conditions[condition as usize]);
            }
        }
        columns.entry_bounds.push(columns.bound.len() as u32);
        for node in 0..nodes {
            columns.node_entries[node + 1] += columns.node_entries[node];
        }
        numbers
    }
}
