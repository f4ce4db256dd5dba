//! A query's boolean tree in postfix order: `/a and not(/b)` is path 0, path 1, not, and of two.

use super::ast::{Expr, Query};

/// The boolean tree in postfix order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Postfix {
    /// One path of the query with its test, or a computed condition, by its number in pre-order.
    Path(u32),
    And(u32),
    Or(u32),
    Not,
}

/// The query's boolean tree over its top-level paths, in postfix order.
pub fn postfix(query: &Query) -> Vec<Postfix> {
    fn walk(expr: &Expr, paths: &mut u32, out: &mut Vec<Postfix>) {
        match expr {
            Expr::Path(..) | Expr::Computed(_) => {
                out.push(Postfix::Path(*paths));
                *paths += 1;
            }
            Expr::Not(inner) => {
                walk(inner, paths, out);
                out.push(Postfix::Not);
            }
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| walk(operand, paths, out));
                let count = operands.len() as u32;
                out.push(if matches!(expr, Expr::And(_)) { Postfix::And(count) } else { Postfix::Or(count) });
            }
        }
    }
    let mut out = Vec::new();
    walk(&query.expr, &mut 0, &mut out);
    out
}
