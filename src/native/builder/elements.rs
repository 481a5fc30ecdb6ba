//! Functions of elements, and numbers.

use super::record::{Made, entry};
use super::{Batch, Value};
use crate::error::Error;
use crate::graph::{BinaryFn, UnaryFn};

impl<G> Batch<'_, G> {
    /// A number that goes up with the batch, as an operand of any operation.
    /// Batches that differ in numbers only are computed together.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for more than 1,024 nodes, and after
    /// [`execute`](Batch::execute).
    pub fn number(&mut self, number: f32) -> Result<Value, Error> {
        self.check_open("number")?;
        let node = self.constant(number)?;
        let entry = entry(&self.chain, node, Made::Given);
        Ok(self.push(Ok(entry)))
    }

    /// 0 where the value is negative.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] as for every operation: for a value of another
    /// batch, shapes that do not broadcast (it names both), more than 1,024
    /// nodes, and after [`execute`](Batch::execute).
    pub fn relu(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("relu", UnaryFn::Relu, x)
    }

    /// 1 / (1 + e⁻ˣ).
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn sigmoid(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sigmoid", UnaryFn::Sigmoid, x)
    }

    /// Hyperbolic tangent.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn tanh(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("tanh", UnaryFn::Tanh, x)
    }

    /// x · sigmoid(x), also called silu.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn swish(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("swish", UnaryFn::Silu, x)
    }

    /// x · Φ(x), by the error function.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn gelu(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("gelu", UnaryFn::Gelu, x)
    }

    /// x · factor. Batches that differ in factors only are computed together.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn scale(&mut self, x: Value, factor: f32) -> Result<Value, Error> {
        let x = self.operand("scale", x)?;
        let constant = self.constant(factor)?;
        let node = self.chain.binary(BinaryFn::Mul, x, constant)?;
        Ok(self.operation(node, &[x]))
    }

    /// a + b, broadcast.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn add(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Add, a, b)
    }

    /// a − b, broadcast.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Sub, a, b)
    }

    /// a · b, broadcast.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn mul(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Mul, a, b)
    }

    /// eˣ.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn exp(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("exp", UnaryFn::Exp, x)
    }

    /// The natural logarithm.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn log(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("log", UnaryFn::Log, x)
    }

    /// The square root.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn sqrt(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sqrt", UnaryFn::Sqrt, x)
    }

    /// The magnitude.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn abs(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("abs", UnaryFn::Abs, x)
    }

    /// −x.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn neg(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("neg", UnaryFn::Neg, x)
    }

    /// x · Φ(x) by a hyperbolic tangent, as models that say `gelu_new` or
    /// `gelu_pytorch_tanh` were trained with.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn gelu_tanh(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("geluTanh", UnaryFn::GeluTanh, x)
    }

    /// a / b, broadcast.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn div(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Div, a, b)
    }

    /// The smaller of a and b, broadcast; NaN if any is.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn minimum(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Minimum, a, b)
    }

    /// The larger of a and b, broadcast; NaN if any is.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn maximum(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Maximum, a, b)
    }

    /// aᵇ, broadcast.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`].
    pub fn pow(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Pow, a, b)
    }

    /// The middle one of x, low and high: minimum(maximum(x, low), high).
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`], and for bounds that do not broadcast to the
    /// shape of `x`.
    pub fn clamp(&mut self, x: Value, low: Value, high: Value) -> Result<Value, Error> {
        let operands = self.operands("clamp", [x, low, high])?;
        let [x, low, high] = operands;
        let node = self.chain.clamp(x, low, high)?;
        Ok(self.operation(node, &operands))
    }
}
