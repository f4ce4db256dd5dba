//! Rows: how the alternatives of queries are stored, and tested against what a message contains.
//!
//! An alternative of a query is a conjunction: conditions that must hold (*positives*), conditions that must
//! not hold (*negatives*), range tests, and *anchors*, the branch points where its linear paths part. Each
//! becomes one row, filed under its *access test*: the rarest test that is necessary for it. A message reads
//! only the rows filed under tests that it passes.
//!
//! ```text
//! //a[@x = 1][b > 7]   positives: //a/@x = 1    ranges: //a/b > 7    anchor: //a
//!                      access test: //a/@x = 1, so a message without such an attribute never reads the row
//! ```
//!
//! | file | |
//! |---|---|
//! | `access` | chooses access tests and lays out all rows |
//! | `simple` | rows of a few positives and anchors, in tables of fixed width |
//! | `groups` | all other rows, in groups of one form, column by column |
//! | `screen` | range tests of a group, quantised to a byte each and compared side by side |
//! | `range` | range tests in one form: a number exceeds a constant |
//! | `shape` | how the linear paths of a simple row lie to its anchors |

mod access;
pub mod groups;
pub mod range;
pub mod screen;
pub mod shape;
pub mod simple;

pub use access::MOST_TESTS;
pub(super) use access::{PlannedRow, write_rows};
