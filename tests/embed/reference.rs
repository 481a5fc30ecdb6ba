//! Real models, which tools fetch, on the texts of a reference: what another implementation made of
//! them in 64-bit floats.

use std::path::Path;

use framebatch::{Embedder, EmbedderOptions, Gpu, Storage};
use serde_json::Value;

use crate::nearness::hold;

struct Sample {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f64>,
}

fn samples(file: &str) -> Vec<Sample> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let lines = std::fs::read_to_string(data.join(file)).unwrap();
    let sample = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let list = |name: &str| value[name].as_array().unwrap().iter();
        Sample {
            text: value["text"].as_str().unwrap().into(),
            ids: list("ids").map(|id| id.as_u64().unwrap() as u32).collect(),
            embedding: list("embedding").map(|x| x.as_f64().unwrap()).collect(),
        }
    };
    lines.lines().map(sample).collect()
}

/// A model of a folder of `models`, and what is to be tested of it.
pub(crate) struct Reference {
    pub(crate) model: &'static str,
    /// The file of `tests/data` with texts, ids and vectors.
    pub(crate) file: &'static str,
    pub(crate) texts: usize,
    /// Whether storage is tested while the model is opened.
    pub(crate) verify: bool,
}

impl Reference {
    /// Holds ids and vectors in each storage to the reference; the fidelities.
    pub(crate) fn hold(&self, gpu: &Gpu, dtypes: &[Storage]) -> Vec<Option<f32>> {
        let samples = samples(self.file);
        assert_eq!(samples.len(), self.texts);
        let each = |dtype: &Storage| self.hold_storage(gpu, *dtype, &samples);
        dtypes.iter().map(each).collect()
    }

    fn hold_storage(&self, gpu: &Gpu, dtype: Storage, samples: &[Sample]) -> Option<f32> {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
        let folder = models.join(self.model);
        assert!(folder.exists(), "models/{} is not there", self.model);
        let options = EmbedderOptions {
            dtype,
            verify: self.verify,
            ..EmbedderOptions::default()
        };
        let embedder = Embedder::open(gpu, &folder, options).unwrap();
        for Sample { text, ids, .. } in samples {
            assert_eq!(embedder.ids(text).unwrap(), *ids, "{text:?}");
        }
        let calls = samples.iter().map(|sample| embedder.embed(&sample.text));
        let calls: Vec<_> = calls.collect();
        for (sample, call) in samples.iter().zip(calls) {
            let what = format!("{:?} on {:?}", sample.text, gpu.info().engine);
            hold(&what, dtype, &call.wait().unwrap(), &sample.embedding);
        }
        embedder.fidelity()
    }
}
