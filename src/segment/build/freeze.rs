//! Builder → segment: numbers conditions, anchors and queries, and writes all columns.
//!
//! Things that a message reads together get adjacent numbers: conditions and anchors in the order of their reversed
//! paths, queries in the order of their rows. A query that one condition decides exactly shares the condition's number,
//! so that a set bit is a match.
//!
//! ```text
//! queries  //a    //b[c]/d    //a[not(b)]      conditions  0: //a (query 0)    1: //a/b    2: //b/c    3: //b/d
//! ```

use rustc_hash::FxHashMap;

use super::{Builder, Condition, Planned};
use crate::error::GenerationError;
use crate::ids::{AnchorId, ConditionId, LabelId, SegmentQuery, TenantId, TrieNodeId};
use crate::segment::build::frequency::{Frequencies, Measured};
use crate::segment::format::NONE;
use crate::segment::format::columns::{Columns, View};
use crate::segment::format::constants::{Constant, EqualTest, UnequalTest, freeze_equal, freeze_unequal};
use crate::segment::format::file::Segment;
use crate::segment::rows::range::number_of;
use crate::segment::rows::{PlannedRow, write_rows};
use crate::tuning::{BOUND_CONDITIONS, PRIOR_RANGE};

impl Builder {
    /// Freezes what was added. `measure` runs the automaton over messages seen and counts how
    /// often each condition holds, so that queries are filed under rare ones.
    pub fn freeze(mut self, measure: impl FnOnce(View<'_>) -> Measured) -> Result<Segment, GenerationError> {
        self.turn_ranges_into_conditions();
        self.check_sizes()?;
        let mut columns = Columns::default();
        let exact = self.exact_queries();
        let conditions = self.number_conditions(&exact);
        let mut queries = self.number_queries(&exact, &conditions);
        let anchors = self.number_anchors();
        self.alternatives.renumber(&conditions, &anchors);
        self.freeze_automaton(&conditions, &mut columns);
        columns.counts = vec![
            conditions.len() as u32,
            self.anchor_count,
            self.slot_entries.len() as u32,
            exact.iter().filter(|condition| condition.is_some()).count() as u32,
            self.queries.iter().filter(|query| query.is_multi()).count() as u32,
        ];
        // Filled in once rows have their places; until then only its length counts.
        columns.query_id = vec![[0; 16]; self.queries.len()];
        // Nothing is filed if conditions say it all, and then nothing need be measured.
        let is_filed = exact.contains(&ConditionId::NONE);
        let measured = if is_filed { measure(columns.view()) } else { Measured::default() };
        let mut priors = vec![0.0; conditions.len()];
        for (condition, &number) in self.conditions.iter().zip(&conditions) {
            priors[number.index()] = condition.prior;
        }
        let frequencies = Frequencies::new(priors, measured);
        let rows = self.queries.iter().enumerate().filter(|(number, _)| exact[*number].is_none()).flat_map(
            |(number, query)| {
                let multi = query.is_multi();
                let (first, last) = query.alternatives;
                let queries = &queries;
                (first..last).map(move |alternative| PlannedRow {
                    query: queries[number],
                    tenant: query.tenant,
                    alternative,
                    multi,
                })
            },
        );
        let singles = write_rows(rows, &self.alternatives, &frequencies, self.tenants.len(), &mut columns)?;
        let first_single = columns.view().first_single();
        for query in queries.iter_mut().filter(|query| query.index() >= first_single) {
            *query = singles[query.index() - first_single];
        }
        self.freeze_queries(&queries, &mut columns);
        Ok(Segment::new(&columns, &self.texts, &self.text_ends))
    }

    /// Where a subject is compared with few bounds, each becomes a condition: it can then be looked
    /// up by value, combined and settled like the others. A subject with many keeps its slot, and
    /// rows compare its numbers.
    fn turn_ranges_into_conditions(&mut self) {
        let bounds = self.alternatives.bounds();
        let mut conditions = FxHashMap::default();
        for of_slot in bounds.chunk_by(|a, b| a.0 / 2 == b.0 / 2) {
            if of_slot.len() > BOUND_CONDITIONS {
                continue;
            }
            let slot = of_slot[0].0 / 2;
            let entry = &mut self.entries[self.slot_entries[slot] as usize];
            entry.slot = NONE;
            for &(side, bound) in of_slot {
                let next = ConditionId::from(self.conditions.len());
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

    /// Per query, the one condition that decides exactly whether it matches, or `NONE`.
    ///
    /// A condition decides one query at most: the two then share a number, and a set bit is a
    /// match with no row in between.
    fn exact_queries(&self) -> Vec<ConditionId> {
        let mut is_used = vec![false; self.conditions.len()];
        let exact = |query: &Planned| {
            let (first, last) = query.alternatives;
            let condition = if last - first == 1 { self.alternatives.sole_condition(first) } else { None };
            match condition {
                Some(condition) if !std::mem::replace(&mut is_used[condition.index()], true) => condition,
                _ => ConditionId::NONE,
            }
        };
        self.queries.iter().map(exact).collect()
    }

    /// New numbers for conditions: those of exact queries first, and in each part conditions that
    /// hold together side by side: those met at an element of a name, with a value of an attribute.
    /// It makes masks short and puts the rows that a message needs next to each other.
    fn number_conditions(&self, exact: &[ConditionId]) -> Vec<ConditionId> {
        let mut is_exact = vec![false; self.conditions.len()];
        exact.iter().filter(|condition| condition.is_some()).for_each(|condition| {
            is_exact[condition.index()] = true;
        });
        let key = |(at, condition): (usize, &Condition)| {
            let Condition { node, subject, constant, .. } = *condition;
            let met = (self.trie.label_of(node), subject.0.wrapping_add(1), constant);
            (!is_exact[at], met, self.trie.reversed(node), at as u32)
        };
        let mut order: Vec<_> = self.conditions.iter().enumerate().map(key).collect();
        order.sort_unstable();
        let mut numbers = vec![ConditionId::NONE; order.len()];
        for (number, &(_, _, _, condition)) in order.iter().enumerate() {
            numbers[condition as usize] = ConditionId::from(number);
        }
        numbers
    }

    /// New numbers for anchors: those that an element binds together side by side. Returns by old
    /// number, and `anchors` has the new ones.
    fn number_anchors(&mut self) -> Vec<AnchorId> {
        let mut order: Vec<_> =
            self.anchors.iter().map(|(node, anchor)| (self.trie.reversed(node), anchor)).collect();
        order.sort_unstable();
        let mut numbers = vec![AnchorId::NONE; order.len()];
        for (number, &(_, anchor)) in order.iter().enumerate() {
            numbers[anchor.index()] = AnchorId::from(number);
        }
        let present = self.anchors.0.iter_mut().filter(|anchor| anchor.is_some());
        present.for_each(|anchor| *anchor = numbers[anchor.index()]);
        numbers
    }

    /// New numbers for queries: exact ones by their condition, then those with several
    /// alternatives, then the rest; `write_rows` gives these their final numbers.
    fn number_queries(&self, exact: &[ConditionId], conditions: &[ConditionId]) -> Vec<SegmentQuery> {
        let exact_count = exact.iter().filter(|condition| condition.is_some()).count() as u32;
        let mut multi = exact_count;
        let mut rest = exact_count + self.queries.iter().filter(|query| query.is_multi()).count() as u32;
        let number = |(query, &condition): (&Planned, &ConditionId)| {
            let next = match condition {
                ConditionId::NONE if query.is_multi() => &mut multi,
                ConditionId::NONE => &mut rest,
                condition => return SegmentQuery(conditions[condition.index()].0),
            };
            *next += 1;
            SegmentQuery(*next - 1)
        };
        self.queries.iter().zip(exact).map(number).collect()
    }

    fn freeze_queries(&mut self, numbers: &[SegmentQuery], columns: &mut Columns) {
        let count = self.queries.len();
        let verified = self.queries.iter().any(|query| query.twig != NONE);
        columns.query_twig = vec![NONE; if verified { count } else { 0 }];
        let several = self.tenants.len() > 1;
        columns.query_tenant = vec![TenantId(0); if several { count } else { 0 }];
        for (query, &number) in self.queries.iter().zip(numbers) {
            columns.query_id[number.index()] = query.id.0;
            if verified {
                columns.query_twig[number.index()] = query.twig;
            }
            if several {
                columns.query_tenant[number.index()] = query.tenant;
            }
        }
        for tenant in &self.tenants {
            columns.tenant_bytes.extend(tenant.as_bytes());
            columns.tenant_ends.push(columns.tenant_bytes.len() as u32);
        }
        columns.twig = std::mem::take(&mut self.twigs).freeze();
        self.freeze_texts(numbers);
        let targets = std::mem::take(&mut self.targets).into_iter();
        let mut targets: Vec<(u64, SegmentQuery)> =
            targets.map(|(target, query)| (target, numbers[query as usize])).collect();
        targets.sort_unstable();
        columns.target = targets.iter().map(|&(target, _)| target).collect();
        columns.target_query = targets.iter().map(|&(_, query)| query).collect();
        let mut starts = vec![0u32; count + 1];
        targets.iter().for_each(|&(_, query)| starts[query.index() + 1] += 1);
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut fill = starts.clone();
        columns.target_order = vec![0; targets.len()];
        for (index, &(_, query)) in targets.iter().enumerate() {
            columns.target_order[fill[query.index()] as usize] = index as u32;
            fill[query.index()] += 1;
        }
        // One target each: the starts would say nothing.
        columns.query_targets = if targets.len() == count { Vec::new() } else { starts };
    }

    /// Puts the canonical texts into the order of the new numbers.
    fn freeze_texts(&mut self, numbers: &[SegmentQuery]) {
        let mut order = vec![0; numbers.len()];
        for (old, &number) in numbers.iter().enumerate() {
            order[number.index()] = old;
        }
        let mut texts = Vec::with_capacity(self.texts.len());
        let mut ends = Vec::with_capacity(self.text_ends.len());
        for old in order {
            let start = if old == 0 { 0 } else { self.text_ends[old - 1] as usize };
            texts.extend_from_slice(&self.texts[start..self.text_ends[old] as usize]);
            ends.push(texts.len() as u64);
        }
        self.texts = texts;
        self.text_ends = ends;
    }

    fn freeze_automaton(&mut self, conditions: &[ConditionId], columns: &mut Columns) {
        let nodes = self.trie.count();
        let renumbered = std::mem::take(&mut self.trie).write(columns);
        std::mem::take(&mut self.labels).write(columns);
        columns.node_condition = vec![ConditionId::NONE; nodes];
        for (node, condition) in self.node_condition.iter() {
            columns.node_condition[renumbered[node.index()].index()] = conditions[condition.index()];
        }
        if self.anchor_count > 0 {
            columns.node_anchor = vec![AnchorId::NONE; nodes];
            for (node, anchor) in self.anchors.iter() {
                columns.node_anchor[renumbered[node.index()].index()] = anchor;
            }
        }
        let entries = self.freeze_entries(&renumbered, conditions, nodes, columns);
        let mut labels = vec![LabelId::NONE; entries.len()];
        for (entry, &number) in self.entries.iter().zip(&entries) {
            labels[number as usize] = columns.node_label[renumbered[entry.node.index()].index()];
        }
        let constants = std::mem::take(&mut self.constants);
        // Sorted, so that the bytes of a segment do not depend on the order of a hash map.
        let frozen = |tests: &FxHashMap<(u32, Constant), ConditionId>| {
            let frozen = |(&(entry, constant), &condition): (&(u32, Constant), &ConditionId)| {
                (entries[entry as usize], constants.frozen(constant), conditions[condition.index()])
            };
            let mut tests: Vec<(u32, u32, ConditionId)> = tests.iter().map(frozen).collect();
            tests.sort_unstable();
            tests
        };
        let equal = |(entry, constant, condition)| {
            let (label, subject) = (labels[entry as usize], columns.entry_subject[entry as usize]);
            EqualTest { label, subject, constant, entry, condition }
        };
        let mut tests: Vec<EqualTest> = frozen(&self.equal).into_iter().map(equal).collect();
        let unequal = |(entry, constant, condition)| (entry, UnequalTest { constant, condition });
        let unequal: Vec<_> = frozen(&self.unequal).into_iter().map(unequal).collect();
        freeze_unequal(&unequal, self.entries.len(), columns);
        constants.freeze(columns);
        freeze_equal(columns.hash_seed[0], &mut tests, columns);
    }

    /// Lays out entries by node and returns the new number of each.
    fn freeze_entries(
        &self,
        renumbered: &[TrieNodeId],
        conditions: &[ConditionId],
        nodes: usize,
        columns: &mut Columns,
    ) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_unstable_by_key(|&entry| {
            let entry = &self.entries[entry as usize];
            (renumbered[entry.node.index()], entry.subject)
        });
        let mut numbers = vec![0; order.len()];
        if order.is_empty() {
            return numbers;
        }
        columns.node_entries = vec![0; nodes + 1];
        for (number, &old) in order.iter().enumerate() {
            let entry = &self.entries[old as usize];
            numbers[old as usize] = number as u32;
            columns.node_entries[renumbered[entry.node.index()].index() + 1] += 1;
            columns.entry_subject.push(entry.subject);
            let exists =
                if entry.exists.is_none() { ConditionId::NONE } else { conditions[entry.exists.index()] };
            columns.entry_exists.push(exists);
            columns.entry_slot.push(entry.slot);
            columns.entry_flags.push(entry.flags);
            columns.entry_bounds.push(columns.bound.len() as u32);
            for &(side, bound, condition) in &entry.bounds {
                columns.bound_side.push(side);
                columns.bound.push(bound);
                columns.bound_condition.push(conditions[condition.index()]);
            }
        }
        columns.entry_bounds.push(columns.bound.len() as u32);
        for node in 0..nodes {
            columns.node_entries[node + 1] += columns.node_entries[node];
        }
        numbers
    }
}
