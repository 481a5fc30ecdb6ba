//! Every kernel ends, whatever words its buffers hold: operands, segment table and
//! params are filled with numbers that no plan has.
//!
//! What comes out is not looked at, but each thread counts the steps of its loops: there
//! are GPU drivers that leave a loop after some steps, as llvmpipe does after 65,536, and a
//! loop that would go on for 2^32 ends there in good time. So no kernel may take more
//! than a few steps for each word that it is given.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod harness;
mod kernels;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../samples/mod.rs"]
mod samples;
mod words;

use framebatch::Preset;
use framebatch::batch::Millis;
use framebatch::device::Cpu;
use framebatch::graph::chain::{Axes, Heads, Home, Norm, Reduction};
use framebatch::graph::sampling::Sampling;
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, Term, UnaryFn};
use framebatch::kernel::searching::Scan;
use framebatch::kernel::{Kernel, Named};
use framebatch::session::{Session, Submission};
use framebatch::tensor::{DType, Packing};
use pollster::block_on;

use crate::harness::Harness;
use crate::kernels::{Subject, fused, input, packings, resident};
use crate::samples::{Samples, times};
use crate::words::{Filling, STRANGE, WORDS, fillings, mixed};

/// Runs kernels over everything strange.
fn check(subjects: &[Subject]) {
    assert!(!subjects.is_empty());
    Harness::open().run(subjects, &fillings());
}

#[test]
fn kernels_of_calls_end() {
    let mut subjects: Vec<Subject> = Named::ALL
        .map(|kernel| Subject::of(&Kernel::Named(kernel)))
        .into();
    let mut field = framebatch::graph::ExprBuilder::default();
    let rho = field.push(Term::Variable(0));
    let sine = field.push(Term::Unary(UnaryFn::Sin, rho));
    subjects.push(Subject::of(&Kernel::Named(Named::StateField(
        field.finish(sine),
    ))));
    check(&subjects);
}

/// A call of one layer of a clip of one lane, at whose beginning everything lies.
fn sampled(entry: [u32; 3], header: &[u32], clip: &[u32], rest: &[u32]) -> Filling {
    let mut words = rest.to_vec();
    words[..header.len()].copy_from_slice(header);
    words[64..64 + clip.len()].copy_from_slice(clip);
    Filling::of(entry.into(), words)
}

#[test]
fn samplings_of_clips_end() {
    let samples = &mut Samples(3);
    let weight = 1.0_f32.to_bits();
    // Lanes, layers, target, width; clip, wrap, additive, weight.
    let header = [1, 1, 0, 1, 64, 0, 0, weight];
    // Duration, lanes; times, keys, values, stride, flags, easing, floats, width.
    let clip = [0, 1, 0, 0, 12, 2, 14, 1, 0, 0, 1, 1];
    let entry = [0, 32, 0]; // The result, the rows, the header.
    let mut all = Vec::new();
    for strange in STRANGE {
        let rests = [vec![strange; WORDS], mixed(samples, WORDS)];
        for rest in rests {
            for word in 0..header.len() {
                let mut header = header;
                header[word] = strange;
                all.push(sampled(entry, &header, &clip, &rest));
            }
            for word in 0..clip.len() {
                for flags in [0, 1, 2, 4, 8, 16] {
                    let mut clip = clip;
                    clip[8] = flags;
                    clip[word] = strange;
                    all.push(sampled(entry, &header, &clip, &rest));
                }
            }
        }
    }
    Harness::open().run(&[Subject::of(&Kernel::Named(Named::Clip))], &all);
}

#[test]
fn the_cpu_samples_whatever_a_store_holds() {
    let samples = &mut Samples(5);
    let mut session = Session::new(Cpu::default(), Preset::Eager.config()).unwrap();
    let store = session.hold();
    let target = session.hold();
    for is_stored in [false, true] {
        let sampling = Sampling {
            layers: 2,
            lanes: 1,
            width: 1,
            row: 6,
            is_stored,
        };
        let recipe = session.recipe(sampling);
        for round in 0..3000 {
            let words = match STRANGE.get(round) {
                Some(strange) => vec![*strange; 64],
                None => mixed(samples, 64),
            };
            session.fill(store, &words).unwrap();
            session.fill(target, &[0; 4]).unwrap();
            // Four rows, their header, the store and the target.
            let mut operands = mixed(samples, 24 + 12);
            for time in &mut operands[..24] {
                // A time that is no number is refused before.
                *time = if f32::from_bits(*time).is_nan() {
                    1
                } else {
                    *time
                };
            }
            let flags = [0, 1 << 16, 1 << 17, 3 << 16][round % 4];
            if round % 2 == 0 {
                operands[24..28].copy_from_slice(&[1, 2 | flags, 0, 1]);
            }
            operands.extend([store, target]);
            let room = session.room(40).unwrap();
            room[..operands.len()].copy_from_slice(&operands);
            let submission = Submission {
                recipe,
                rows: 4,
                scalar: 0,
                key: None,
            };
            let now = Millis(round as f64);
            session.submit(&submission, now).unwrap();
            session.flush();
            let mut sent = session.launch(now).unwrap();
            let outcome = block_on(sent.flights.remove(0));
            let settlement = session.settle(sent.batch, sent.generation, outcome);
            assert!(settlement.unwrap().outcome.is_ok());
        }
    }
}

