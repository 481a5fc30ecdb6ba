//! The command builder's functions of elements, and its numbers.

use super::record::{Origin, entry};
use super::{Batch, Value};
use crate::error::Error;
use crate::graph::{BinaryFn, UnaryFn};

impl<G> Batch<'_, G> {
    /// A number without dimensions, as an operand of any operation. Batches that differ in numbers
    /// only are computed together.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let mut batch = gpu.batch();
    /// let x = batch.upload(&[1.0, 2.0]);
    /// let ten = batch.number(10.0)?;
    /// let y = batch.sub(x, ten)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(y)?, [-9.0, -8.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for more than 1,024 nodes, and after
    /// [`execute`](Batch::execute).
    pub fn number(&mut self, number: f32) -> Result<Value, Error> {
        self.check_open("number")?;
        let node = self.constant(number)?;
        let entry = entry(&self.chain, node, Origin::Input);
        Ok(self.push(Ok(entry)))
    }

    /// 0 where the value is negative. Exact; NaN stays. The result has the shape of `x`, as
    /// that of every function of one value.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let x = batch.upload(&[-1.0, 2.0]);
    /// let y = batch.relu(x)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(y)?, [0.0, 2.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] as for every operation: for a value of another
    /// batch, shapes that do not broadcast (it names both), more than 1,024
    /// nodes, and after [`execute`](Batch::execute).
    pub fn relu(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("relu", UnaryFn::Relu, x)
    }

    /// 1 / (1 + e⁻ˣ), within 16 + 4·|x| units of 2⁻²⁴, relative.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn sigmoid(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sigmoid", UnaryFn::Sigmoid, x)
    }

    /// Hyperbolic tangent, within 24 units of 2⁻²⁴, relative.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn tanh(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("tanh", UnaryFn::Tanh, x)
    }

    /// x · sigmoid(x), also called silu, within 16 + 4·|x| units of 2⁻²⁴, relative.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn swish(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("swish", UnaryFn::Silu, x)
    }

    /// x · Φ(x), by the error function: within 32 + 8·x² units of 2⁻²⁴ of the result's
    /// magnitude, and 4 of |x|.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn gelu(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("gelu", UnaryFn::Gelu, x)
    }

    /// x · factor, within 2⁻²⁴ of itself. Batches that differ in factors only are computed
    /// together.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn scale(&mut self, x: Value, factor: f32) -> Result<Value, Error> {
        let x = self.operand("scale", x)?;
        let constant = self.constant(factor)?;
        let node = self.chain.binary(BinaryFn::Mul, x, constant)?;
        Ok(self.operation(node, &[x]))
    }

    /// a + b, broadcast, within 2⁻²⁴ of itself; a device may fuse it with a product, which
    /// rounds once less. Shapes broadcast as NumPy's do: aligned at the last axis, and an
    /// axis of 1 is repeated.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let table = batch.upload_shaped(&[0.0, 1.0, 2.0, 3.0], &[2, 2])?;
    /// let row = batch.upload(&[10.0, 20.0]);
    /// let sum = batch.add(table, row)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(sum)?, [10.0, 21.0, 12.0, 23.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn add(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Add, a, b)
    }

    /// a − b, broadcast, within 2⁻²⁴ of itself.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Sub, a, b)
    }

    /// a · b element by element, broadcast, within 2⁻²⁴ of itself. [`Batch::matmul`]
    /// multiplies matrices.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn mul(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Mul, a, b)
    }

    /// eˣ, within 6 + 4·|x| units of 2⁻²⁴, relative.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn exp(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("exp", UnaryFn::Exp, x)
    }

    /// The natural logarithm, within 6 units of 2⁻²⁴, relative, or 2⁻²¹ for x in
    /// [0.5, 2].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn log(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("log", UnaryFn::Log, x)
    }

    /// The square root, within 10 units of 2⁻²⁴, relative.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn sqrt(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sqrt", UnaryFn::Sqrt, x)
    }

    /// The magnitude, exactly.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn abs(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("abs", UnaryFn::Abs, x)
    }

    /// −x, exactly.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn neg(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("neg", UnaryFn::Neg, x)
    }

    /// x · Φ(x) by a hyperbolic tangent, as models that say `gelu_new` or
    /// `gelu_pytorch_tanh` were trained with. Within 32 + 16·|v| units of 2⁻²⁴ of the
    /// result's magnitude, with v = 1.6·(x + 0.045·x³).
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn gelu_tanh(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("geluTanh", UnaryFn::GeluTanh, x)
    }

    /// a / b, broadcast, within 5 units of 2⁻²⁴, relative. Division by zero gives
    /// infinities and NaN where the device has them: WGSL does not promise it.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn div(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Div, a, b)
    }

    /// The smaller of a and b, broadcast; NaN if any is. Exact, but which of two zeros it
    /// gives is open.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn minimum(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Minimum, a, b)
    }

    /// The larger of a and b, broadcast; NaN if any is. Exact, but which of two zeros it
    /// gives is open.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn maximum(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Maximum, a, b)
    }

    /// aᵇ, broadcast, within 16 + 16·|b·log₂ a| units of 2⁻²⁴, relative, and |b|·2⁻²¹ for a
    /// in [0.5, 2]. NaN for a negative base unless the exponent is whole.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn pow(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Pow, a, b)
    }

    /// The middle one of x, low and high: minimum(maximum(x, low), high), exactly; NaN if
    /// any is. The result has the shape of `x`.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let x = batch.upload(&[-3.0, 0.5, 3.0]);
    /// let (low, high) = (batch.number(0.0)?, batch.number(1.0)?);
    /// let y = batch.clamp(x, low, high)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(y)?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for bounds that do not broadcast to the
    /// shape of `x`.
    pub fn clamp(&mut self, x: Value, low: Value, high: Value) -> Result<Value, Error> {
        let operands = self.operands("clamp", [x, low, high])?;
        let [x, low, high] = operands;
        let node = self.chain.clamp(x, low, high)?;
        Ok(self.operation(node, &operands))
    }
}
