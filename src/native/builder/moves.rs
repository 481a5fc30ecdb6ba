//! The command builder's operations that move or pick elements, and compute nothing.

use std::borrow::Cow;

use super::record::Upload;
use super::{Batch, Value};
use crate::error::Error;
use crate::graph::chain::{Home, OPEN};
use crate::graph::shape::Shape;
use crate::native::tensor::shaped;
use crate::tensor::DType;

/// A part of an axis, by Python's rules: negative places count from the end, and
/// what lies outside is cut off. [`Batch::slice`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    start: Option<i32>,
    end: Option<i32>,
    step: i32,
}

impl Part {
    /// The whole axis.
    pub const ALL: Part = Part {
        start: None,
        end: None,
        step: 1,
    };

    /// From place `start` to the one in front of `end`.
    pub const fn between(start: i32, end: i32) -> Part {
        Part {
            start: Some(start),
            end: Some(end),
            step: 1,
        }
    }

    /// From place `start` to the end.
    pub const fn starting(start: i32) -> Part {
        Part {
            start: Some(start),
            ..Part::ALL
        }
    }

    /// From the first place to the one in front of `end`.
    pub const fn ending(end: i32) -> Part {
        Part {
            end: Some(end),
            ..Part::ALL
        }
    }

    /// Every `step`-th element, backward if the step is negative: then a part without a start
    /// begins with the last element, and a part without an end goes on to the first.
    #[must_use]
    pub const fn by(self, step: i32) -> Part {
        Part { step, ..self }
    }

    /// Start, end and step as chains take them.
    fn places(self) -> (i32, i32, i32) {
        let first = if self.step < 0 { i32::MAX } else { 0 };
        (
            self.start.unwrap_or(first),
            self.end.unwrap_or(OPEN),
            self.step,
        )
    }
}

impl<'a, G> Batch<'a, G> {
    /// Whole numbers of some shape, row-major, that go up with the batch: for [`Batch::gather`],
    /// and for [kernels](crate::KernelDefinition) of `u32`.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::upload_shaped`].
    pub fn upload_indexes(
        &mut self,
        data: impl Into<Cow<'a, [u32]>>,
        dims: &[u32],
    ) -> Result<Value, Error> {
        let data = data.into();
        let shape = shaped("upload_indexes", dims, data.len())?;
        let entry = self.input("upload_indexes", shape, DType::U32, Home::Call)?;
        self.uploads.push(Upload::Indexes(data));
        Ok(self.push(Ok(entry)))
    }

    /// Whole numbers with a sign, of some shape, row-major, that go up with the batch: for
    /// [kernels](crate::KernelDefinition) of `i32`, and for [`Batch::gather`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// use framebatch::{KernelDefinition, Number};
    ///
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let halve = KernelDefinition::new("halve", "fn element(n: i32) -> i32 { return n >> 1u; }")
    ///     .cpu_numbers(|of, to| match of.values {
    ///         [Number::I32(n)] => to[0] = (n >> 1).into(),
    ///         _ => unreachable!("one value, of type i32"),
    ///     })
    ///     .build()?;
    ///
    /// let mut batch = gpu.batch();
    /// let numbers = batch.upload_i32(&[-8, 7], &[2])?;
    /// let halves = batch.apply(&halve, &[numbers], &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read_i32(halves)?, [-4, 3]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::upload_shaped`].
    pub fn upload_i32(
        &mut self,
        data: impl Into<Cow<'a, [i32]>>,
        dims: &[u32],
    ) -> Result<Value, Error> {
        let data = data.into();
        let shape = shaped("upload_i32", dims, data.len())?;
        let entry = self.input("upload_i32", shape, DType::I32, Home::Call)?;
        self.uploads.push(Upload::Integers(data));
        Ok(self.push(Ok(entry)))
    }

    /// The axes in another order: axis `i` of the result is `order[i]`. An empty
    /// order reverses them. Nothing is copied: later operations read the elements where they
    /// lie.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let table = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// let columns = batch.transpose(table, &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.shape(columns)?, [3, 2]);
    /// assert_eq!(batch.read(columns)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for an order that does not name each axis once.
    pub fn transpose(&mut self, x: Value, order: &[i32]) -> Result<Value, Error> {
        let x = self.operand("transpose", x)?;
        let node = self.chain.transpose(x, order)?;
        Ok(self.operation(node, &[x]))
    }

    /// A part of each of the first axes; those behind stay whole.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Part};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let table = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// let last = Part::starting(1);
    /// let backward = Part::ALL.by(-2);
    /// let some = batch.slice(table, &[last, backward])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(some)?, [6.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for more parts than axes or a step of 0.
    pub fn slice(&mut self, x: Value, parts: &[Part]) -> Result<Value, Error> {
        let x = self.operand("slice", x)?;
        let parts: Vec<(i32, i32, i32)> = parts.iter().map(|part| part.places()).collect();
        let node = self.chain.slice(x, &parts)?;
        Ok(self.operation(node, &[x]))
    }

    /// The same elements, row-major, in another shape.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for a shape of another number of elements.
    pub fn reshape(&mut self, x: Value, dims: &[u32]) -> Result<Value, Error> {
        let x = self.operand("reshape", x)?;
        let node = self.chain.reshape(x, Shape::new(dims)?)?;
        Ok(self.operation(node, &[x]))
    }

    /// The elements along an axis at the places that `indexes` holds, whose
    /// dimensions stand where the axis stood. A place outside gives NaN.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let rows = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
    /// let wanted = batch.upload_indexes(&[2, 0], &[2])?;
    /// let picked = batch.gather(rows, wanted, 0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(picked)?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], for an axis that the shape does not have, and
    /// for indexes that are floats.
    pub fn gather(&mut self, x: Value, indexes: Value, axis: i32) -> Result<Value, Error> {
        let operands = self.operands("gather", [x, indexes])?;
        let [x, indexes] = operands;
        let node = self.chain.gather(x, indexes, axis)?;
        Ok(self.operation(node, &operands))
    }

    /// Values laid end to end along an axis; their other axes are equal.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let (a, b) = (batch.upload(&[1.0]), batch.upload(&[2.0, 3.0]));
    /// let both = batch.concat(&[a, b], 0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(both)?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], for no value or more than 255, and for shapes
    /// that differ in another axis.
    pub fn concat(&mut self, parts: &[Value], axis: i32) -> Result<Value, Error> {
        let parts = parts.iter().map(|part| self.operand("concat", *part));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let node = self.chain.concat(&parts, axis)?;
        Ok(self.operation(node, &parts))
    }
}
