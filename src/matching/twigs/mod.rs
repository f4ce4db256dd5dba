//! Decides candidates with a branch point that bound several elements: do their conditions hold below the same one?
//!
//! | file | |
//! |---|---|
//! | `decide` | settle a candidate if possible, else verify it |
//! | `unsettled` | a row to settle: its conditions, anchors and shape |
//! | `settle` | from the occurrences of its conditions |
//! | `occurrences` | the elements where conditions hold and that anchors bind, in linked lists |
//! | `ancestors` | the elements above the occurrences of a condition, sorted |
//! | `verify/` | on the document, by its compiled twig |
//! | `by_name` | the elements of the document by name |
//! | `compiled` | twigs that are compiled on demand |

pub mod ancestors;
pub mod by_name;
pub mod compiled;
pub mod decide;
pub mod occurrences;
pub mod settle;
pub mod unsettled;
pub mod verify;
