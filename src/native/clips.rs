//! Clips: keyframe tracks that a program holds, and that lie on the device meanwhile.
//!
//! Where clips lie on the device is the matter of `store`, how a clip is laid out in words that
//! of `ops::clips`, and the calls on clips that of `blending`.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::blending::Layer;
use super::blocking::Blocking;
use super::call::Call;
use super::gpu::Gpu;
use super::parameter::Parameter;
use super::shared::Shared;
use super::state::State;
use super::store::words_of;
use super::tensor::Tensor;
use crate::error::Error;
use crate::ops::clips::{self, Encoded, Track, Wrap};

/// Keyframe tracks that lie on the device until the last clone is dropped. Made
/// by [`Gpu::clip`].
#[derive(Clone)]
pub struct Clip {
    pub(super) entry: Arc<Entry>,
    gpu: Gpu,
}

/// A clip's place in the store.
pub(super) struct Entry {
    pub(super) shared: Arc<Shared>,
    pub(super) at: u32,
    words: u32,
    pub(super) lanes: u32,
    pub(super) width: u32,
    duration: f32,
    /// Kind and width of each track. Clips with equal signatures can be blended.
    pub(super) signature: Vec<(clips::Kind, u32)>,
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
    /// the call resolves to no floats. Calls on the tensor that are made later find what this call
    /// wrote, and so do the program's own commands in [`Tensor::wgpu_buffer`], which has an
    /// example.
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
}

impl Shared {
    /// The number of the tensor that all clips of the session lie in.
    pub(super) fn store(self: &Arc<Self>) -> Result<u32, Error> {
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
