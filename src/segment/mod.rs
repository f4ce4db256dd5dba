//! The segment: an immutable, compiled set of queries in flat arrays.
//!
//! | file | |
//! |---|---|
//! | `build/` | queries → a frozen segment |
//! | `format/` | the file format, the writer of each part beside its reader |
//! | `rows/` | alternatives as rows: how they are stored and tested |
//! | `twig` | queries compiled for verification |

pub mod build;
pub mod format;
pub mod rows;
pub mod twig;
