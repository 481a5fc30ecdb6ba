//! The limits of a session, without a session.

use super::*;
use crate::batch::Preset;
use crate::plan::ChunkSizes;

const MIB: u64 = 1 << 20;

fn limits(budget: u64, max_side_bytes: u64) -> Limits {
    let config = BatchConfig {
        memory_budget: Some(budget),
        max_pieces_in_flight: Some(3),
        ..Preset::Eager.config()
    };
    Limits::new(&config, max_side_bytes)
}

#[test]
fn batches_have_the_memory_that_tensors_leave() {
    // Four copies of a batch in 80 MiB of live bytes.
    let limits = limits(100 * MIB, 1 << 30);
    assert_eq!(limits.batch_bytes(0), 20 * MIB);
    assert_eq!(limits.batch_bytes(40 * MIB), 10 * MIB);
    assert_eq!(
        limits.batch_bytes(80 * MIB),
        MIB,
        "as much as it takes to go on"
    );
}

#[test]
fn a_batch_is_no_larger_than_a_device_holds() {
    assert_eq!(limits(100 * MIB, 4 * MIB).batch_bytes(0), MIB);
    assert_eq!(limits(100 * MIB, 4096).batch_bytes(99 * MIB), 1024);
}

#[test]
fn chunks_have_a_part_of_the_memory_that_tensors_leave() {
    let limits = limits(100 * MIB, 1 << 30);
    let device = DeviceLimits {
        max_side_bytes: 1 << 30,
        chunks: ChunkSizes::WHOLE,
        max_threads: 7,
    };
    let gpu = limits.gpu_chunk(&device, 40 * MIB);
    assert_eq!((gpu.bytes, gpu.copies), (30 * MIB, COPIES_ON_GPU));
    assert_eq!((gpu.slot_bytes, gpu.threads), (1 << 30, 7));
    let cpu = limits.cpu_chunk(&device, 40 * MIB);
    assert_eq!((cpu.bytes, cpu.copies), (5 * MIB, 1));
    let allowance = limits.allowance(&gpu);
    assert_eq!((allowance.bytes, allowance.chunks), (5 * MIB, 3));
}

#[test]
fn chunks_are_worth_their_launch_whatever_tensors_take() {
    let device = DeviceLimits {
        max_side_bytes: 1 << 30,
        chunks: ChunkSizes::WHOLE,
        max_threads: 7,
    };
    for tensors in [75 * MIB, 80 * MIB, 100 * MIB, 1000 * MIB] {
        let limits = limits(100 * MIB, 1 << 30);
        let gpu = limits.gpu_chunk(&device, tensors);
        assert_eq!((gpu.bytes, limits.allowance(&gpu).bytes), (6 * MIB, MIB));
        assert_eq!(limits.cpu_chunk(&device, tensors).bytes, MIB);
    }
    // No more than the budget has where there is no tensor.
    let limits = limits(5 * MIB, 1 << 30);
    assert_eq!(limits.gpu_chunk(&device, 5 * MIB).bytes, 3 * MIB);
    assert_eq!(limits.cpu_chunk(&device, 5 * MIB).bytes, MIB / 2);
}
