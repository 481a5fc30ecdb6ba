//! Compares what devices compute of a kernel with what its function for the CPU does.
//!
//! The calls are those of any batch. What the function gives is known to `kernels`.

use super::{Batch, Value, invalid};
use crate::device::Engine;
use crate::error::Error;
use crate::graph::shape::Shape;
use crate::native::blocking::Blocking;
use crate::native::call::Call;
use crate::native::gpu::Gpu;
use crate::native::kernels::{Array, Kernel, Number, expected, twin_of};
use crate::native::platform::block_on;

/// A call whose results are compared: [`Gpu::verify`].
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyCase<'a> {
    /// The tensors that the kernel takes, in order.
    pub values: &'a [VerifyValue<'a>],
    /// The params, in the order of their definition.
    pub params: &'a [Number],
}

/// A tensor of a case: its data and its dimensions. A number has no dimensions.
#[derive(Clone, Copy, Debug)]
pub struct VerifyValue<'a> {
    data: VerifyData<'a>,
    dims: &'a [u32],
}

impl<'a> VerifyValue<'a> {
    /// A tensor of `f32`, `i32` or `u32`.
    pub fn new<const N: usize, T>(data: &'a [T; N], dims: &'a [u32]) -> VerifyValue<'a>
    where
        VerifyData<'a>: From<&'a [T]>,
    {
        VerifyValue::of(data.as_slice(), dims)
    }

    /// The same of a slice, whose length is known when the program runs.
    pub fn of<T>(data: &'a [T], dims: &'a [u32]) -> VerifyValue<'a>
    where
        VerifyData<'a>: From<&'a [T]>,
    {
        VerifyValue {
            data: data.into(),
            dims,
        }
    }

    fn upload<G>(&self, batch: &mut Batch<'a, G>) -> Result<Value, Error> {
        match self.data {
            VerifyData::F32(data) => batch.upload_shaped(data, self.dims),
            VerifyData::I32(data) => batch.upload_i32(data, self.dims),
            VerifyData::U32(data) => batch.upload_indexes(data, self.dims),
        }
    }

    fn words(&self) -> &'a [f32] {
        match self.data {
            VerifyData::F32(data) => data,
            VerifyData::I32(data) => bytemuck::cast_slice(data),
            VerifyData::U32(data) => bytemuck::cast_slice(data),
        }
    }
}

/// The elements of a [`VerifyValue`].
#[derive(Clone, Copy, Debug)]
pub enum VerifyData<'a> {
    /// Floats.
    F32(&'a [f32]),
    /// Whole numbers with a sign.
    I32(&'a [i32]),
    /// Whole numbers without a sign.
    U32(&'a [u32]),
}

impl<'a> From<&'a [f32]> for VerifyData<'a> {
    fn from(data: &'a [f32]) -> VerifyData<'a> {
        VerifyData::F32(data)
    }
}

impl<'a> From<&'a [i32]> for VerifyData<'a> {
    fn from(data: &'a [i32]) -> VerifyData<'a> {
        VerifyData::I32(data)
    }
}

impl<'a> From<&'a [u32]> for VerifyData<'a> {
    fn from(data: &'a [u32]) -> VerifyData<'a> {
        VerifyData::U32(data)
    }
}

/// What came of a comparison: [`Gpu::verify`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// Whether no element of any case is off by more than the tolerance.
    pub ok: bool,
    /// The element that is off by most; `None` where there are no elements.
    pub worst: Option<VerifiedElement>,
}

/// An element that the device and the function for the CPU computed.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedElement {
    /// The number of the case, from 0.
    pub case: usize,
    /// The name of the field that the kernel gives; empty where it gives no struct.
    pub field: String,
    /// The place in the result, row by row.
    pub place: usize,
    /// What the session computed.
    pub got: f64,
    /// What the function for the CPU gave.
    pub expected: f64,
    /// How far `got` is off, in shares of the expected value, or of 1 where that is smaller.
    pub off: f64,
}

