//! Work beyond a device's limits: the bits that one with room for it gives, or
//! an error with the numbers.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use engines::{manual, open, small};
use framebatch::device::GpuOptions;
use framebatch::{Axes, Batch, BatchConfig, Code, Config, EngineChoice, Error, Gpu, Mode};
use framebatch::{Preset, State, TensorBytes, Value};
use pollster::block_on;
use samples::Samples;

const MIB: u64 = 1 << 20;

fn usual() -> Gpu {
    open(EngineChoice::Gpu, Preset::Eager.config())
}

fn on_gpu() -> Config {
    Config {
        engine: EngineChoice::Gpu,
        ..Config::default()
    }
}

/// A device of 1 MiB a buffer and 4 MiB in all.
fn lowered() -> Gpu {
    block_on(Gpu::open(small(on_gpu()))).expect("an adapter")
}

/// A device that has no more than so much of a limit.
fn with_limit(name: &str, most: u64) -> Gpu {
    block_on(Gpu::open(Config {
        gpu: GpuOptions {
            max_limits: vec![(name.into(), most)],
            ..GpuOptions::default()
        },
        ..on_gpu()
    }))
    .expect("an adapter")
}

/// A device that starts few workgroups at once.
fn with_few_workgroups() -> Gpu {
    with_limit("maxComputeWorkgroupsPerDimension", 8)
}

fn bits(floats: Result<Vec<f32>, Error>) -> Vec<u32> {
    let floats = floats.expect("answered");
    floats.into_iter().map(f32::to_bits).collect()
}

/// relu(x · w) · w + x of rows of 64, and the squares of the rows' sums.
fn network(gpu: &Gpu, x: &[f32], w: &[f32]) -> [Vec<u32>; 2] {
    let rows = u32::try_from(x.len() / 64).expect("few");
    let w = gpu.tensor(w, &[64, 64]).expect("small");
    let mut batch = gpu.batch();
    let (x, w) = (
        batch.upload_shaped(x, &[rows, 64]).expect("its shape"),
        batch.tensor(&w).expect("its own"),
    );
    let mut layers = || {
        let y = batch.matmul(x, w)?;
        let y = batch.relu(y)?;
        let y = batch.matmul(y, w)?;
        let y = batch.add(y, x)?;
        let sums = batch.dot(y, y)?;
        Ok::<_, Error>((y, sums))
    };
    let (y, sums) = layers().expect("they fit");
    batch.keep(y).expect("a value");
    batch.keep(sums).expect("a value");
    block_on(batch.execute()).expect("computed");
    [y, sums].map(|value| bits(block_on(batch.read(value))))
}

#[test]
fn calls_beyond_a_buffer_have_the_bits_of_whole_ones() {
    let usual = usual();
    for lowered in [lowered(), with_few_workgroups()] {
        let samples = &mut Samples(3);
        // 2.4 MiB of operands, 9.6 MiB of results.
        let states: Vec<State> = samples.states(150_000);
        let (a, b) = (samples.quaternions(80_000), samples.quaternions(80_000));
        let each = samples.units(80_000);
        let x = samples.floats(7001 * 64);
        let w: Vec<f32> = samples.floats(64 * 64);
        let before = lowered.stats();
        let run = |gpu: &Gpu| {
            let gradients = bits(gpu.compute_gradients(&states).wait());
            let turned = bits(gpu.slerp(&a, &b, &each[..]).wait());
            let between = gpu.sequence(&states[..9000], &states[9000..18_000], 20, Mode::Lerp);
            let between = between.wait().expect("answered");
            (gradients, turned, between, network(gpu, &x, &w))
        };
        let (expected, got) = (run(&usual), run(&lowered));
        assert!(got == expected, "bits differ");
        let after = lowered.stats();
        assert!(after.pieces - before.pieces > 12, "{}", after.pieces);
        assert_eq!(after.rejected, 0);
    }
}

#[test]
fn many_small_calls_with_large_tables_go_in_chunks() {
    let calls = |gpu: &Gpu| {
        let answers: Vec<_> = (0..30_000_u16)
            .map(|k| gpu.lerp(&[f32::from(k)], &[1.0], 0.25))
            .collect();
        gpu.flush();
        answers
            .into_iter()
            .map(|call| call.wait().expect("answered")[0])
            .collect::<Vec<f32>>()
    };
    assert_eq!(calls(&usual()), calls(&lowered()));
}

