//! What embeddings cost the device.

use framebatch::embed::Activations;
use framebatch::{BatchConfig, Config, EngineChoice, Gpu, Storage};
use safetensors::tensor::Dtype;

use crate::engines::{manual, open};
use crate::model::{TINY, folder, ids};

fn on_gpu() -> Gpu {
    open(EngineChoice::Gpu, manual())
}

#[test]
fn sixty_four_texts_are_one_submission() {
    let gpu = on_gpu();
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let embed = |texts: std::ops::Range<u64>| {
        let texts: Vec<Vec<u32>> = texts.map(|k| ids(&TINY, k, 2 + k as usize % 20)).collect();
        let calls: Vec<_> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
        gpu.flush();
        for call in calls {
            call.wait().unwrap();
        }
    };
    embed(0..64); // The kernels are compiled, and the memory is there.
    let before = gpu.stats().device;
    embed(64..128);
    let after = gpu.stats().device;
    assert_eq!(after.submits - before.submits, 1);
    assert_eq!(after.readbacks - before.readbacks, 1);
    let dispatches = after.dispatches - before.dispatches;
    assert!(dispatches <= u64::from(7 * TINY.layers + 3), "{dispatches}");
    assert_eq!(after.bytes_down - before.bytes_down, 64 * 64 * 4);
}

#[test]
fn a_new_length_compiles_nothing_and_creates_nothing() {
    let gpu = on_gpu();
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let embed = |tokens| {
        let call = embedder.embed_ids(&ids(&TINY, 1, tokens));
        gpu.flush();
        call.wait().unwrap();
    };
    embed(40);
    embed(40);
    let before = gpu.stats().device;
    for tokens in 2..40 {
        embed(tokens);
    }
    let after = gpu.stats().device;
    assert_eq!(after.submits - before.submits, 38);
    assert_eq!(after.pipelines_compiled, before.pipelines_compiled);
    assert_eq!(after.pool_buffers, before.pool_buffers);
    assert_eq!(after.pool_bytes, before.pool_bytes);
}

#[test]
fn equal_texts_that_wait_are_computed_once() {
    let gpu = on_gpu();
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let (same, other) = (ids(&TINY, 1, 9), ids(&TINY, 2, 9));
    let first = embedder.embed_ids(&same);
    let given_up = embedder.embed_ids(&same);
    let second = embedder.clone().embed_ids(&same);
    let third = embedder.embed_ids(&other);
    drop(given_up); // The other calls of the text are answered all the same.
    assert_eq!(gpu.stats().calls, 2);
    gpu.flush();
    let first = first.wait().unwrap();
    assert_eq!(first, second.wait().unwrap());
    assert_ne!(first, third.wait().unwrap());
    // A text's vector is not kept once it was answered.
    let again = embedder.embed_ids(&same);
    assert_eq!(gpu.stats().calls, 3);
    gpu.flush();
    assert_eq!(again.wait().unwrap(), first);
    // Given up by all who asked, it is not computed.
    let calls = [embedder.embed_ids(&same), embedder.embed_ids(&same)];
    assert_eq!(gpu.stats().pending, 1);
    drop(calls);
    assert_eq!(gpu.stats().pending, 0);
}

#[test]
fn a_batch_is_full_by_its_tokens() {
    let gpu = open(
        EngineChoice::Gpu,
        BatchConfig {
            max_batch_cost: 100,
            ..manual()
        },
    );
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let calls = [40, 39, 31, 30].map(|tokens| embedder.embed_ids(&ids(&TINY, 5, tokens)));
    gpu.flush();
    for (text, call) in calls.into_iter().enumerate() {
        call.wait()
            .unwrap_or_else(|error| panic!("text {text}: {error}"));
    }
    assert_eq!(gpu.stats().batches, 2, "79 and 61 tokens");
}

#[test]
fn a_plan_can_be_seen_and_compiled_ahead() {
    let gpu = on_gpu();
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let text = ids(&TINY, 1, 12);
    let plan = gpu.explain(|gpu| {
        for tokens in [5, 9] {
            drop(embedder.through(gpu).embed_ids(&text[..tokens]));
        }
    });
    let dispatches = plan.matches("dispatch").count();
    assert!((10..=17).contains(&dispatches), "{plan}");
    let warm = gpu.warmup(|gpu| drop(embedder.through(gpu).embed_ids(&text)));
    pollster::block_on(warm).unwrap();
    let before = gpu.stats().device.pipelines_compiled;
    assert!(before > 0);
    let call = embedder.embed_ids(&text);
    gpu.flush();
    call.wait().unwrap();
    assert_eq!(gpu.stats().device.pipelines_compiled, before);
}

/// A session whose memory is that of these settings, also where the suite runs on a device with
/// little memory.
fn with_memory_of(engine: EngineChoice, batch: BatchConfig) -> Gpu {
    let config = Config {
        engine,
        batch,
        ..Config::default()
    };
    pollster::block_on(Gpu::open(config)).unwrap()
}

/// The rule for texts of a batch counts what the GPU really allocates for them.
#[test]
fn texts_take_the_memory_that_their_batch_size_counts() {
    let gpu = with_memory_of(EngineChoice::Gpu, manual());
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let tokens = 40;
    let held = |texts: u64| {
        let calls: Vec<_> = (0..texts)
            .map(|text| embedder.embed_ids(&ids(&TINY, text, tokens)))
            .collect();
        gpu.flush();
        for call in calls {
            call.wait().unwrap();
        }
        gpu.stats().device.pool_live_bytes
    };
    let (few, many) = (held(8), held(64));
    let text = Activations {
        tokens: tokens as u64,
        hidden: TINY.hidden.into(),
        intermediate: TINY.intermediate.into(),
    };
    let each = (many - few) / (64 - 8);
    assert!(
        each >= text.bytes() && each <= text.bytes() + text.bytes() / 4,
        "{each}"
    );
}

#[test]
fn texts_of_a_batch_are_limited_by_memory_and_by_tokens() {
    let text = Activations {
        tokens: 128,
        hidden: 384,
        intermediate: 1536,
    };
    // Budget, cost of a batch, model: floor((0.8 x budget - model) / 1,771,536), or the tokens'.
    let cases = [
        (100_000_000, 16_384, 30_000_000, 28),
        (100_000_000, 1024, 30_000_000, 8),
        (100_000_000, 16_384, 90_000_000, 1),
        (100_000_000, 1, 0, 1),
        (1 << 31, 16_384, 0, 128),
    ];
    for (budget, max_batch_cost, model, expected) in cases {
        let gpu = with_memory_of(
            EngineChoice::Cpu,
            BatchConfig {
                memory_budget: Some(budget),
                max_batch_cost,
                ..manual()
            },
        );
        assert_eq!(
            gpu.optimal_text_batch_size(model, &text),
            expected,
            "{budget}"
        );
    }
}
