//! Random chains: right on both devices, the same bits beside others, and valid
//! WGSL.

use std::cell::{Cell, RefCell};

use framebatch::device::{Cpu, Device, Engine};
use framebatch::graph::Precision;
use framebatch::graph::chain::{Chain, Home, Node, Op};
use framebatch::kernel::generated::source;
use framebatch::plan::fuse::fuse;
use framebatch::program::Body;
use framebatch::tensor::DType;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::engines;
use crate::gpu::SIZES;
use crate::oracle::{Tensor, evaluate};
use crate::random::{Sample, sample, tensors};
use crate::sessions::{Results, Sent};

pub(crate) fn words() -> impl Strategy<Value = (Vec<u32>, u32)> {
    (proptest::collection::vec(any::<u32>(), 4..90), 1_u32..41)
}

/// How many results were held to a bound, and how many could not be.
#[derive(Default)]
pub(crate) struct Tally {
    held: u64,
    open: u64,
}

impl Tally {
    /// Counts a result that the oracle knows up to this error: nothing, where that is infinite.
    pub(crate) fn count(&mut self, error: f64) {
        match error.is_finite() {
            true => self.held += 1,
            false => self.open += 1,
        }
    }

    /// Whether the oracle had something to say.
    pub(crate) fn is_mostly_held(&self) -> bool {
        self.held > self.open
    }
}

/// Holds results to the oracle's bounds; which elements it knows something of.
pub(crate) fn check(
    sample: &Sample,
    results: &[Vec<u32>],
    tally: &mut Tally,
) -> Result<Vec<Vec<bool>>, TestCaseError> {
    let (inputs, constants) = tensors(&sample.chain, &sample.call);
    let expected = evaluate(&sample.chain, &inputs, &constants);
    prop_assert_eq!(expected.len(), results.len());
    for (output, (expected, words)) in expected.iter().zip(results).enumerate() {
        let id = sample.chain.outputs()[output];
        let is_float = sample.chain.node(id).dtype == DType::F32;
        prop_assert_eq!(expected.values.len(), words.len());
        for (i, (q, word)) in expected.values.iter().zip(words).enumerate() {
            let got = if is_float {
                f64::from(f32::from_bits(*word))
            } else {
                f64::from(*word)
            };
            tally.count(q.e);
            if q.e.is_infinite() {
                continue;
            }
            prop_assert!(
                (got - q.v).abs() <= q.e,
                "result {output}, element {i}: {got} instead of {} ± {:e}\n{}",
                q.v,
                q.e,
                fuse(&sample.chain).0
            );
        }
    }
    let known = |tensor: &Tensor| tensor.values.iter().map(|q| q.e.is_finite()).collect();
    Ok(expected.iter().map(known).collect())
}

pub(crate) fn runner(cases: u32) -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(cases);
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

/// Graphs before a session is made anew: one keeps all that it ever compiled.
const GRAPHS: u64 = 100;

/// A graph and its neighbors, made of random words. Every other neighbor is the
/// same graph with another number of rows, which often is the same program.
fn company(words: &[u32], rows: u32) -> Vec<Sample> {
    let first = sample(words, rows);
    let count = 1 + words[0] as usize % 7;
    let mut all = vec![first];
    for k in 1..=count {
        let mut others = words.to_vec();
        if k % 2 == 0 {
            others.rotate_left(k % words.len());
        }
        let mut neighbor = sample(&others, 1 + (rows + 5 * k as u32) % 40);
        if k % 2 == 1 {
            share_tensors(&all[0], &mut neighbor);
        }
        all.push(neighbor);
    }
    // The place of the call among its neighbors is random too.
    let place = words[1] as usize % all.len();
    all.swap(0, place);
    all
}

/// Gives a graph the tensors of another one where they have the same shape:
/// only calls that read the same ones are computed together.
fn share_tensors(from: &Sample, to: &mut Sample) {
    let inputs = from.chain.inputs().zip(to.chain.inputs());
    let shared = inputs.enumerate().filter(|(_, (a, b))| {
        let home = |node: &Node| match node.op {
            Op::Input { home, .. } => home,
            _ => Home::Call,
        };
        home(a) != Home::Call && home(a) == home(b) && a.shape == b.shape
    });
    for (i, _) in shared {
        to.call.inputs[i].clone_from(&from.call.inputs[i]);
    }
}

