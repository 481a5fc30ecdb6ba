//! Clips, and the calls that sample and blend clips.
//!
//! Where clips lie on the device is the matter of `store`, and how a clip is laid out in words
//! that of `ops::clips`.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::blocking::Blocking;
use super::call::Call;
use super::gpu::Gpu;
use super::parameter::Parameter;
use super::request::{Chained, Request, Structure};
use super::shared::{Purpose, Shared};
use super::state::State;
use super::store::words_of;
use super::tensor::Tensor;
use crate::error::Error;
use crate::graph::sampling::{LAYER, MOST_LAYERS, Sampling, WEIGHTS};
use crate::ops::clips::{self, Encoded, Track, Wrap};

/// Keyframe tracks that lie on the device until the last clone is dropped. Made
/// by [`Gpu::clip`].
#[derive(Clone)]
pub struct Clip {
    entry: Arc<Entry>,
    gpu: Gpu,
}

/// A clip's place in the store.
pub(super) struct Entry {
    shared: Arc<Shared>,
    at: u32,
    words: u32,
    lanes: u32,
    width: u32,
    duration: f32,
    /// Kind and width of each track. Clips with equal signatures can be blended.
    signature: Vec<(clips::Kind, u32)>,
}

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

impl Clip {
    /// The clip's length in seconds, after which a loop begins again.
    pub fn duration(&self) -> f32 {
        self.entry.duration
    }

    /// Floats of a row: those of all its tracks, one after the other.
    pub fn width(&self) -> u32 {
        self.entry.width
    }

    /// The clip at these times, clamped, as a layer of weight 1.
    pub fn layer<'a>(&'a self, times: &'a [f32]) -> Layer<'a> {
        Layer {
            clip: self,
            times,
            weight: Parameter::Call(1.0),
            wrap: Wrap::Clamp,
            additive: false,
        }
    }

    /// The clip at these times: a row of [`width`](Clip::width) floats for each time. Calls of
    /// any clips are computed together.
    ///
    /// Values near 1 are within 10⁻⁵ of the formulas of glTF 2.0, appendix C. A
    /// time that is folded by [`Wrap`] is off by at most 2⁻²² of itself.
    ///
    /// # Errors
    ///
    /// Out of the call comes what may befall any call, as of [`Gpu::lerp`]. [`Gpu::clip`]
    /// has an example.
    pub fn sample(&self, times: &[f32], wrap: Wrap) -> Call<f32> {
        let layer = Layer {
            wrap,
            ..self.layer(times)
        };
        self.gpu.blend(&[layer])
    }

    /// Samples like [`Clip::sample`] to the floats of a tensor, from float number `offset` on;
    /// the call resolves to no floats. Calls that read the tensor and are sent together with this
    /// call or later find what it wrote, and so do the program's own commands in
    /// [`Tensor::wgpu_buffer`], which has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::blend_to`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// use framebatch::clips::{Track, Wrap};
    /// let rise = gpu.clip(&[Track {
    ///     times: &[0.0, 2.0],
    ///     values: &[0.0, 8.0],
    ///     kind: Default::default(),
    ///     interpolation: Default::default(),
    ///     easing: Default::default(),
    /// }], None)?;
    /// let heights = gpu.tensor(&[0.0; 3], &[3])?;
    /// rise.sample_to(&heights, 1, &[0.5, 1.0], Wrap::Clamp).wait()?;
    ///
    /// let mut batch = gpu.batch();
    /// let heights = batch.tensor(&heights)?;
    /// batch.keep(heights)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(heights)?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn sample_to(&self, tensor: &Tensor, offset: u32, times: &[f32], wrap: Wrap) -> Call<f32> {
        let layer = Layer {
            wrap,
            ..self.layer(times)
        };
        self.gpu.blend_to(tensor, offset, &[layer])
    }
}

impl Debug for Clip {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Entry {
            at,
            width,
            duration,
            ..
        } = &*self.entry;
        write!(f, "Clip({width} floats for {duration} s at {at})")
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} words at {})", self.words, self.at)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let State { driver, clips, .. } = &mut *state;
        let session = &mut driver.session;
        clips.release(self.at, self.words, session);
    }
}