impl Gpu {
    /// Computes cases by this session and by the kernel's own function for the CPU, and says
    /// whether no element is off by more than the tolerance: this much of the expected value, or
    /// of 1 where that is smaller. 1e-5 suits most kernels. The calls are on their way when this
    /// returns.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{
    ///     Config, EngineChoice, Gpu, KernelDefinition, Number, VerifyCase, VerifyValue,
    /// };
    ///
    /// let gpu = Gpu::open(Config { engine: EngineChoice::Gpu, ..Config::default() }).await?;
    /// let decay = KernelDefinition::new(
    ///     "decay",
    ///     "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
    /// )
    /// .param("dt", 0.0_f32)
    /// .cpu(|values, params| match params {
    ///     [Number::F32(dt)] => values[0] * (-values[1] * dt).exp(),
    ///     _ => f32::NAN,
    /// })
    /// .build()?;
    ///
    /// let cases = [VerifyCase {
    ///     values: &[VerifyValue::new(&[4.0, 2.0, 1.0], &[3]), VerifyValue::new(&[0.5], &[])],
    ///     params: &[0.1.into()],
    /// }];
    /// let verification = gpu.verify(&decay, &cases, 1e-5).await?;
    /// assert!(verification.ok, "{:?}", verification.worst);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a kernel without a function for the CPU and for a tolerance
    /// that is no number from 0; [`Error::Unsupported`] where the session computes on the CPU, by
    /// that function; and the errors of [`Batch::apply_fields`] and of
    /// [`Batch::<Gpu>::execute`](Batch::execute).
    pub fn verify<'a>(
        &self,
        kernel: &'a Kernel,
        cases: &'a [VerifyCase<'a>],
        tolerance: f64,
    ) -> impl Future<Output = Result<Verification, Error>> + Send + use<'a> {
        let sent = send(self, kernel, cases, tolerance);
        async move {
            let mut worst: Option<VerifiedElement> = None;
            for (case, (sent, of)) in sent?.into_iter().zip(cases).enumerate() {
                for found in sent.compared(kernel, of).await? {
                    if worst.as_ref().is_none_or(|worst| found.off > worst.off) {
                        worst = Some(VerifiedElement { case, ..found });
                    }
                }
            }
            let ok = worst.as_ref().is_none_or(|worst| worst.off <= tolerance);
            Ok(Verification { ok, worst })
        }
    }
}

impl Blocking {
    /// [`Gpu::verify`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::verify`].
    pub fn verify(
        &self,
        kernel: &Kernel,
        cases: &[VerifyCase<'_>],
        tolerance: f64,
    ) -> Result<Verification, Error> {
        block_on(self.with_room().verify(kernel, cases, tolerance))
    }
}

/// A case on its way.
struct Sent<'a> {
    batch: Batch<'a>,
    results: Vec<Value>,
    call: Call<f32>,
}

fn send<'a>(
    gpu: &Gpu,
    kernel: &Kernel,
    cases: &[VerifyCase<'a>],
    tolerance: f64,
) -> Result<Vec<Sent<'a>>, Error> {
    if tolerance.is_nan() || tolerance < 0.0 {
        let problem = format!("the tolerance must be a number from 0, got {tolerance}");
        return Err(invalid("verify", &problem));
    }
    for function in kernel.functions() {
        twin_of(function)?;
    }
    if gpu.info().engine == Engine::Cpu {
        return Err(Error::Unsupported(
            "verify: the session computes on the CPU, where the code does not run, and would compare the function with itself; open it with EngineChoice::Gpu, for which one in software does".into(),
        ));
    }
    let sent = cases.iter().map(|case| {
        let mut batch = gpu.batch();
        let values = case.values.iter();
        let values = values.map(|value| value.upload(&mut batch));
        let values = values.collect::<Result<Vec<Value>, Error>>()?;
        let results = batch.apply_fields(kernel, &values, case.params)?;
        let call = batch.submit();
        Ok(Sent {
            batch,
            results,
            call,
        })
    });
    sent.collect()
}

impl Sent<'_> {
    /// Of each result the element that is off by most, where the result has elements.
    async fn compared(
        self,
        kernel: &Kernel,
        case: &VerifyCase<'_>,
    ) -> Result<Vec<VerifiedElement>, Error> {
        let Sent {
            mut batch,
            results,
            call,
        } = self;
        batch.finish(call.await, Ok(()))?;
        let params = kernel.params(case.params)?;
        let values = case.values.iter().map(|value| {
            let shape = Shape::new(value.dims)?;
            let words = value.words();
            Ok(Array { words, shape })
        });
        let values = values.collect::<Result<Vec<Array<'_>>, Error>>()?;
        let fields = kernel.results().iter().zip(kernel.functions());
        let mut found = Vec::new();
        for (value, (field, function)) in results.into_iter().zip(fields) {
            let shape = batch.entry("verify", value)?.shape;
            let expected = expected(function, &values, &params, shape)?;
            let scalar = function.content.result.scalar;
            let got: Vec<f32> = batch.result("verify", value, scalar.dtype())?;
            let elements = got.into_iter().zip(expected).enumerate();
            let number = |word: f32| Number::of(scalar, word.to_bits()).as_f64();
            let elements = elements.map(|(place, (got, expected))| {
                let (got, expected) = (number(got), number(expected));
                VerifiedElement {
                    case: 0,
                    field: String::new(),
                    place,
                    got,
                    expected,
                    off: off_by(got, expected),
                }
            });
            // Of elements that are off by as much, the first one.
            let worst = elements.reduce(|worst, next| match next.off > worst.off {
                true => next,
                false => worst,
            });
            found.extend(worst.map(|worst| VerifiedElement {
                field: field.clone(),
                ..worst
            }));
        }
        Ok(found)
    }
}

/// How far a value is off, in shares of the expected one, or of 1 where that is smaller.
fn off_by(got: f64, expected: f64) -> f64 {
    if got == expected || got.is_nan() && expected.is_nan() {
        return 0.0;
    }
    let off = (got - expected).abs() / expected.abs().max(1.0);
    if off.is_nan() { f64::INFINITY } else { off }
}
