//! 16-bit arithmetic: vectors near those of 32 bits, the same alone and among others, and what does
//! not suit it.

use framebatch::{Arithmetic, Code, Embedder, EmbedderOptions, EngineChoice, Error, Gpu, Preset};
use safetensors::tensor::Dtype;

use crate::engines::{manual, open};
use crate::model::{Files, TINY, data, folder, parts, safetensors};
use crate::self_test::cosine;

const TEXTS: [&str; 5] = [
    "a",
    "the cat sat on the mat",
    "where do cats sleep, and why?",
    "rain, rain, go away, come again another day",
    "",
];

fn computed_in(arithmetic: Arithmetic) -> EmbedderOptions {
    EmbedderOptions {
        arithmetic,
        ..EmbedderOptions::default()
    }
}

/// The vectors of the texts in batches of one, and in one batch.
fn vectors(gpu: &Gpu, embedder: &Embedder) -> [Vec<Vec<f32>>; 2] {
    let alone = TEXTS.map(|text| {
        let call = embedder.embed(text);
        gpu.flush();
        call.wait().unwrap()
    });
    let together = TEXTS.map(|text| embedder.embed(text));
    gpu.flush();
    let together = together.map(|call| call.wait().unwrap());
    [alone.into(), together.into()]
}

#[test]
fn vectors_are_near_those_of_32_bits_alone_and_among_others() {
    let gpu = open(EngineChoice::Gpu, manual());
    for name in ["distilbert", "modernbert", "qwen3"] {
        let model = data("models").join(name);
        let [full, half] = [Arithmetic::F32, Arithmetic::F16].map(|arithmetic| {
            let embedder = Embedder::open(&gpu, &model, computed_in(arithmetic)).unwrap();
            assert_eq!(embedder.arithmetic(), arithmetic, "{name}");
            let [alone, together] = vectors(&gpu, &embedder);
            assert_eq!(alone, together, "{name}, {arithmetic:?}");
            alone
        });
        assert_ne!(full, half, "{name} is computed in 16 bits");
        for (full, half) in full.iter().zip(&half) {
            let cosine = cosine(full, half);
            assert!(cosine >= 0.9999, "{name}: {cosine}");
        }
    }
}

/// The tiny model with inner products beyond 65,504, the largest 16-bit float.
fn beyond_the_range() -> Files {
    let mut parts = parts(&TINY);
    for part in &mut parts {
        if part.name.contains("intermediate.dense.weight") {
            part.floats.iter_mut().for_each(|x| *x *= 1e6);
        }
    }
    let mut files = folder(&TINY, Dtype::F32);
    files.set("model.safetensors", safetensors(&parts, Dtype::F32, ""));
    files
}

#[test]
fn what_does_not_suit_is_refused_where_it_is_asked_for_and_left_by_auto() {
    let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
    let cpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let tiny = folder(&TINY, Dtype::F32);
    let far = beyond_the_range();
    let gemma = |gpu: &Gpu, options| Embedder::open(gpu, &data("models").join("gemma3"), options);
    type Open<'a> = Box<dyn Fn(EmbedderOptions) -> Result<Embedder, Error> + 'a>;
    let cases: [(Open<'_>, &str); 3] = [
        (
            Box::new(|options| tiny.open_with(&cpu, options)),
            "needs a GPU with the feature shader-f16",
        ),
        (
            Box::new(|options| far.open_with(&gpu, options)),
            "less than 0.9999; load the model with the arithmetic f32",
        ),
        (
            Box::new(|options| gemma(&gpu, options)),
            "in the layers of Gemma are numbers beyond the range",
        ),
    ];
    for (open, expected) in &cases {
        let error = open(computed_in(Arithmetic::F16)).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        assert!(error.to_string().contains(expected), "{error}");
        let embedder = open(computed_in(Arithmetic::Auto)).unwrap();
        assert_eq!(embedder.arithmetic(), Arithmetic::F32, "{expected}");
        assert!(embedder.embed("a cat").wait().unwrap()[0].is_finite());
    }
    let embedder = tiny.open_with(&gpu, computed_in(Arithmetic::Auto)).unwrap();
    assert_eq!(embedder.arithmetic(), Arithmetic::F16);
    let untested = EmbedderOptions {
        verify: false,
        ..computed_in(Arithmetic::F16)
    };
    let embedder = far.open_with(&gpu, untested).unwrap();
    assert_eq!(embedder.arithmetic(), Arithmetic::F16, "as it is");
    assert_eq!(
        tiny.open_with(&gpu, EmbedderOptions::default())
            .unwrap()
            .arithmetic(),
        Arithmetic::F32,
        "unless it is asked for"
    );
}