/// The first place where two results differ that `counts`, and how.
pub(crate) fn difference(
    alone: &Results,
    together: &Results,
    counts: impl Fn(usize, usize) -> bool,
) -> Option<String> {
    for (result, (alone, together)) in alone.iter().zip(together).enumerate() {
        for (i, (alone, together)) in alone.iter().zip(together).enumerate() {
            if alone != together && counts(result, i) {
                let floats = [alone, together].map(|word| f32::from_bits(*word));
                return Some(format!(
                    "result {result}, element {i}: {alone:#x} alone, {together:#x} merged, as floats {floats:?}"
                ));
            }
        }
    }
    None
}

/// Holds random graphs on a device to the oracle, alone, and to the bits of
/// that beside 1 to 7 others.
///
/// WGSL leaves it open what x / (y - y) gives, and llvmpipe gives whatever it
/// finds in a register: there, bits are only compared where the oracle knows
/// something.
fn explore<D: Device>(open: impl Fn() -> D) {
    let is_exact = open().info().engine == Engine::Cpu;
    let session = RefCell::new((Sent::to(open()), 0_u64));
    let tally = RefCell::new(Tally::default());
    let spared = Cell::new(0);
    let result = runner(200).run(&words(), |(words, rows)| {
        let (session, graphs) = &mut *session.borrow_mut();
        *graphs += 1;
        if *graphs % GRAPHS == 0 {
            *session = Sent::to(open());
        }
        let all = company(&words, rows);
        let mut apart = 0;
        let alone: Vec<Results> = (all.iter())
            .map(|call| {
                let (mut results, dispatches) = session.run(&[call]);
                apart += dispatches;
                results.remove(0)
            })
            .collect();
        let mut known = Vec::new();
        for (call, results) in all.iter().zip(&alone) {
            known.push(check(call, results, &mut tally.borrow_mut())?);
        }
        let (together, dispatches) = session.run(&all.iter().collect::<Vec<_>>());
        spared.set(spared.get() + apart - dispatches);
        for (at, (together, alone)) in together.iter().zip(&alone).enumerate() {
            let counts = |result: usize, i: usize| is_exact || known[at][result][i];
            let difference = difference(alone, together, counts);
            let graph = || fuse(&all[at].chain).0;
            prop_assert!(
                difference.is_none(),
                "graph {at} of {}: {}\n{}",
                all.len(),
                difference.unwrap_or_default(),
                graph()
            );
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.into_inner().is_mostly_held());
    let graphs = session.into_inner().1;
    assert!(
        is_exact || 2 * spared.get() > graphs,
        "{spared:?} dispatches were shared by {graphs} graphs"
    );
}

#[test]
fn random_graphs_are_right_alone_and_the_same_merged_on_the_cpu() {
    explore(Cpu::default);
}

#[test]
fn random_graphs_are_right_alone_and_the_same_merged_on_the_gpu() {
    explore(engines::device);
}

#[test]
fn every_stage_is_valid_wgsl() {
    let attentions = Cell::new(0);
    let result = runner(200).run(&words(), |(words, rows)| {
        let (program, _) = fuse(&sample(&words, rows).chain);
        for stage in &program.stages {
            let is_attention = matches!(stage.body, Body::Attention(_));
            attentions.set(attentions.get() + u32::from(is_attention));
            for tiles in SIZES {
                check_wgsl(&source(stage, tiles, Precision::F32))?;
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(attentions.get() > 0, "no graph had attention");
}

fn check_wgsl(text: &str) -> Result<(), TestCaseError> {
    let module = naga::front::wgsl::parse_str(text)
        .map_err(|error| TestCaseError::fail(error.emit_to_string(text)))?;
    naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        // Every WebGPU device has this capability, and the kernels need no other.
        naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32,
    )
    .validate(&module)
    .map_err(|error| TestCaseError::fail(format!("{error:?}\n{text}")))?;
    Ok(())
}

#[test]
fn chains_survive_the_wire() {
    let result = runner(200).run(&words(), |(words, rows)| {
        let chain = sample(&words, rows).chain;
        let encoded = chain.encode();
        prop_assert_eq!(&Chain::decode(&encoded).unwrap(), &chain);
        // Any other word there is refused or stands for another chain, and nothing panics.
        for at in 0..encoded.len().min(40) {
            for change in [1, 0x100, 0x1_0000, u32::MAX] {
                let mut broken = encoded.clone();
                broken[at] ^= change;
                if let Ok(other) = Chain::decode(&broken) {
                    prop_assert!(other != chain || at < 2 || other.encode() == encoded);
                    fuse(&other);
                }
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
