//! The access tests that a query of an index is filed under, found by the same lookups as in matching.

use crate::engine::generation::Generation;
use crate::ids::{ConditionId, LabelId, SegmentQuery, SubjectId, TrieNodeId};
use crate::matching::automaton::names::Names;
use crate::query::ast::{Literal, NameTest, Query};
use crate::query::decompose::{Check, DOCUMENT, Decomposition, LinearPath, Subject};
use crate::segment::format::columns::View;

use crate::segment::format::NONE;
use crate::segment::rows::groups::Groups;
use crate::segment::rows::range::Range;

/// Per alternative of a query, the line it is filed under.
pub struct Filings(Vec<Option<u32>>);

impl Filings {
    /// Finds a query among a tenant's; `None` if it is not there.
    pub fn find(
        query: &Query,
        parts: &Decomposition<'_>,
        generation: &Generation,
        tenant: &str,
    ) -> Option<Filings> {
        let id = query.id();
        generation.parts().iter().find_map(|part| {
            let tenant = part.tenant(tenant)?;
            let view = part.segment.view();
            let number = view.find_query(tenant, id)?;
            let names = Names::new(view);
            let search = Search { view, names: &names, parts, root: tenant.root() };
            let line_of = |alternative: &crate::query::decompose::Alternative| {
                alternative
                    .positive
                    .iter()
                    .copied()
                    .find(|&line| search.holds_row(&parts.lines[line as usize], number))
            };
            Some(Filings(parts.alternatives.iter().map(line_of).collect()))
        })
    }

    pub fn of(&self, alternative: usize) -> Option<u32> {
        self.0[alternative]
    }
}

struct Search<'a> {
    view: View<'a>,
    names: &'a Names,
    parts: &'a Decomposition<'a>,
    root: TrieNodeId,
}

impl Search<'_> {
    /// Whether the query is filed under a line.
    fn holds_row(&self, line: &LinearPath<'_>, query: SegmentQuery) -> bool {
        let Some(node) = self.node(line.node) else {
            return false;
        };
        if line.subject == Subject::Element {
            return self.under_condition(self.view.node_condition[node.index()], query);
        }
        let Some(entry) = self.entry(node, &line.subject) else {
            return false;
        };
        match line.check {
            Check::Exists => self.under_condition(self.view.entry_exists[entry], query),
            Check::Equal(literal) => {
                let constant = self.constant(literal);
                self.under_condition(self.view.equal_condition(node, entry as u32, constant), query)
            }
            Check::Normalized(text) => {
                let constant = self.view.normalized_constant(text.as_bytes());
                self.under_condition(self.view.equal_condition(node, entry as u32, constant), query)
            }
            Check::Unequal(literal) => {
                let constant = self.constant(literal);
                let tests = self.view.unequal(entry).iter().filter(|test| test.constant == constant);
                tests.into_iter().any(|test| self.under_condition(test.condition, query))
            }
            Check::Position(position) => {
                let constant = self.view.number_constant(position as f64);
                self.under_condition(self.view.equal_condition(node, entry as u32, constant), query)
            }
            Check::Range(operator, constant) => {
                let slot = self.view.entry_slot[entry];
                let Some((range, bound)) = Range::new(slot, operator, constant, false) else {
                    return false;
                };
                if slot == NONE {
                    return self
                        .view
                        .bounds(entry)
                        .filter(|&at| {
                            self.view.bound[at] == bound
                                && self.view.bound_side[at] as usize == range.side() & 1
                        })
                        .any(|at| self.under_condition(self.view.bound_condition[at], query));
                }
                let start = self.view.range_start[range.side()] as usize;
                let end = self.view.range_start[range.side() + 1] as usize;
                (start..end).filter(|&at| self.view.threshold[at] == bound).any(|at| {
                    self.among(self.view.threshold_rows[at], self.view.threshold_rows[at + 1], query)
                })
            }
        }
    }

    fn constant(&self, literal: &Literal) -> u32 {
        match literal {
            Literal::Text(text) => self.view.text_constant(text.as_bytes()),
            Literal::Number(number) => self.view.number_constant(*number),
        }
    }

    /// Whether a query is filed under a condition, or is what the condition says exactly.
    fn under_condition(&self, condition: ConditionId, query: SegmentQuery) -> bool {
        if condition.is_none() {
            return false;
        }
        let simple = !self.view.copied.is_empty() && {
            let narrow = self.view.narrow_rows(condition).iter().map(|row| row[3]);
            let wide = self.view.wide_rows(condition).iter().map(|row| row[7]);
            narrow.chain(wide).any(|of| of == query.0)
        };
        let exact = condition.0 == query.0 && query.index() < self.view.exact();
        let (start, end) = self.view.groups_of(condition);
        exact || simple || self.among(start, end, query)
    }

    /// Whether a query has a row in a stretch of the program.
    fn among(&self, start: u32, end: u32, query: SegmentQuery) -> bool {
        let mut at = start as usize;
        while at < end as usize {
            let mut groups = Groups::at(self.view, at);
            if groups.any(|group| (0..group.rows).any(|row| group.query(row) == query)) {
                return true;
            }
            at = groups.end();
        }
        false
    }

    /// The trie node of a twig node.
    fn node(&self, twig: u32) -> Option<TrieNodeId> {
        if twig == DOCUMENT {
            return Some(self.root);
        }
        let step = &self.parts.nodes[twig as usize];
        let parent = self.node(step.parent)?;
        self.view.child(parent, step.axis, self.names.label_of(step.test))
    }

    fn entry(&self, node: TrieNodeId, subject: &Subject<'_>) -> Option<usize> {
        let subject = match subject {
            Subject::Attribute(NameTest::Any) => SubjectId::attribute(LabelId::ANY),
            Subject::Attribute(test) => SubjectId::attribute(self.names.label_of(test)),
            Subject::Text => SubjectId::TEXT,
            Subject::Value => SubjectId::VALUE,
            Subject::Position(test) => SubjectId::position(test),
            Subject::Element => return None,
        };
        self.view.entries(node).find(|&entry| self.view.entry_subject[entry] == subject)
    }
}
