//! A model on the devices of its sessions, whatever it is used for.
//!
//! How a text's call is dealt to a device is the matter of `embedding`.

use std::sync::Arc;

use super::LongTexts;
use super::arithmetic::Arithmetic;
use super::embedding::Pending;
use super::encoder::Encoder;
use super::files::ModelFiles;
use super::folder::describe;
use super::load::Load;
use super::replica::{Replica, check_sessions, upload};
use super::self_test::SelfTest;
use super::vocabulary::{Split, tokenizer};
use super::weights::StoredWeights;
use crate::embed::folder::{Description, Task};
use crate::embed::{Config, numbers, weights};
use crate::error::Error;
use crate::native::gpu::Gpu;
use crate::native::storage::Storage;
use crate::native::tensor::Tensor;

pub(super) struct Model {
    /// The weights on each device, at least one.
    pub(super) replicas: Vec<Replica>,
    /// The load of each device, in the order of the replicas.
    pub(super) loads: Arc<[Load]>,
    pub(super) encoder: Arc<Encoder>,
    pub(super) numbers: Vec<f32>,
    pub(super) tokenizer: Split,
    pub(super) lowercase: bool,
    pub(super) long_texts: LongTexts,
    /// The least cosine of the self-test; `None` where there was none.
    pub(super) fidelity: Option<f32>,
    pub(super) pending: Pending,
}

/// How a model is used.
pub(super) struct Usage {
    pub(super) dtype: Storage,
    pub(super) arithmetic: Arithmetic,
    pub(super) long_texts: LongTexts,
    /// Whether storage in fewer bits is tested.
    pub(super) verify: bool,
}

impl Model {
    /// Reads a model and copies it to each session's device.
    pub(super) fn open(
        gpus: &[Gpu],
        files: &ModelFiles<'_>,
        task: Task,
        usage: Usage,
    ) -> Result<(Model, Description), Error> {
        let gpus = check_sessions(gpus)?;
        let description = describe(files, task)?;
        let config = description.config.clone();
        let tokenizer = tokenizer(files, config.vocab)?;
        let list = weights(&config);
        let mut stored = StoredWeights::open(files, &config, &list)?;
        let replicas = upload(gpus, &mut stored, &config, &list, usage.dtype)?;
        let mut test = SelfTest {
            replica: &replicas[0],
            stored: &mut stored,
            config: &config,
            list: &list,
            task,
            verifies: usage.verify,
        };
        let fidelity = test.run(files, &tokenizer)?;
        let precision = test.precision(gpus, &tokenizer, usage.arithmetic)?;
        let config = Config {
            precision,
            ..config
        };
        let homes = replicas[0].tensors.iter().map(Tensor::home).collect();
        let loads = gpus.iter().map(|gpu| Load::new(gpu.shared().sound()));
        let model = Model {
            loads: loads.collect(),
            replicas,
            numbers: numbers(&config),
            encoder: Arc::new(Encoder::new(config, homes)),
            tokenizer,
            lowercase: description.lowercase,
            long_texts: usage.long_texts,
            fidelity,
            pending: Pending::default(),
        };
        Ok((model, description))
    }
}
