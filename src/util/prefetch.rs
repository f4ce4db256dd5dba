//! Asking for memory before it is needed.

/// Asks the processor to bring an item near, if it exists: what a message needs lies all over the
/// caches, and is known some time before it is read.
#[inline(always)]
pub fn bring<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, it changes nothing a program can see, and the
        // address is that of a live item.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}
