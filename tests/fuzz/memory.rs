//! Counts what a thread has allocated, and how much at the most.

#![allow(
    unsafe_code,
    reason = "an allocator is unsafe; this one hands everything to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes now, and at the most since they were asked for.
    static BYTES: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is the system allocator's with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps what `realloc` asks for.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps what `dealloc` asks for.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn count(bytes: isize) {
    // A thread that ends may free what its locals held.
    let _ = BYTES.try_with(|cell| {
        let (now, most) = cell.get();
        cell.set((now + bytes, most.max(now + bytes)));
    });
}

/// Begins to look for the most; what there is now.
pub(crate) fn reset() -> usize {
    let (now, _) = BYTES.get();
    // Memory may be freed by another thread than took it.
    let now = now.max(0);
    BYTES.set((now, now));
    now.cast_unsigned()
}

/// The most that there was since.
pub(crate) fn peak() -> usize {
    let (_, most) = BYTES.get();
    most.cast_unsigned()
}