impl Gpu {
    /// Takes keyframe tracks to the device, where they stay until the clip's last clone is
    /// dropped. `duration` is in seconds; by default it is the last key's time.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::clips::{Track, Wrap};
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let rise = gpu.clip(&[Track {
    ///     times: &[0.0, 2.0],
    ///     values: &[0.0, 0.0, 0.0, 0.0, 8.0, 0.0],
    ///     kind: Default::default(),
    ///     interpolation: Default::default(),
    ///     easing: Default::default(),
    /// }], None)?;
    /// let positions = rise.sample(&[0.5, 2.5], Wrap::Loop).await?;
    /// assert_eq!(positions, [0.0, 2.0, 0.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming the track that is wrong,
    /// [`Error::TooLarge`] where no buffer holds all clips of the session,
    /// [`Error::OutOfMemory`] where the memory budget or the GPU has no room for
    /// them, [`Error::Disposed`].
    pub fn clip(&self, tracks: &[Track<'_>], duration: Option<f32>) -> Result<Clip, Error> {
        let Encoded {
            words,
            lanes,
            width,
            duration,
        } = clips::encode(tracks, duration)?;
        let shared = self.shared();
        let size = words_of(words.len());
        let at = shared.on_gpu_driver_thread(move |shared| {
            let mut state = shared.open()?;
            let State { driver, clips, .. } = &mut *state;
            let session = &mut driver.session;
            clips.put(&words, session)
        })?;
        Ok(Clip {
            entry: Arc::new(Entry {
                shared: Arc::clone(shared),
                at,
                words: size,
                lanes,
                width,
                duration,
                signature: clips::signature(tracks),
            }),
            gpu: self.clone(),
        })
    }

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
        if let Some((tensor, offset)) = target {
            let need = rows as u64 * u64::from(clip.width) + u64::from(offset);
            let has = u64::from(tensor.dims().count());
            if need > has {
                return Err(invalid(&format!(
                    "the tensor has {has} floats, but the result ends at {need}"
                )));
            }
            tensors.push(shared.admit_target(tensor)?);
        }
        let is_weighted = layers
            .iter()
            .any(|layer| matches!(layer.weight, Parameter::Each(_)));
        let count = words_of(layers.len());
        let flags = if is_weighted { WEIGHTS } else { 0 };
        let mut header = vec![clip.lanes, count | flags, offset, clip.width];
        let mut fields: Vec<Parameter<'_>> = Vec::new();
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
            fields.push(Parameter::Each(layer.times));
        }
        debug_assert_eq!(header.len(), (4 + LAYER * count) as usize);
        if is_weighted {
            fields.extend(layers.iter().map(|layer| layer.weight));
        }
        let interleaved = interleave(&fields, rows);
        let sampling = Sampling {
            layers: count,
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
                operands: Vec::new(),
                tensors,
            },
        };
        Ok(shared.submit(Ok(request), self.terms()))
    }
}

impl Blocking {
    /// [`Gpu::clip`]. Its own calls block by [`Call::wait`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::clip`].
    pub fn clip(&self, tracks: &[Track<'_>], duration: Option<f32>) -> Result<Clip, Error> {
        self.gpu().clip(tracks, duration)
    }

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

impl Shared {
    /// The number of the tensor that all clips of the session lie in.
    fn store(self: &Arc<Self>) -> Result<u32, Error> {
        let mut state = self.open()?;
        let State { driver, clips, .. } = &mut *state;
        let session = &mut driver.session;
        if clips.is_stored(session) {
            return Ok(clips.number(session));
        }
        drop(state);
        self.on_gpu_driver_thread(|shared| {
            let mut state = shared.open()?;
            let State { driver, clips, .. } = &mut *state;
            let session = &mut driver.session;
            clips.store(session)?;
            Ok(clips.number(session))
        })
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
