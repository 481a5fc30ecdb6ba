//! Merging and reuse on WebGPU.

use framebatch::graph::{Mode, Timing};
use framebatch::ops;
use framebatch::program::RowOp;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::conformance::words;
use crate::samples::Samples;
use crate::session::{Asked, ask, flush, gpu, submit};

/// A structure, the words of its operands for some rows, and a t.
struct Call {
    op: RowOp,
    operands: Vec<Vec<u32>>,
    rows: usize,
    t: f32,
}

impl Call {
    fn asked(&self) -> (Vec<&[u32]>, &RowOp, usize, f32) {
        let operands = self.operands.iter().map(Vec::as_slice).collect();
        (operands, &self.op, self.rows, self.t)
    }
}

fn calls(seed: u64, count: usize) -> Vec<Call> {
    let mut samples = Samples(seed);
    (0..count)
        .map(|i| {
            let rows = 1 + (samples.bits() % 90) as usize;
            let t = samples.unit();
            let floats = |samples: &mut Samples, n| words(&samples.floats(n)).to_vec();
            let states =
                |samples: &mut Samples| bytemuck::cast_slice(&samples.states(rows)).to_vec();
            let (op, operands) = match i % 6 {
                0 => {
                    let op = ops::lerp(1, Timing::Call).expect("a width of 1");
                    (
                        op,
                        vec![floats(&mut samples, rows), floats(&mut samples, rows)],
                    )
                }
                1 => {
                    let op = ops::lerp(3, Timing::Row).expect("a width of 3");
                    let (a, b) = (
                        floats(&mut samples, rows * 3),
                        floats(&mut samples, rows * 3),
                    );
                    (op, vec![a, b, words(&samples.units(rows)).to_vec()])
                }
                2 => {
                    let (a, b) = (samples.quaternions(rows), samples.quaternions(rows));
                    (
                        ops::slerp(Timing::Call),
                        vec![words(&a).to_vec(), words(&b).to_vec()],
                    )
                }
                3 => (ops::gradients(), vec![states(&mut samples)]),
                4 => {
                    let op = ops::interpolate(Mode::Lerp, Timing::Call);
                    (op, vec![states(&mut samples), states(&mut samples)])
                }
                _ => {
                    let op = ops::interpolate(Mode::Slerp, Timing::Row);
                    let t = words(&samples.units(rows)).to_vec();
                    (op, vec![states(&mut samples), states(&mut samples), t])
                }
            };
            Call {
                op,
                operands,
                rows,
                t,
            }
        })
        .collect()
}

#[wasm_bindgen_test]
async fn neighbors_change_no_bit() {
    let mut session = gpu().await;
    let calls = calls(7, 48);
    let mut alone = Vec::new();
    for call in &calls {
        let (operands, op, rows, t) = call.asked();
        alone.push(
            ask(
                &mut session,
                &Asked {
                    op,
                    operands: &operands,
                    rows,
                    t,
                },
            )
            .await,
        );
    }
    for call in &calls {
        let (operands, op, rows, t) = call.asked();
        submit(
            &mut session,
            &Asked {
                op,
                operands: &operands,
                rows,
                t,
            },
        );
    }
    let before = session.stats().device;
    let merged = flush(&mut session).await;
    let after = session.stats().device;
    assert_eq!(merged, alone);
    assert_eq!(after.submits - before.submits, 1, "one submission");
    assert_eq!(after.readbacks - before.readbacks, 1, "one read-back");
    assert_eq!(
        after.dispatches - before.dispatches,
        6,
        "one dispatch a structure"
    );
}

#[wasm_bindgen_test]
async fn a_warm_batch_creates_nothing() {
    let mut session = gpu().await;
    let mut send = async |seed: u64| {
        for call in calls(seed, 60) {
            let (operands, op, rows, t) = call.asked();
            submit(
                &mut session,
                &Asked {
                    op,
                    operands: &operands,
                    rows,
                    t,
                },
            );
        }
        flush(&mut session).await;
        session.stats().device
    };
    let first = send(1).await;
    let second = send(1).await;
    assert_eq!(first.pool_buffers, second.pool_buffers);
    assert_eq!(first.pool_bytes, second.pool_bytes);
    // All four kernels serve the six structures.
    assert_eq!(
        (first.pipelines_compiled, second.pipelines_compiled),
        (4, 4)
    );
}

#[wasm_bindgen_test]
async fn disposal_leaves_nothing_on_the_device() {
    let mut session = gpu().await;
    let call = &calls(3, 1)[0];
    let (operands, op, rows, t) = call.asked();
    ask(
        &mut session,
        &Asked {
            op,
            operands: &operands,
            rows,
            t,
        },
    )
    .await;
    let ticket = submit(
        &mut session,
        &Asked {
            op,
            operands: &operands,
            rows,
            t,
        },
    );
    assert_eq!(session.dispose(), [ticket], "what is pending is named");
    let held = session.stats().device;
    assert_eq!((held.pool_buffers, held.pool_bytes), (0, 0));
}
