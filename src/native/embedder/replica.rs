//! A model's weights on the devices of several sessions. The weights are read once and kept on the
//! host once, from where devices are filled again after a loss.

use super::load::Places;
use super::weights::StoredWeights;
use crate::embed::{Config, Weight};
use crate::error::Error;
use crate::graph::shape::Shape;
use crate::native::gpu::Gpu;
use crate::native::storage::Storage;
use crate::native::tensor::Tensor;

/// The weights on one session's device.
pub(super) struct Replica {
    pub(super) gpu: Gpu,
    pub(super) tensors: Vec<Tensor>,
    /// The weights' numbers in the session.
    pub(super) numbers: Vec<u32>,
}

/// Refuses no session, more than 64, and a session that is given twice.
pub(super) fn check_sessions(gpus: &[Gpu]) -> Result<&[Gpu], Error> {
    let refuse = |problem: &str| Err(Error::InvalidInput(["embedder: ", problem].concat()));
    let is_again = |at: usize| gpus[..at].iter().any(|gpu| gpu.is_same(&gpus[at]));
    match gpus.len() {
        0 => refuse("there is no session; give one at least"),
        count if count > Places::MOST => {
            refuse("there are more than 64 sessions; make several embedders")
        }
        count if (1..count).any(is_again) => refuse("a session is there twice; give it once"),
        _ => Ok(gpus),
    }
}

/// Copies each tensor to all devices, in the format that suits the first device.
pub(super) fn upload(
    gpus: &[Gpu],
    stored: &mut StoredWeights<'_>,
    config: &Config,
    weights: &[Weight],
    dtype: Storage,
) -> Result<Vec<Replica>, Error> {
    let replica = |gpu: &Gpu| Replica {
        gpu: gpu.clone(),
        tensors: Vec::with_capacity(weights.len()),
        numbers: Vec::with_capacity(weights.len()),
    };
    let mut replicas: Vec<Replica> = gpus.iter().map(replica).collect();
    let info = gpus[0].info();
    for weight in weights {
        let contents = stored.contents(config, weight, &info, dtype)?;
        let shape = Shape::new(&weight.dims)?;
        for replica in &mut replicas {
            let tensor = replica.gpu.keep(shape, contents.clone())?;
            replica.numbers.push(tensor.number());
            replica.tensors.push(tensor);
        }
    }
    Ok(replicas)
}
