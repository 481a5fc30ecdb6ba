//! Tables behind operands of as many bytes as 32 bits count, on a real device. Only
//! numbers: the operands themselves are not there.

use super::*;
use crate::device::gpu::device_for_tests::with_device;
use crate::kernel::{Kernel, Named, Settings};
use crate::plan::{Operand, Segment, Step};

#[test]
fn what_lies_behind_operands_of_four_gibibytes_is_refused_with_the_bytes() {
    with_device(refuses_what_lies_behind_them);
}

fn refuses_what_lies_behind_them(gpu: &mut Gpu) {
    gpu.limits.max_buffer_size = u64::MAX;
    gpu.limits.max_storage_buffer_binding_size = u64::MAX;
    let plan = |operands| Plan {
        steps: vec![Step::Dispatch(Dispatch {
            kernel: Kernel::Named(Named::Lerp),
            settings: Settings::default(),
            operands: vec![Operand::Scalar; 3],
            output: Slot::RESULTS,
            row_words: 1,
            calls: 1,
            segments: vec![Segment { rows: 1, result: 0 }],
            entries: vec![0; 3],
        })],
        results: Vec::new(),
        slots: vec![operands, 4],
    };
    // The params and the entries take a few hundred bytes of what a buffer has.
    let most = (1 << 30) - 256;
    let mut arena = Arena::default();
    let fits = plan(most);
    let (ready, upload) = gpu.append_tables(&fits, &mut arena).expect("room");
    assert_eq!(ready[0].params, most * WORD);
    assert!(upload.bytes > u64::from(most) * u64::from(WORD));
    for operands in [1 << 30, u32::MAX - 3] {
        let error = gpu.append_tables(&plan(operands), &mut arena).map(|_| ());
        let Err(Error::TooLarge { need, limit, .. }) = error else {
            panic!("{operands} words: {error:?}");
        };
        assert!(need > u64::from(operands) * u64::from(WORD));
        assert_eq!(limit, gpu.max_buffer_bytes());
    }
}