#[test]
fn a_budget_holds_with_work_beyond_it() {
    let lowered = lowered();
    let states: Vec<State> = Samples(5).states(400_000);
    let gradients = lowered.compute_gradients(&states).wait().expect("answered");
    assert_eq!(gradients.len(), states.len() * 32);
    let held = lowered.stats().device.pool_peak_bytes;
    assert!(held <= 4 * MIB, "{held} bytes at most");
}

#[test]
fn what_cannot_be_split_says_so_with_the_numbers() {
    let gpu = lowered();
    let long = vec![1.0; 300_000];
    let whole = block_on(gpu.dot(&long, &long)).expect_err("one value of 1.2 MB");
    let tensor = gpu
        .tensor(&long, &[1, 300_000])
        .expect_err("1.2 MB in one row");
    // Each row reads all of the second factor.
    let mut batch = gpu.batch();
    let x = batch.upload_shaped(&long[..600], &[1, 600]).expect("small");
    let w = batch.upload_shaped(&long, &[600, 500]).expect("its shape");
    batch.matmul(x, w).expect("they fit");
    let product = block_on(batch.execute()).expect_err("1.2 MB in one buffer");
    for (error, bytes) in [
        (whole, "2400000"),
        (tensor, "1200000"),
        (product, "1202400"),
    ] {
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        let said = error.to_string();
        assert!(
            said.contains("1048576") || said.contains("1048560"),
            "{said}"
        );
        assert!(said.contains(bytes), "{said}");
    }
    assert_eq!(
        gpu.relu(&[-1.0, 2.0]).wait().expect("as before"),
        [0.0, 2.0]
    );
}

#[test]
fn limits_may_be_any_number_of_bytes() {
    // Floats that nearly fill a buffer, by their result or by their operands.
    for (name, most, floats) in [
        ("maxStorageBufferBindingSize", 100_001, 24_600),
        ("maxStorageBufferBindingSize", 100_014, 25_000),
        ("maxBufferSize", 300_001, 37_000),
        ("maxBufferSize", 300_015, 74_000),
    ] {
        let gpu = with_limit(name, most);
        for _ in 0..3 {
            let halves = gpu.lerp(&vec![0.0; floats], &vec![1.0; floats], 0.5);
            let halves = halves.wait();
            let halves = halves.unwrap_or_else(|error| panic!("{name} {most}: {error}"));
            assert!(halves.len() == floats && halves.iter().all(|half| *half == 0.5));
        }
        // A tensor as large as one may be, and one of a word more.
        let words = usize::try_from((most - 16) / 16 * 4).expect("few");
        let tensor = gpu.tensor(&vec![1.0; words], &[u32::try_from(words).unwrap()]);
        let tensor = tensor.expect("it fits");
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).expect("its own");
        let sum = batch.sum(x, Axes::ALL).expect("a value");
        block_on(batch.execute()).expect("computed");
        assert_eq!(block_on(batch.read(sum)).expect("computed"), [words as f32]);
    }
}

#[test]
fn what_needs_too_many_workgroups_at_once_says_so() {
    let gpu = with_limit("maxComputeWorkgroupsPerDimension", 1);
    let long = vec![1.0; 300_000];
    // The sum is computed in parts of 4096 elements, with a workgroup for each part.
    let error = block_on(gpu.dot(&long, &long)).expect_err("74 parts");
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    let said = error.to_string();
    assert!(said.starts_with("fused needs "), "{said}");
    assert!(said.contains("this device starts 1;"), "{said}");
    let short = block_on(gpu.dot(&long[..4096], &long[..4096]));
    assert_eq!(short.expect("one part"), [4096.0]);
}

