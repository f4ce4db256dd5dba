//! Adds the linear paths of transformations (binding, condition and return paths) to the trie.
//!
//! `for $b in /shop/book where $b/price < 10 return $b/title` adds `/shop/book`, `/shop/book/price` and
//! `/shop/book/title`.

use super::Builder;
use crate::ids::{TenantId, TrieNodeId};
use crate::query::ast::{Expr, Path, Predicate};
use crate::query::element_path::{ElementPath, skeleton, streamed};
use crate::query::transformation::Transformation;

impl Builder {
    /// Adds the lines of binding paths, of the conditions on them and of return paths. A transformation that is
    /// evaluated tuple by tuple needs no lines, only labels for its names.
    pub(super) fn grow(&mut self, tenant: TenantId, transformation: &Transformation) {
        let blocks = match transformation {
            Transformation::Blocks(blocks) => blocks,
            Transformation::Tuples(content) => {
                return content.for_each_value(&mut |value| {
                    value.for_each_name_test(&mut |test| {
                        self.labels.label(test);
                    });
                });
            }
        };
        for block in &blocks.blocks {
            self.label_path(&block.binding);
            let mut bound = tenant.root();
            for (step, line) in block.binding.steps.iter().zip(skeleton(&block.binding)) {
                bound = self.grow_line(bound, &vec![line]);
                for predicate in &step.predicates {
                    if let Predicate::Condition(Expr::Path(path, _)) = predicate {
                        self.grow_path(bound, path);
                    }
                }
            }
            for path in &block.returns {
                self.label_path(path);
                self.grow_path(bound, path);
            }
        }
    }

    fn grow_path(&mut self, from: TrieNodeId, path: &Path) {
        if let Some((line, _)) = streamed(path) {
            self.grow_line(from, &line);
        }
    }

    /// The trie node at the end of a line that starts at another node.
    fn grow_line(&mut self, from: TrieNodeId, line: &ElementPath) -> TrieNodeId {
        line.iter().fold(from, |node, step| {
            let label = self.labels.label(&step.test);
            self.trie.child(node, step.axis, label)
        })
    }

    /// Gives every name test of a path a label.
    fn label_path(&mut self, path: &Path) {
        path.for_each_name_test(&mut |test| {
            self.labels.label(test);
        });
    }
}
