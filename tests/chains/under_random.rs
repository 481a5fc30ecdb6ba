//! Random chains: right on both devices, and valid WGSL.

use framebatch::graph::chain::Chain;
use framebatch::kernel::generated::source;
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::gpu::Harness;
use crate::oracle::evaluate;
use crate::processor::process;
use crate::random::{Sample, sample, tensors};

fn words() -> impl Strategy<Value = (Vec<u32>, u32)> {
    (proptest::collection::vec(any::<u32>(), 4..90), 1_u32..41)
}

/// How many results were held to a bound, and how many could not be.
#[derive(Default)]
pub(crate) struct Tally {
    held: u64,
    open: u64,
}

impl Tally {
    /// Whether the oracle had something to say.
    pub(crate) fn is_mostly_held(&self) -> bool {
        self.held > self.open
    }
}

/// Holds results to the oracle's bounds.
pub(crate) fn check(
    sample: &Sample,
    results: &[Vec<u32>],
    tally: &mut Tally,
) -> Result<(), TestCaseError> {
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
            if q.e.is_infinite() {
                tally.open += 1;
                continue;
            }
            tally.held += 1;
            prop_assert!(
                (got - q.v).abs() <= q.e,
                "result {output}, element {i}: {got} instead of {} ± {:e}\n{}",
                q.v,
                q.e,
                fuse(&sample.chain).0
            );
        }
    }
    Ok(())
}

fn runner(cases: u32) -> TestRunner {
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

#[test]
fn the_processor_is_as_exact_as_stated() {
    let tally = std::cell::RefCell::new(Tally::default());
    let result = runner(200).run(&words(), |(words, rows)| {
        let sample = sample(&words, rows);
        let (program, sizes) = fuse(&sample.chain);
        let results = process(&program, &sizes, &sample.call);
        check(&sample, &results, &mut tally.borrow_mut())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.into_inner().is_mostly_held());
}

#[test]
fn the_gpu_is_as_exact_as_stated() {
    let harness = std::cell::RefCell::new(Harness::open());
    let tally = std::cell::RefCell::new(Tally::default());
    let result = runner(60).run(&words(), |(words, rows)| {
        let sample = sample(&words, rows);
        let (program, sizes) = fuse(&sample.chain);
        let results = harness
            .borrow_mut()
            .run(&program, &[(&sizes, &sample.call)]);
        check(&sample, &results[0], &mut tally.borrow_mut())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.into_inner().is_mostly_held());
}

#[test]
fn every_stage_is_valid_wgsl() {
    let result = runner(200).run(&words(), |(words, rows)| {
        let (program, _) = fuse(&sample(&words, rows).chain);
        for stage in &program.stages {
            let text = source(stage, framebatch::kernel::Target::Gpu);
            let module = naga::front::wgsl::parse_str(&text)
                .map_err(|error| TestCaseError::fail(error.emit_to_string(&text)))?;
            naga::valid::Validator::new(
                naga::valid::ValidationFlags::all(),
                naga::valid::Capabilities::empty(),
            )
            .validate(&module)
            .map_err(|error| TestCaseError::fail(format!("{error:?}\n{text}")))?;
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
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
