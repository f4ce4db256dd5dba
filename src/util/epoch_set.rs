//! A set of small numbers that is emptied in constant time.
//!
//! Each number has a stamp, and is a member if the stamp is not older than the current epoch. `clear` starts
//! a new epoch instead of writing to all stamps. A member can be *flagged*, to mark that it was inserted more than
//! once:
//!
//! ```text
//! epoch 4   stamps 4 0 5   0 is a member, 2 a flagged member
//! clear → epoch 6          no stamp is 6 or 7: the set is empty
//! ```

pub struct EpochSet {
    stamps: Vec<u32>,
    /// Even; the stamp of a flagged member is one more.
    epoch: u32,
}

impl Default for EpochSet {
    fn default() -> EpochSet {
        EpochSet::new(0)
    }
}

impl EpochSet {
    /// An empty set of numbers below `count`.
    pub fn new(count: usize) -> EpochSet {
        EpochSet { stamps: vec![0; count], epoch: 2 }
    }

    /// Changes how many numbers there are. New ones are not members.
    pub fn resize(&mut self, count: usize) {
        self.stamps.resize(count, 0);
    }

    #[inline]
    pub fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(2);
        if self.epoch == 0 {
            self.stamps.fill(0);
            self.epoch = 2;
        }
    }

    pub fn bytes(&self) -> usize {
        self.stamps.capacity() * size_of::<u32>()
    }

    #[inline(always)]
    pub fn contains(&self, number: u32) -> bool {
        self.stamps[number as usize] >= self.epoch
    }

    /// Whether a member is flagged; `None` if the number is no member.
    #[inline(always)]
    pub fn flag(&self, number: u32) -> Option<bool> {
        let stamp = self.stamps[number as usize];
        (stamp >= self.epoch).then_some(stamp & 1 != 0)
    }

    /// Inserts a number; false if it was a member. A flagged member loses its flag.
    #[inline(always)]
    pub fn insert(&mut self, number: u32) -> bool {
        let stamp = &mut self.stamps[number as usize];
        let is_new = *stamp < self.epoch;
        *stamp = self.epoch;
        is_new
    }

    #[inline(always)]
    pub fn insert_flagged(&mut self, number: u32) {
        self.stamps[number as usize] = self.epoch + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_empty_after_clear_also_when_epochs_start_over() {
        let mut set = EpochSet::new(3);
        for epoch in [2, u32::MAX - 3, u32::MAX - 1] {
            set.stamps.fill(0);
            set.epoch = epoch;
            assert!(set.insert(1) && !set.insert(1));
            set.insert_flagged(2);
            assert_eq!([0, 1, 2].map(|number| set.flag(number)), [None, Some(false), Some(true)]);
            set.clear();
            assert!((0..3).all(|number| !set.contains(number)));
        }
    }
}