/// Chains that read tensors of some MiB row by row, one after another and together.
fn on_tensors(gpu: &Gpu, rows: u32) -> Vec<Vec<u32>> {
    let samples = &mut Samples(11);
    let mut tensor = |dims: &[u32]| {
        let floats = samples.floats(dims.iter().product::<u32>() as usize);
        gpu.tensor(&floats, dims).expect("its shape")
    };
    let (a, b, w) = (
        tensor(&[rows, 64]),
        tensor(&[rows, 100]),
        tensor(&[164, 12]),
    );
    let shift = tensor(&[64]);
    let mut batches = [gpu.batch(), gpu.batch(), gpu.batch()];
    let values = batches.iter_mut().enumerate().map(|(number, batch)| {
        let [a, b, w, shift] = [&a, &b, &w, &shift].map(|tensor| batch.tensor(tensor));
        let (a, b, w, shift) = (a?, b?, w?, shift?);
        let values = match number {
            // Each element by itself, and a row that all share.
            0 => vec![batch.relu(a)?, batch.add(a, shift)?],
            // Rows of two tensors whose parts end at different rows.
            1 => {
                let both = batch.concat(&[a, b], 1)?;
                let y = batch.matmul(both, w)?;
                vec![batch.softmax(y, -1)?, batch.dot(a, a)?]
            }
            // Four rows as one, and negated ones.
            _ => {
                let four = batch.reshape(a, &[rows / 4, 256])?;
                vec![batch.layer_norm(four, -1, 1e-5)?, batch.neg(b)?]
            }
        };
        for value in &values {
            batch.keep(*value)?;
        }
        Ok::<_, Error>(values)
    });
    let values: Result<Vec<_>, Error> = values.collect();
    let values = values.expect("they fit");
    let done = batches.iter_mut().map(|batch| batch.execute());
    block_on(futures_util::future::try_join_all(done)).expect("computed");
    let mut results = Vec::new();
    for (batch, values) in batches.iter_mut().zip(values) {
        results.extend(
            values
                .into_iter()
                .map(|value| bits(block_on(batch.read(value)))),
        );
    }
    results
}

#[test]
fn tensors_beyond_a_buffer_are_read_in_parts() {
    let (usual, lowered) = (usual(), lowered());
    // One part a tensor, three of one and four of the other, and a last one of few rows.
    for rows in [1200, 5000, 4100] {
        let expected = on_tensors(&usual, rows);
        let before = lowered.stats().pieces;
        assert!(
            on_tensors(&lowered, rows) == expected,
            "bits differ for {rows} rows"
        );
        assert!(lowered.stats().pieces - before >= 3);
    }
    let stats = lowered.stats();
    assert_eq!((stats.rejected, stats.fallbacks), (0, 0));
    assert_eq!(stats.tensors, TensorBytes::default(), "all are freed");
}

#[test]
fn a_network_of_a_tensor_in_parts_has_the_bits_of_the_whole() {
    let (usual, lowered) = (usual(), lowered());
    let run = |gpu: &Gpu| {
        let samples = &mut Samples(13);
        let x = gpu
            .tensor(&samples.floats(9001 * 64), &[9001, 64])
            .expect("its shape");
        let w = gpu
            .tensor(&samples.floats(64 * 64), &[64, 64])
            .expect("its shape");
        let mut batch = gpu.batch();
        let mut layers = || {
            let (x, w) = (batch.tensor(&x)?, batch.tensor(&w)?);
            let y = batch.matmul(x, w)?;
            let y = batch.scale(y, 0.01)?;
            let y = batch.gelu(y)?;
            let y = batch.add(y, x)?;
            let y = batch.layer_norm(y, -1, 1e-5)?;
            let y = batch.matmul(y, w)?;
            let y = batch.scale(y, 0.01)?;
            batch.softmax(y, -1)
        };
        let y = layers().expect("they fit");
        block_on(batch.execute()).expect("computed");
        bits(block_on(batch.read(y)))
    };
    let (expected, got) = (run(&usual), run(&lowered));
    let differ = (0..got.len())
        .filter(|i| got[*i] != expected[*i])
        .map(|i| i / 64);
    let rows: std::collections::BTreeSet<usize> = differ.collect();
    assert!(
        rows.is_empty(),
        "{} rows differ, from {:?}",
        rows.len(),
        rows.first()
    );
}

#[test]
fn parts_are_there_again_after_a_loss() {
    let gpu = lowered();
    let x: Vec<f32> = Samples(12).floats(5000 * 64);
    let tensor = gpu.tensor(&x, &[5000, 64]).expect("its shape");
    let ask = || {
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).expect("its own");
        let y = batch.neg(x).expect("a value");
        block_on(batch.execute()).expect("computed");
        bits(block_on(batch.read(y)))
    };
    let negated: Vec<u32> = x.iter().map(|x| (-x).to_bits()).collect();
    assert!(ask() == negated);
    gpu.wgpu_device().expect("a GPU").destroy();
    assert!(ask() == negated);
    assert_eq!(gpu.stats().ran_on_cpu, 0);
}