#[test]
fn searches_end() {
    let mut subjects = Vec::new();
    for packing in packings() {
        for (is_distance, is_short) in [(false, true), (true, false)] {
            let scan = Scan {
                packing,
                is_distance,
                is_short,
            };
            subjects.push(Subject::of(&Kernel::Named(Named::TopKScan(scan))));
        }
    }
    check(&subjects);
}

#[test]
fn maps_end() {
    check(&fused(|chain| {
        let a = input(chain, &[64, 4]);
        let flat = chain.unary(UnaryFn::Relu, a).unwrap();
        let turned = chain.transpose(a, &[1, 0]).unwrap();
        let b = input(chain, &[4, 64]);
        let strided = chain.binary(BinaryFn::Add, turned, b).unwrap();
        let joined = chain.concat(&[b, strided], 0).unwrap();
        let shape = Shape::new(&[9]).unwrap();
        let at = chain.input(shape, DType::U32, Home::Call).unwrap();
        let gathered = chain.gather(a, at, 0).unwrap();
        // A long division, whose steps are as many as the bits of its operands say.
        let rest = chain.binary(BinaryFn::Mod, strided, b).unwrap();
        vec![flat, strided, joined, gathered, rest]
    }));
}

#[test]
fn rows_end() {
    let mut subjects = Vec::new();
    for (i, dims) in [[8, 20], [8, 1000], [3, 10_000]].into_iter().enumerate() {
        // Each packing with one length of rows at least.
        for packing in packings().skip(times(i, 0)).step_by(times(3, 1)) {
            subjects.extend(fused(|chain| {
                let x = resident(chain, &dims, packing);
                let sum = chain.reduce(Reduction::Sum, x, Axes::of(&[1])).unwrap();
                let most = chain.reduce(Reduction::Argmax, x, Axes::of(&[0])).unwrap();
                let soft = chain.norm(Norm::Softmax, x, -1, None).unwrap();
                let tall = chain.norm(Norm::Softmax, x, 0, None).unwrap();
                let all = chain.reduce(Reduction::Min, x, Axes::ALL).unwrap();
                vec![sum, most, soft, tall, all]
            }));
        }
    }
    check(&subjects);
}

#[test]
fn products_end() {
    let mut subjects = Vec::new();
    for (packing, is_turned) in packings().zip([false, true, true, false, true]) {
        subjects.extend(fused(|chain| {
            let a = input(chain, &[2, 70, 40]);
            let dims = if is_turned { [50, 40] } else { [40, 50] };
            let b = resident(chain, &dims, packing);
            let b = match is_turned {
                true => chain.transpose(b, &[1, 0]).unwrap(),
                false => b,
            };
            let bias = input(chain, &[50]);
            let product = chain.matmul(a, b).unwrap();
            let sum = chain.binary(BinaryFn::Add, product, bias).unwrap();
            vec![chain.unary(UnaryFn::Relu, sum).unwrap()]
        }));
    }
    check(&subjects);
}

#[test]
fn attention_ends() {
    let mut subjects = Vec::new();
    // Heads that lie in quads, those that do not, and those longer than a part.
    for (i, (count, size)) in [(2, 8), (3, 5), (1, 68)].into_iter().enumerate() {
        let mut packings = [
            (None, true),
            (Some(Packing::Int8), false),
            (Some(Packing::Int4), true),
        ];
        packings.rotate_left(i);
        for &(packing, is_causal) in &packings[..times(1, 3)] {
            subjects.extend(fused(|chain| {
                let q = input(chain, &[40, count * size]);
                let [k, v] = [0; 2].map(|_| resident(chain, &[50, count * size], packing));
                let scale = chain.constant().unwrap();
                let heads = Heads {
                    count,
                    is_causal,
                    window: None,
                };
                vec![chain.attention(heads, [q, k, v], scale).unwrap()]
            }));
        }
    }
    check(&subjects);
}
