//! Panics → errors: `segment-damaged`, or `kernel-panic` for a defect of the kernel.
//!
//! A segment is verified when it is opened, but a disk can damage the mapped file later. Code that reads it then may
//! panic; it always ends, because every loop is bounded. `catch` returns the panic as a value, and
//! `Generation::verify` tells the two cases apart: `segment-damaged`, or `kernel-panic` if all segments are intact.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::generation::Generation;
use crate::error::{GenerationError, Position, ReadError};

const CODE: &str = "kernel-panic";

/// The message of a panic.
pub struct Panicked(String);

/// Calls `work`. After a panic, the values that `work` could change are in an undefined state: drop them.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked(text(&*payload)))
}

/// Calls work that reads a generation, unless a file of it was cut short. A panic is an error.
pub fn guarded<T>(generation: &Generation, work: impl FnOnce() -> T) -> Result<T, GenerationError> {
    generation.check_sizes()?;
    catch(work)
        .map_err(|panicked| generation.verify().err().unwrap_or_else(|| panicked.into_generation_error()))
}

impl Panicked {
    /// The error of a call that failed as a whole.
    pub fn into_generation_error(self) -> GenerationError {
        GenerationError::new(CODE, self.reason())
    }

    /// The error of the message that was being handled.
    pub fn into_read_error(self) -> ReadError {
        let position = Position { offset: 0, line: 1, column: 1 };
        ReadError { code: CODE, reason: self.reason(), position, exceeded: None }
    }

    fn reason(self) -> String {
        format!("a defect of tamis, please report it: {}", self.0)
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        let error = guarded::<()>(&Generation::default(), || panic!("{} of {}", 7, 3)).unwrap_err();
        assert_eq!(error.code, CODE);
        assert!(error.reason.ends_with("7 of 3"), "{}", error.reason);
        assert_eq!(guarded(&Generation::default(), || 5).unwrap(), 5);
    }
}
