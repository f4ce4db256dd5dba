//! The lines of transformations: what they take nodes by, grown into the trie with all others.

use super::Builder;
use crate::query::ast::{Expr, Node, Path, Predicate};
use crate::query::element_path::{ElementPath, skeleton, streamed};
use crate::query::transformation::Transformation;

impl Builder {
    /// Grows the lines of binding paths, of the conditions on them and of return paths.
    pub(super) fn grow(&mut self, tenant: u32, transformation: &Transformation) {
        for block in &transformation.blocks {
            self.label_path(&block.binding);
            let mut bound = tenant;
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

    fn grow_path(&mut self, from: u32, path: &Path) {
        if let Some((line, _)) = streamed(path) {
            self.grow_line(from, &line);
        }
    }

    /// The node that a line from another leads to.
    fn grow_line(&mut self, from: u32, line: &ElementPath) -> u32 {
        line.iter().fold(from, |node, step| {
            let label = self.labels.label(&step.test);
            self.trie.child(node, step.axis, label)
        })
    }

    /// Makes sure that every name test of a path has a label.
    fn label_path(&mut self, path: &Path) {
        for step in &path.steps {
            if let Node::Element(test) | Node::Attribute(test) = &step.node {
                self.labels.label(test);
            }
            for predicate in &step.predicates {
                if let Predicate::Condition(expr) = predicate {
                    self.label_expr(expr);
                }
            }
        }
    }

    fn label_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Path(path, _) => self.label_path(path),
            Expr::Not(operand) => self.label_expr(operand),
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| self.label_expr(operand));
            }
        }
    }
}
