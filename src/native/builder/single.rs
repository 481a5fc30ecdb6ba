//! The builder's operations as calls of their own, each with its own operands and its own answer.
//!
//! Calls of single operations merge with others, but a result that is the next call's operand travels to the host
//! and back; a [`Batch`] keeps it on the device.

use super::{Batch, Value};
use crate::error::Error;
use crate::native::blocking::Blocking;
use crate::native::call::Call;
use crate::native::gpu::Gpu;

/// The operations of a [`Batch`] as calls of their own, on vectors of equal lengths; one of two
/// vectors may have one element, which is repeated. Results are as exact as the batch's. Out of the call comes
/// [`Error::InvalidInput`] for lengths that do not fit, and what may befall any call.
impl Gpu {
    /// 0 where the value is negative. As [`Batch::relu`].
    pub fn relu(&self, x: &[f32]) -> Call<f32> {
        self.single([x], |batch, [x]| batch.relu(x))
    }

    /// x · factor. As [`Batch::scale`].
    pub fn scale(&self, x: &[f32], factor: f32) -> Call<f32> {
        self.single([x], |batch, [x]| batch.scale(x, factor))
    }

    /// a + b. As [`Batch::add`].
    pub fn add(&self, a: &[f32], b: &[f32]) -> Call<f32> {
        self.single([a, b], |batch, [a, b]| batch.add(a, b))
    }

    /// a − b. As [`Batch::sub`].
    pub fn sub(&self, a: &[f32], b: &[f32]) -> Call<f32> {
        self.single([a, b], |batch, [a, b]| batch.sub(a, b))
    }

    /// a · b. As [`Batch::mul`].
    pub fn mul(&self, a: &[f32], b: &[f32]) -> Call<f32> {
        self.single([a, b], |batch, [a, b]| batch.mul(a, b))
    }

    /// The sum of a · b: one float. As [`Batch::dot`].
    pub fn dot(&self, a: &[f32], b: &[f32]) -> Call<f32> {
        self.single([a, b], |batch, [a, b]| batch.dot(a, b))
    }

    /// 1 / (1 + e⁻ˣ). As [`Batch::sigmoid`].
    pub fn sigmoid(&self, x: &[f32]) -> Call<f32> {
        self.single([x], |batch, [x]| batch.sigmoid(x))
    }

    /// Hyperbolic tangent. As [`Batch::tanh`].
    pub fn tanh(&self, x: &[f32]) -> Call<f32> {
        self.single([x], |batch, [x]| batch.tanh(x))
    }

    /// x · sigmoid(x), also called silu. As [`Batch::swish`].
    pub fn swish(&self, x: &[f32]) -> Call<f32> {
        self.single([x], |batch, [x]| batch.swish(x))
    }

    /// x · Φ(x), by the error function. As [`Batch::gelu`].
    pub fn gelu(&self, x: &[f32]) -> Call<f32> {
        self.single([x], |batch, [x]| batch.gelu(x))
    }

    fn single<'a, const N: usize>(
        &self,
        operands: [&'a [f32]; N],
        record: impl FnOnce(&mut Batch<'a>, [Value; N]) -> Result<Value, Error>,
    ) -> Call<f32> {
        let mut batch = self.batch();
        let operands = operands.map(|operand| batch.upload(operand));
        match record(&mut batch, operands) {
            Ok(_) => batch.submit(),
            Err(error) => Call::known(Err(error)),
        }
    }
}

/// One operation at a time: an upload, a submission and a read-back each.
///
/// ```
/// use framebatch::{Blocking, Config};
///
/// let gpu = Blocking::open(Config::default())?;
/// let x = gpu.relu(&[-1.0, 2.0])?;
/// let x = gpu.scale(&x, 3.0)?;
/// assert_eq!(gpu.add(&x, &[1.0, 1.0])?, [1.0, 7.0]); // Six transfers on a GPU,
///
/// let mut batch = gpu.batch(); // and two.
/// let x = batch.upload(&[-1.0, 2.0]);
/// let ones = batch.upload(&[1.0, 1.0]);
/// let y = batch.relu(x)?;
/// let y = batch.scale(y, 3.0)?;
/// let y = batch.add(y, ones)?;
/// batch.execute()?;
/// assert_eq!(batch.read(y)?, [1.0, 7.0]);
/// # Ok::<(), framebatch::Error>(())
/// ```
#[expect(
    clippy::missing_errors_doc,
    reason = "all of them: what went wrong with this call"
)]
impl Blocking {
    /// [`Gpu::relu`].
    pub fn relu(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().relu(x).wait()
    }

    /// [`Gpu::scale`].
    pub fn scale(&self, x: &[f32], factor: f32) -> Result<Vec<f32>, Error> {
        self.with_room().scale(x, factor).wait()
    }

    /// [`Gpu::add`].
    pub fn add(&self, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().add(a, b).wait()
    }

    /// [`Gpu::sub`].
    pub fn sub(&self, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().sub(a, b).wait()
    }

    /// [`Gpu::mul`].
    pub fn mul(&self, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().mul(a, b).wait()
    }

    /// [`Gpu::dot`].
    pub fn dot(&self, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().dot(a, b).wait()
    }

    /// [`Gpu::sigmoid`].
    pub fn sigmoid(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().sigmoid(x).wait()
    }

    /// [`Gpu::tanh`].
    pub fn tanh(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().tanh(x).wait()
    }

    /// [`Gpu::swish`].
    pub fn swish(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().swish(x).wait()
    }

    /// [`Gpu::gelu`].
    pub fn gelu(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        self.with_room().gelu(x).wait()
    }
}