/// What is computed of a value.
type Record = dyn Fn(&mut Batch<'_>, Value) -> Result<Value, Error>;

#[test]
fn a_tensor_in_parts_is_not_read_as_a_whole() {
    let gpu = lowered();
    let tensor = gpu.tensor(&vec![1.0; 300_000], &[600, 500]).expect("rows");
    let ask = |record: &Record| {
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).expect("its own");
        record(&mut batch, x).expect("its shapes fit");
        block_on(batch.execute())
    };
    let whole: [&Record; 3] = [
        &|batch, x| batch.sum(x, Axes::ALL),
        &|batch, x| batch.transpose(x, &[1, 0]),
        &|batch, x| {
            let row = batch.upload_shaped(vec![1.0; 600], &[1, 600])?;
            batch.matmul(row, x)
        },
    ];
    for record in whole {
        let error = ask(record).expect_err("refused");
        assert_eq!(error.code(), Code::LimitExceeded);
        let said = error.to_string();
        assert!(
            said.contains("1200000 bytes") && said.contains("1048560"),
            "{said}"
        );
    }
    ask(&|batch, x| batch.neg(x)).expect("as before");
}

#[test]
fn a_tensor_in_parts_is_not_written_and_keeps_its_data() {
    let gpu = block_on(Gpu::open(small(Config {
        batch: manual(),
        ..on_gpu()
    })));
    let gpu = gpu.expect("an adapter");
    let tensor = gpu.tensor(&vec![1.0; 300_000], &[600, 500]).expect("rows");
    let beside = gpu.lerp(&[1.0], &[3.0], 0.5);
    let written = gpu.write(&tensor, 4, &[5.0; 3]);
    gpu.flush();
    let error = written.wait().expect_err("refused");
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    assert!(
        error.to_string().contains("a tensor that is written"),
        "{error}"
    );
    assert_eq!(beside.wait().expect("it is not alone in its batch"), [2.0]);
    let read = |gpu: &Gpu| {
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).expect("its own");
        let y = batch.neg(x).expect("a tensor of floats");
        let done = batch.execute();
        gpu.flush();
        block_on(done).expect("as before");
        block_on(batch.read(y)).expect("kept by the batch")
    };
    assert!(read(&gpu) == [-1.0; 300_000]);
}

#[test]
fn calls_beside_large_tensors_are_not_cut_to_crumbs() {
    for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
        let gpu = block_on(Gpu::open(Config {
            engine,
            batch: BatchConfig {
                memory_budget: Some(16 << 20),
                ..Preset::Eager.config()
            },
            ..on_gpu()
        }));
        let gpu = gpu.expect("an engine");
        let held = gpu
            .tensor(&vec![1.0; 13 << 18], &[13 << 18])
            .expect("13 MiB");
        let [from, to] = [1.0, 3.0].map(|x| vec![x; 100_000]);
        let before = gpu.stats().pieces;
        let half = gpu.lerp(&from, &to, 0.5).wait().expect("there is room");
        assert!(half == [2.0; 100_000]);
        let pieces = gpu.stats().pieces - before;
        assert!(pieces <= 8, "{pieces} pieces on {engine:?}");
        drop(held);
    }
}

#[test]
fn one_chunk_at_a_time_gives_the_same_bits() {
    let alone = block_on(Gpu::open(Config {
        batch: BatchConfig {
            max_pieces_in_flight: Some(1),
            ..Preset::Eager.config()
        },
        ..on_gpu()
    }))
    .expect("an adapter");
    let states: Vec<State> = Samples(9).states(150_000);
    let calls = |gpu: &Gpu| {
        let calls = [0, 10, 20].map(|from| gpu.compute_gradients(&states[from..]));
        calls.map(|call| bits(call.wait()))
    };
    assert!(calls(&alone) == calls(&usual()));
    assert!(alone.stats().pieces > 3, "a whole call is one chunk");
}

#[test]
fn limits_that_cannot_be_lowered_are_named() {
    for (name, most) in [("maxBindGroups", 4), ("maxBufferSize", 4096)] {
        let config = Config {
            gpu: GpuOptions {
                max_limits: vec![(name.into(), most)],
                ..GpuOptions::default()
            },
            ..on_gpu()
        };
        let error = block_on(Gpu::open(config)).expect_err("refused");
        assert_eq!(error.code(), Code::InvalidInput, "{error}");
    }
}
