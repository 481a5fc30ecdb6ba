//! The command builder's functions that simulations need: waves, whole numbers, angles,
//! remainders, comparisons and conditions.
//!
//! Functions that networks need too are in `elements`.

use super::{Batch, Value};
use crate::error::Error;
use crate::graph::{BinaryFn, UnaryFn};

impl<G> Batch<'_, G> {
    /// Sine of radians, within 4 units of 2⁻²⁴, absolute, for every finite number.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn sin(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sin", UnaryFn::Sin, x)
    }

    /// Cosine of radians, within 4 units of 2⁻²⁴, absolute, for every finite number.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn cos(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("cos", UnaryFn::Cos, x)
    }

    /// The largest whole number that is not above x, exactly.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn floor(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("floor", UnaryFn::Floor, x)
    }

    /// The smallest whole number that is not below x, exactly.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn ceil(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("ceil", UnaryFn::Ceil, x)
    }

    /// The nearest whole number, exactly, and of two that are as near the even one: 0.5 gives 0
    /// and 1.5 gives 2.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn round(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("round", UnaryFn::Round, x)
    }

    /// −1, 0 or 1, exactly; NaN of NaN.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn sign(&mut self, x: Value) -> Result<Value, Error> {
        self.unary("sign", UnaryFn::Sign, x)
    }

    /// What is left of a after whole multiples of b, broadcast, with the sign of b, as in NumPy: −1
    /// by 3 gives 2. NaN by 0. Within 2⁻²⁴ of itself, however large the quotient. `mod` is a word
    /// of Rust, so the name ends in an underscore.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let places = batch.upload(&[-1.0, 5.0, 12.0]);
    /// let width = batch.number(10.0)?;
    /// let wrapped = batch.mod_(places, width)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(wrapped)?, [9.0, 5.0, 2.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn mod_(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Mod, a, b)
    }

    /// The angle of the points (x, y) in radians, from −π to π, broadcast, within 16 units of
    /// 2⁻²⁴, relative. Subnormal coordinates may count as 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn atan2(&mut self, y: Value, x: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Atan2, y, x)
    }

    /// 1 where a < b, else 0, broadcast; exact. Comparisons with NaN are 0, but for
    /// [`Batch::not_equal`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn less(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Less, a, b)
    }

    /// 1 where a ≤ b, else 0. As [`Batch::less`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn less_equal(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::LessEqual, a, b)
    }

    /// 1 where a > b, else 0. As [`Batch::less`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn greater(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Greater, a, b)
    }

    /// 1 where a ≥ b, else 0. As [`Batch::less`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn greater_equal(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::GreaterEqual, a, b)
    }

    /// 1 where both are equal, else 0. As [`Batch::less`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn equal(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::Equal, a, b)
    }

    /// 0 where both are equal, else 1: NaN differs from all. As [`Batch::less`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn not_equal(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        self.binary(BinaryFn::NotEqual, a, b)
    }

    /// The elements of `a` where a condition is true, and those of `b` elsewhere; all three
    /// broadcast. Zeros are false, and all else is true, NaN too: comparisons give 1 and 0. What
    /// is not taken has no effect, not even as NaN. `where` is a word of Rust, so the name ends in
    /// an underscore.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let x = batch.upload(&[-1.0, 4.0, 9.0]);
    /// let zero = batch.number(0.0)?;
    /// let is_below = batch.less(x, zero)?;
    /// let root = batch.sqrt(x)?;
    /// let safe = batch.where_(is_below, zero, root)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(safe)?, [0.0, 2.0, 3.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`].
    pub fn where_(&mut self, condition: Value, a: Value, b: Value) -> Result<Value, Error> {
        let operands = self.operands("where", [condition, a, b])?;
        let [condition, a, b] = operands;
        let node = self.chain.select(condition, a, b)?;
        Ok(self.operation(node, &operands))
    }
}
