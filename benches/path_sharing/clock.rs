//! The time of each operator. Reading the clock takes time too, so total times are measured without it.

use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub enum Operator {
    /// The path matching engine.
    Engine,
    Selection,
    DupElim,
    Semijoin,
    OuterJoin,
    WhereFilter,
    ReturnSelect,
}

pub const OPERATORS: [Operator; 7] = [
    Operator::Engine,
    Operator::Selection,
    Operator::DupElim,
    Operator::Semijoin,
    Operator::OuterJoin,
    Operator::WhereFilter,
    Operator::ReturnSelect,
];

impl Operator {
    pub fn name(self) -> &'static str {
        match self {
            Operator::Engine => "engine",
            Operator::Selection => "selection",
            Operator::DupElim => "dupelim",
            Operator::Semijoin => "semijoin",
            Operator::OuterJoin => "outerjoin",
            Operator::WhereFilter => "where_filter",
            Operator::ReturnSelect => "return_select",
        }
    }
}

pub trait Clock {
    /// Does the work of an operator.
    fn time<T>(&mut self, operator: Operator, work: impl FnOnce() -> T) -> T;
}

pub struct NoClock;

impl Clock for NoClock {
    #[inline(always)]
    fn time<T>(&mut self, _: Operator, work: impl FnOnce() -> T) -> T {
        work()
    }
}

#[derive(Default)]
pub struct Profile([Duration; OPERATORS.len()]);

impl Profile {
    pub fn of(&self, operator: Operator) -> Duration {
        self.0[operator as usize]
    }

    /// The least of two, for each operator.
    pub fn least(&self, other: &Profile) -> Profile {
        Profile(std::array::from_fn(|at| self.0[at].min(other.0[at])))
    }

    pub fn add(&mut self, operator: Operator, time: Duration) {
        self.0[operator as usize] += time;
    }
}

impl Clock for Profile {
    fn time<T>(&mut self, operator: Operator, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = work();
        self.add(operator, start.elapsed());
        value
    }
}
