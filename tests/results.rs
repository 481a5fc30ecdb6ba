//! Where results lie: in fresh memory, or in what the caller lends.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use engines::both_manual;
use framebatch::{Code, Mode, State};
use samples::Samples;

#[test]
fn a_result_lies_in_the_memory_that_the_caller_lends() {
    const FLOATS: usize = 5000;
    let values = vec![2.0; FLOATS];
    for gpu in both_manual() {
        let lent: [fn() -> Vec<f32>; 5] = [
            || vec![7.0; FLOATS],
            || vec![7.0; 3 * FLOATS],
            || Vec::with_capacity(FLOATS),
            || vec![7.0; 10],
            Vec::new,
        ];
        for lent in lent {
            let memory = lent();
            let (place, fits) = (memory.as_ptr(), memory.capacity() >= FLOATS);
            let call = gpu.lerp(&values, &values, 0.5).with_memory(memory);
            gpu.flush();
            let result = call.wait().unwrap();
            assert_eq!(result, values);
            assert!(!fits || result.as_ptr() == place);
        }
    }
}

#[test]
fn large_results_of_many_calls_lie_each_in_memory_of_its_own() {
    for gpu in both_manual() {
        let states: Vec<State> = Samples(4).states(150_000);
        // One call is cut in chunks; the others share them.
        let parts = [&states[..], &states[..9000], &states[9000..20_000]];
        let expected = parts.map(|states| gpu.compute_gradients(states));
        gpu.flush();
        let expected = expected.map(|call| call.wait().unwrap());
        let mut memory = parts.map(|states| vec![f32::NAN; 32 * states.len()]);
        for _ in 0..2 {
            let places = memory.each_ref().map(Vec::as_ptr);
            let mut lent = memory.into_iter();
            let calls = parts.map(|states| {
                let lent = lent.next().unwrap();
                gpu.compute_gradients(states).with_memory(lent)
            });
            gpu.flush();
            memory = calls.map(|call| call.wait().unwrap());
            assert_eq!(memory.each_ref().map(Vec::as_ptr), places);
            assert!(memory == expected);
        }
    }
}

#[test]
fn states_lie_in_lent_memory_too_and_what_no_call_needs_is_dropped() {
    for gpu in both_manual() {
        let states: Vec<State> = Samples(5).states(100);
        let memory = states.clone();
        let place = memory.as_ptr();
        let call = gpu
            .interpolate(&states, &states, 0.5, Mode::Lerp)
            .with_memory(memory);
        gpu.flush();
        let result = call.wait().unwrap();
        assert_eq!((result.as_ptr(), &result), (place, &states));
        // An answer that is there, an empty call and a refused one.
        let call = gpu.lerp(&[1.0], &[3.0], 0.5);
        gpu.flush();
        let later = gpu.lerp(&[1.0], &[1.0], 0.5);
        gpu.flush();
        assert_eq!(later.wait().unwrap(), [1.0]);
        assert_eq!(call.with_memory(vec![5.0; 9]).wait().unwrap(), [2.0]);
        let empty = gpu.lerp(&[], &[], 0.5).with_memory(vec![5.0]);
        assert!(empty.wait().unwrap().is_empty());
        let refused = gpu.lerp(&[1.0], &[], 0.5).with_memory(vec![5.0]);
        assert_eq!(refused.wait().unwrap_err().code(), Code::InvalidInput);
    }
}
