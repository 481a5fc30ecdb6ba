//! What embeddings are.

use framebatch::embed::{Config, Family, Heads, Pooling};
use framebatch::{Embedder, EngineChoice, Gpu, Preset, Storage};
use safetensors::tensor::Dtype;

use crate::engines::{both, both_manual, open};
use crate::model::{TINY, folder, ids, parts, safetensors};
use crate::nearness::{farthest, hold};
use crate::oracle::Oracle;

pub(crate) const DTYPES: [Storage; 5] = [
    Storage::F32,
    Storage::F16,
    Storage::Bf16,
    Storage::Int8,
    Storage::Int4,
];

#[test]
fn embeddings_are_those_of_the_definition() {
    let variants = [
        TINY,
        Config {
            pooling: Pooling::Cls,
            ..TINY
        },
        Config {
            pooling: Pooling::Max,
            ..TINY
        },
        Config {
            pooling: Pooling::LastToken,
            ..TINY
        },
        Config {
            family: Family::Roberta,
            first_position: 2,
            hidden: 128,
            heads: Heads::even(2, 128),
            ..TINY
        },
        Config {
            hidden: 36,
            heads: Heads::even(3, 36),
            intermediate: 50,
            vocab: 77,
            ..TINY
        },
    ];
    for gpu in both() {
        for config in &variants {
            let folder = folder(config, Dtype::F32);
            let oracle = Oracle::new(config, folder.get("model.safetensors"));
            let dtypes = if *config == TINY {
                &DTYPES[..]
            } else {
                &DTYPES[..1]
            };
            for dtype in dtypes.iter().copied() {
                let embedder = folder.open(&gpu, dtype).unwrap();
                assert_eq!(embedder.config(), config);
                assert_eq!(embedder.dtype(), dtype);
                let texts = [1, 2, 3, 7, 16, 33, 40];
                let padding = config.padding();
                let texts = texts.map(|tokens| {
                    let ids = ids(config, 1, tokens).into_iter();
                    // RoBERTa's padding is no part of a text.
                    ids.map(|id| if Some(id) == padding { 5 } else { id })
                        .collect::<Vec<u32>>()
                });
                let calls = texts.each_ref().map(|ids| embedder.embed_ids(ids));
                for (ids, call) in texts.iter().zip(calls) {
                    let what = format!("{} tokens of {config:?}", ids.len());
                    hold(&what, dtype, &call.wait().unwrap(), &oracle.embed(ids));
                }
            }
        }
    }
}

#[test]
fn vectors_that_are_not_normalized_keep_their_length() {
    let config = Config {
        normalize: false,
        ..TINY
    };
    let folder = folder(&config, Dtype::F32);
    let oracle = Oracle::new(&config, folder.get("model.safetensors"));
    for gpu in both() {
        let embedder = folder.open(&gpu, Storage::F32).unwrap();
        let ids = ids(&config, 2, 11);
        let given = embedder.embed_ids(&ids).wait().unwrap();
        let exact = oracle.embed(&ids);
        let length = exact.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(
            (length - 1.0).abs() > 0.1,
            "the length says nothing: {length}"
        );
        assert!(farthest(&given, &exact) <= 1e-5);
    }
}

pub(crate) fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_text_has_the_same_bits_alone_and_among_others() {
    for gpu in both_manual() {
        for dtype in DTYPES {
            let embedder = folder(&TINY, Dtype::F32).open(&gpu, dtype).unwrap();
            let embed = |texts: &[Vec<u32>]| -> Vec<Vec<u32>> {
                let calls: Vec<_> = texts.iter().map(|ids| embedder.embed_ids(ids)).collect();
                gpu.flush();
                calls
                    .into_iter()
                    .map(|call| bits(&call.wait().unwrap()))
                    .collect()
            };
            let texts: Vec<Vec<u32>> = (0..64)
                .map(|k| ids(&TINY, k, 1 + k as usize * 7 % 40))
                .collect();
            let together = embed(&texts);
            for k in [0, 1, 5, 17, 40, 63] {
                let alone = embed(&texts[k..=k]);
                assert!(alone[0] == together[k], "text {k} as {dtype:?}");
            }
        }
    }
}

#[test]
fn files_of_all_formats_are_read() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let ids = ids(&TINY, 3, 21);
    for (dtype, prefix) in [
        (Dtype::F16, ""),
        (Dtype::BF16, "bert."),
        (Dtype::F32, "roberta."),
    ] {
        // What the file holds, exactly: as 32-bit floats.
        let mut parts = parts(&TINY);
        for part in &mut parts {
            for x in &mut part.floats {
                *x = f32::from_bits(x.to_bits() & 0xffff_0000); // The two formats hold these 8 bits
                *x = (*x * 4096.0).trunc() / 4096.0; // and no finer ones.
            }
        }
        let mut files = folder(&TINY, Dtype::F32);
        files.set("model.safetensors", safetensors(&parts, Dtype::F32, ""));
        let exact = embed(&files, &gpu, Storage::F32, &ids);
        files.set("model.safetensors", safetensors(&parts, dtype, prefix));
        let storages: &[Storage] = match dtype {
            Dtype::F16 => &[Storage::F32, Storage::F16, Storage::Auto],
            Dtype::BF16 => &[Storage::F32, Storage::Bf16, Storage::Auto],
            _ => &[Storage::F32, Storage::Bf16, Storage::F16],
        };
        for storage in storages {
            let given = embed(&files, &gpu, *storage, &ids);
            assert!(given == exact, "{dtype:?} as {storage:?}");
        }
    }
}

fn embed(files: &crate::model::Files, gpu: &Gpu, dtype: Storage, ids: &[u32]) -> Vec<u32> {
    let embedder: Embedder = files.open(gpu, dtype).unwrap();
    bits(&embedder.embed_ids(ids).wait().unwrap())
}
