//! The operators of a network: their signatures, by which equal operators become one, and what the planner knows
//! of them. `network.rs` shows them on an example.

use crate::document::Element;
use crate::ids::{ConditionId, LabelId, TrieNodeId};
use crate::query::ast::{Axis, Operator};
use crate::query::element_path::ElementPath;
use crate::query::linear_path::Reach;
use crate::transform::plan::claims::Claim;
use crate::transform::plan::interner::OwnedBytes;
use crate::transform::plan::tuples::TuplePlan;

/// The elements at the end of a linear path, as the automaton found them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The tenant's root in the trie.
    pub root: TrieNodeId,
    pub path: ElementPath,
}

pub struct StreamPlan {
    /// The trie node at the end of the linear path.
    pub node: TrieNodeId,
    /// Axis and label of each step.
    pub steps: Vec<(Axis, LabelId)>,
}

/// Pairs of a bound element and an element that a path leads to from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Join {
    /// Two streams; the linear path of `binding` is a prefix of that of `end`.
    pub binding: u32,
    pub end: u32,
}

pub struct JoinPlan {
    /// Number of steps from the bound element to the end.
    pub steps: usize,
    /// How far below the bound element these steps lead.
    pub reach: Reach,
    /// The depth of all bound elements, if claim 4 proves that they have the same: then the ancestor of an end at
    /// this depth is its bound element.
    pub bound_depth: Option<u32>,
    /// The claim that proves pairs to be distinct; without it duplicates are eliminated.
    pub distinct: Option<Claim>,
    /// The claim that proves pairs to come ordered by the bound element; without it they are sorted.
    pub ordered: Option<Claim>,
}

impl JoinPlan {
    /// How many levels the bound element lies above an end, if the plan tells.
    #[inline]
    pub fn levels_up(&self, end: &Element) -> Option<u32> {
        match (self.reach, self.bound_depth) {
            (Reach::Exactly(levels), _) => Some(levels),
            (_, Some(depth)) => Some(end.depth - depth),
            _ => None,
        }
    }

    /// Whether pairs come ordered by the bound element.
    pub fn is_ordered(&self) -> bool {
        self.steps == 0 || self.ordered.is_some()
    }
}

/// The values at the ends of a join, indexed once for all constants that are compared with them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    pub join: u32,
    pub subject: Subject,
    pub numeric: bool,
}

/// Which value of an element is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The string-value.
    Value,
    /// Each text node that is a child.
    Text,
    /// Each attribute with this label.
    Attribute(LabelId),
}

/// The elements of a stream that pass a predicate.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A path leads to an element, or to this leaf of one.
    Exists { join: u32, leaf: Option<Subject> },
    /// A value compares with a constant.
    Compare { selection: u32, operator: Operator, constant: Constant },
    /// An equality that is also a condition of the index: matching knows where it holds, and nothing is compared
    /// again. `fallback` is the same as `Compare`, for messages whose occurrences were not recorded.
    Indexed { index_condition: ConditionId, join: u32, fallback: u32 },
    /// Any other predicate: its twig is evaluated at each element of the stream.
    Twig { stream: u32, twig: TwigVariants },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Constant {
    Text(Box<[u8]>),
    /// The bits of an `f64`, which are comparable.
    Number(u64),
}

/// The elements that a block binds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Bindings {
    /// The elements of a stream for which all conditions hold, given as (step of the path, condition).
    Joined { stream: u32, conditions: Vec<(u32, u32)> },
    /// The nodes that a twig selects, for paths that streams cannot decide.
    Twig { twig: u32 },
}

/// The nodes that a return path selects, for each bound element.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Group {
    Joined {
        join: u32,
        leaf: Option<Subject>,
    },
    /// The nodes that a twig selects, for paths that streams cannot decide.
    Twig {
        twig: TwigVariants,
    },
}

/// A twig to be evaluated at several elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TwigVariants {
    pub plain: u32,
    /// For elements nested deep in one another, whose evaluations visit the same elements: it memoizes, which
    /// costs more than to evaluate a few times.
    pub memoized: u32,
}

/// Which operator gives the elements that a block binds. Often an operator below the bindings gives the same
/// elements, and the bindings need not be computed.
#[derive(Clone, Copy)]
pub enum BindingSource {
    Stream(u32),
    Condition(u32),
    Bindings(u32),
}

/// A block: an outer-join-select of its bindings with its groups, one for each return path.
pub struct BlockPlan {
    pub bindings: u32,
    pub source: BindingSource,
    pub groups: Vec<u32>,
    /// The claim that proves that no element is bound twice.
    pub distinct: Option<Claim>,
}

/// An operator, by its kind and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperatorId {
    Stream(u32),
    Join(u32),
    Selection(u32),
    Condition(u32),
    Bindings(u32),
    Group(u32),
}

/// The plan of a transformation.
pub struct Plan {
    /// The output program. Transformations that differ only in what they bind share it.
    pub construction: u32,
    pub blocks: Vec<BlockPlan>,
    /// Every operator it uses, once, in planning order.
    pub operators: Vec<OperatorId>,
    /// The conditions of the index whose occurrences it uses.
    pub index_conditions: Vec<ConditionId>,
    /// The compiled content, if it is evaluated tuple by tuple. Then there is nothing else in the plan.
    pub tuples: Option<Box<TuplePlan>>,
}

impl Plan {
    pub fn of_tuples(tuples: TuplePlan) -> Plan {
        Plan {
            construction: 0,
            blocks: Vec::new(),
            operators: Vec::new(),
            index_conditions: Vec::new(),
            tuples: Some(Box::new(tuples)),
        }
    }

    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| size_of::<BlockPlan>() + block.groups.len() * 4);
        size_of::<Plan>()
            + blocks.sum::<usize>()
            + self.operators.len() * size_of::<OperatorId>()
            + self.index_conditions.len() * 4
    }
}

impl OwnedBytes for Stream {
    fn owned_bytes(&self) -> usize {
        self.path.owned_bytes()
    }
}

impl OwnedBytes for Join {}

impl OwnedBytes for Selection {}

impl OwnedBytes for Condition {
    fn owned_bytes(&self) -> usize {
        match self {
            Condition::Compare { constant: Constant::Text(text), .. } => text.len(),
            _ => 0,
        }
    }
}

impl OwnedBytes for Bindings {
    fn owned_bytes(&self) -> usize {
        match self {
            Bindings::Joined { conditions, .. } => size_of_val(conditions.as_slice()),
            Bindings::Twig { .. } => 0,
        }
    }
}

impl OwnedBytes for Group {}
