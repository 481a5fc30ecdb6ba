//! Where a tensor lies on the device, for the program's own use of it.
//!
//! How the program's buffers become tensors is in `import`.

use super::platform;
use super::tensor::Tensor;
use crate::tensor::WORD;

/// Where a tensor lies on [`wgpu_device`](super::Gpu::wgpu_device)'s device. Made by
/// [`Tensor::wgpu_buffer`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorBuffer {
    /// The buffer.
    pub buffer: wgpu::Buffer,
    /// Bytes from its beginning, a multiple of 256: the same for the tensor's whole life, on
    /// every device.
    pub offset: u64,
    /// Bytes of the tensor's elements; the buffer may be longer.
    pub size: u64,
}

impl Tensor {
    /// Where the tensor lies on the device, so that the program's own pipelines read
    /// what calls compute or [sample](super::Clip::sample_to) to it, and nothing comes
    /// back to the host. Its floats are row-major, packed if its storage is; its buffer
    /// has the usages STORAGE, COPY_SRC, COPY_DST, VERTEX and INDEX, and that of an
    /// imported one those that the program gave it. Small tensors share buffers: a buffer
    /// holds others too, or will, which [`offset`](TensorBuffer::offset) and
    /// [`size`](TensorBuffer::size) leave out.
    ///
    /// What a call wrote is there for all that is submitted to
    /// [`wgpu_queue`](super::Gpu::wgpu_queue) after the call was answered. It is to be
    /// read: what a program writes itself, calls on the CPU do not see.
    ///
    /// `None` on the CPU, for a tensor that lies in parts because no buffer holds
    /// it, and once its device is lost: ask again for each frame, because on the next
    /// device it lies in another buffer. With the tensor's last clone, as soon as no pending
    /// call reads it, a buffer of its own is destroyed, and its part of a shared one is for
    /// other tensors.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::clips::{Track, Wrap};
    /// use framebatch::{Config, EngineChoice, Gpu};
    ///
    /// let gpu = Gpu::open(Config { engine: EngineChoice::Gpu, ..Config::default() }).await?;
    /// let rise = gpu.clip(&[Track {
    ///     times: &[0.0, 2.0],
    ///     values: &[0.0, 8.0],
    ///     kind: Default::default(),
    ///     interpolation: Default::default(),
    ///     easing: Default::default(),
    /// }], None)?;
    /// let heights = gpu.tensor(&[0.0; 100], &[100])?;
    /// rise.sample_to(&heights, 0, &[0.5; 100], Wrap::Clamp).await?;
    ///
    /// let device = gpu.wgpu_device().expect("a GPU");
    /// let mut encoder = device.create_command_encoder(&Default::default());
    /// let mut pass = encoder.begin_compute_pass(&Default::default()); // Or to render.
    /// let place = heights.wgpu_buffer().expect("it lies on the GPU");
    /// let vertices = place.buffer.slice(place.offset..place.offset + place.size);
    /// // pass.set_vertex_buffer(0, vertices);
    /// # let _ = (&mut pass, vertices);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn wgpu_buffer(&self) -> Option<TensorBuffer> {
        let (shared, number) = self.place();
        let shown = shared.on_gpu_driver_thread(move |shared| {
            let mut state = shared.open()?;
            if state.driver.session.is_lost() {
                return Ok(None);
            }
            let session = &mut state.driver.session;
            let Some(place) = session.locate(number)? else {
                return Ok(None);
            };
            let buffer = platform::show(session.device_mut(), place.home());
            Ok(buffer.map(|buffer| (buffer, place.at())))
        });
        let (buffer, at) = shown.ok()??;
        Some(TensorBuffer {
            buffer,
            offset: u64::from(at) * u64::from(WORD),
            size: self.bytes(),
        })
    }
}
