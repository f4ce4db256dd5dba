//! Compiles the expressions of a transformation that is evaluated tuple by tuple.

use crate::ids::LabelId;
use crate::query::ast::NameTest;
use crate::query::flwor::Content;
use crate::query::hash_join::push_equalities;
use crate::query::value::Value;
use crate::query::variables::Uses;
use crate::segment::twig::Twigs;

/// A compiled expression.
#[derive(Clone, Copy)]
pub struct Compiled {
    /// Where its twig is.
    pub twig: u32,
    /// Whether it depends on variables.
    pub varies: bool,
}

/// A transformation with its expressions compiled.
pub type TuplePlan = Content<Compiled>;

pub fn compile(
    content: &Content,
    twigs: &mut Twigs,
    label: &mut impl FnMut(&NameTest) -> LabelId,
) -> TuplePlan {
    let mut content = content.clone();
    content.for_each_flwor_mut(&mut |flwor| push_equalities(&mut flwor.clauses));
    content.map(&mut |value: &Value| Compiled {
        twig: twigs.compile_value(value, label),
        varies: !Uses::of_value(value).free.is_empty(),
    })
}
