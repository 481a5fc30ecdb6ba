//! Blending: calls that sample clips at times, alone or several as layers.
//!
//! What a clip is, and how long it lives, is the matter of `clips`.

use std::sync::Arc;

use super::blocking::Blocking;
use super::call::Call;
use super::clips::Clip;
use super::gpu::Gpu;
use super::parameter::Parameter;
use super::request::{Chained, Coverage, Request, Structure, Written};
use super::shared::{Purpose, Shared};
use super::store::words_of;
use super::tensor::Tensor;
use crate::error::Error;
use crate::graph::sampling::{LAYER, MOST_LAYERS, Sampling, WEIGHTS};
use crate::ops::clips::Wrap;

/// A clip among those that are blended.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// The clip.
    pub clip: &'a Clip,
    /// The clip's time in seconds for each row.
    pub times: &'a [f32],
    /// The layer's weight, for all rows or for each row; a layer with a weight of 0 or less is left out.
    pub weight: Parameter<'a>,
    /// What becomes of times outside of the clip.
    pub wrap: Wrap,
    /// Whether the layer is added to the mean of the others. Additive layers come last.
    pub additive: bool,
}

impl Gpu {
    /// Clips of equal tracks blended, a row for each time: the mean of the layers by weight,
    /// then the additive ones on top. Quaternions are summed on one side and scaled to
    /// length 1 (nlerp); of an additive one the turn by its weight between none
    /// and all of it is multiplied from the right. Without any weight above 0 a
    /// vector is 0 and a quaternion no turn.
    ///
    /// # Errors
    ///
    /// Out of the call comes [`Error::InvalidInput`] naming the layer that is wrong: of
    /// another session, with other tracks or another number of times than the first, with
    /// NaN for a weight, or not additive behind one that is; for no layers and too many;
    /// and what may befall any call, as of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::clips::Track;
    /// # use framebatch::{Blocking, Config, EngineChoice, Layer};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let track = |values| Track {
    /// #     times: &[0.0, 1.0],
    /// #     values,
    /// #     kind: Default::default(),
    /// #     interpolation: Default::default(),
    /// #     easing: Default::default(),
    /// # };
    /// let walk = gpu.clip(&[track(&[0.0, 2.0])], None)?;
    /// let run = gpu.clip(&[track(&[0.0, 10.0])], None)?;
    /// let times = [0.5];
    /// let share = |weight: f32, layer| Layer { weight: weight.into(), ..layer };
    /// let mixed = gpu.blend(&[share(0.25, walk.layer(&times)), share(0.75, run.layer(&times))])?;
    /// assert_eq!(mixed, [4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn blend(&self, layers: &[Layer<'_>]) -> Call<f32> {
        self.sample_layers(layers, None)
    }

    /// Blends like [`Gpu::blend`] to the floats of a tensor from float number `offset` on, as
    /// [`Clip::sample_to`] does: `times` rows of the clips' width; the call resolves to no
    /// floats.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::blend`], and [`Error::InvalidInput`] for a tensor that is too short,
    /// imported, of another session or in fewer bits.
    pub fn blend_to(&self, tensor: &Tensor, offset: u32, layers: &[Layer<'_>]) -> Call<f32> {
        self.sample_layers(layers, Some((tensor, offset)))
    }

    fn sample_layers(&self, layers: &[Layer<'_>], target: Option<(&Tensor, u32)>) -> Call<f32> {
        match self.try_sample(layers, target) {
            Ok(call) => call,
            Err(error) => Call::known(Err(error)),
        }
    }

    fn try_sample(
        &self,
        layers: &[Layer<'_>],
        target: Option<(&Tensor, u32)>,
    ) -> Result<Call<f32>, Error> {
        let shared = self.shared();
        let rows = check(layers, shared)?;
        let clip = &*layers[0].clip.entry;
        let offset = target.map_or(0, |(_, offset)| offset);
        let mut tensors = vec![shared.store()?];
        let mut written = Vec::new();
        if let Some((tensor, offset)) = target {
            let need = rows as u64 * u64::from(clip.width) + u64::from(offset);
            let has = u64::from(tensor.dims().count());
            if need > has {
                return Err(invalid(&format!(
                    "the tensor has {has} floats, but the result ends at {need}"
                )));
            }
            let number = shared.admit_target("blend", tensor)?;
            tensors.push(number);
            written.push(Written {
                number,
                words: tensor.dims().count(),
                coverage: match offset == 0 && need == has {
                    true => Coverage::Replaced,
                    false => Coverage::Updated,
                },
            });
            shared.renew(&written)?;
        }
        let header = header(layers, offset);
        let fields = fields(layers);
        let interleaved = interleave(&fields, rows);
        let sampling = Sampling {
            layers: words_of(layers.len()),
            lanes: clip.lanes,
            width: clip.width,
            row: words_of(fields.len()),
            is_stored: target.is_some(),
        };
        let request = Request {
            structure: Structure::Sampling(sampling),
            rows,
            scalar: 0,
            operands: [
                bytemuck::cast_slice(&interleaved),
                bytemuck::cast_slice(&header),
                &[],
                &[],
                &[],
            ],
            chained: Chained {
                tensors,
                written,
                ..Chained::default()
            },
        };
        Ok(shared.submit(Ok(request), self.terms()))
    }
}

impl Blocking {
    /// [`Gpu::blend`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn blend(&self, layers: &[Layer<'_>]) -> Result<Vec<f32>, Error> {
        self.with_room().blend(layers).wait()
    }

    /// [`Gpu::blend_to`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn blend_to(
        &self,
        tensor: &Tensor,
        offset: u32,
        layers: &[Layer<'_>],
    ) -> Result<(), Error> {
        let done = self.with_room().blend_to(tensor, offset, layers).wait();
        done.map(drop)
    }
}

/// Refuses layers that cannot be blended; how many rows there are.
fn check(layers: &[Layer<'_>], shared: &Arc<Shared>) -> Result<usize, Error> {
    let Some(first) = layers.first() else {
        return Err(invalid("give at least 1 layer"));
    };
    if layers.len() > MOST_LAYERS as usize {
        return Err(invalid(&format!(
            "{} layers are more than {MOST_LAYERS}",
            layers.len()
        )));
    }
    let rows = first.times.len();
    let mut is_additive = false;
    for (index, layer) in layers.iter().enumerate() {
        let wrong = |problem: &str| Err(invalid(&format!("layers[{index}] {problem}")));
        let is_own = Arc::ptr_eq(&layer.clip.entry.shared, shared);
        if !is_own && shared.purpose != Purpose::Explain {
            return wrong("is a clip of another session; make it with this one");
        }
        if layer.clip.entry.signature != first.clip.entry.signature {
            return wrong("has other tracks than the first; blend clips of equal tracks");
        }
        if layer.times.len() != rows {
            return wrong(&format!(
                "has {} times, but the first has {rows}; give all as many",
                layer.times.len()
            ));
        }
        match layer.weight {
            Parameter::Call(weight) if weight.is_nan() => {
                return wrong("has NaN for a weight; give a number");
            }
            Parameter::Each(weights) if weights.len() != rows => {
                return wrong(&format!(
                    "has {} weights, but {rows} times; give one for all, or as many",
                    weights.len()
                ));
            }
            Parameter::Call(_) | Parameter::Each(_) => {}
        }
        if is_additive && !layer.additive {
            return wrong("follows an additive one; additive layers come last");
        }
        is_additive = layer.additive;
    }
    Ok(rows)
}

/// Whether a layer has a weight for each row.
fn is_weighted(layers: &[Layer<'_>]) -> bool {
    let mut weights = layers.iter().map(|layer| layer.weight);
    weights.any(|weight| matches!(weight, Parameter::Each(_)))
}

/// The words that all rows of a blend have in common.
fn header(layers: &[Layer<'_>], offset: u32) -> Vec<u32> {
    let clip = &*layers[0].clip.entry;
    let count = words_of(layers.len());
    let flags = if is_weighted(layers) { WEIGHTS } else { 0 };
    let mut header = vec![clip.lanes, count | flags, offset, clip.width];
    for layer in layers {
        let weight = match layer.weight {
            Parameter::Call(weight) => weight,
            Parameter::Each(_) => 1.0,
        };
        header.extend([
            layer.clip.entry.at,
            layer.wrap as u32,
            u32::from(layer.additive),
            weight.to_bits(),
        ]);
    }
    debug_assert_eq!(header.len(), (4 + LAYER * count) as usize);
    header
}

/// The fields of a row: a time for each layer, and a weight for each where one layer has
/// several.
fn fields<'a>(layers: &[Layer<'a>]) -> Vec<Parameter<'a>> {
    let times = layers.iter().map(|layer| Parameter::Each(layer.times));
    let mut fields: Vec<Parameter<'_>> = times.collect();
    if is_weighted(layers) {
        fields.extend(layers.iter().map(|layer| layer.weight));
    }
    fields
}

/// The fields of each row, row after row.
fn interleave(fields: &[Parameter<'_>], rows: usize) -> Vec<f32> {
    let row = |row: usize| {
        fields.iter().map(move |field| match field {
            Parameter::Call(value) => *value,
            Parameter::Each(values) => values[row],
        })
    };
    (0..rows).flat_map(row).collect()
}

fn invalid(problem: &str) -> Error {
    Error::InvalidInput(["blend: ", problem].concat())
}
