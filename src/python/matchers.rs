//! A pool of matchers: a call takes an idle one and returns it; after a panic (damaged files) it is dropped instead.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::cache_stats::CacheStats;
use crate::engine::generation::Generation;
use crate::engine::guard::{catch, guarded};
use crate::engine::matcher::Matcher;
use crate::error::{GenerationError, ReadError};
use crate::tuning::Tuning;

/// Idle matchers, at most one for each thread that has matched.
pub struct Matchers {
    idle: Mutex<Vec<Matcher>>,
    /// Whether a segment turned out to be damaged, or a call panicked.
    damaged: AtomicBool,
    tuning: Tuning,
}

impl Matchers {
    pub fn new(tuning: Tuning) -> Matchers {
        Matchers { idle: Mutex::default(), damaged: AtomicBool::new(false), tuning }
    }

    pub fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// The statistics of the caches of the idle matchers.
    pub fn cache_stats(&self) -> CacheStats {
        let idle = self.idle.try_lock();
        let mut stats = CacheStats::default();
        let matchers = idle.iter().flat_map(|matchers| matchers.iter());
        matchers.for_each(|matcher| stats += matcher.cache_stats());
        stats
    }

    /// Calls work that reads a generation, and notes damage.
    pub fn guarded<T>(
        &self,
        generation: &Generation,
        work: impl FnOnce() -> T,
    ) -> Result<T, GenerationError> {
        guarded(generation, work).inspect_err(|_| self.damaged.store(true, Ordering::Relaxed))
    }

    /// Lends an idle matcher, or a new one: it does not wait for the lock, as a fork may have left it locked.
    ///
    /// `work` handles the messages that `done` has no outcome of. Where it panics, the matcher is dropped; if the
    /// generation is intact, the message is refused and the next ones are handled.
    pub fn run<D>(
        &self,
        generation: &Generation,
        done: &mut D,
        mut work: impl FnMut(&mut Matcher, &mut D),
        refuse: impl Fn(&mut D, &ReadError),
    ) -> Result<(), GenerationError> {
        let mut is_intact = false;
        loop {
            let idle = self.idle.try_lock().ok().and_then(|mut matchers| matchers.pop());
            let mut matcher = idle.unwrap_or_else(|| Matcher::new(self.tuning));
            self.guarded(generation, || matcher.prepare(generation))?;
            let Err(panicked) = catch(|| work(&mut matcher, done)) else {
                if let Ok(mut matchers) = self.idle.try_lock() {
                    matchers.push(matcher);
                }
                return Ok(());
            };
            if !is_intact {
                generation.verify().inspect_err(|_| self.damaged.store(true, Ordering::Relaxed))?;
                is_intact = true;
            }
            refuse(done, &panicked.into_read_error());
        }
    }
}
