//! The command builder's operations along axes: reductions, and norms of rows.

use super::{Batch, Value};
use crate::error::Error;
use crate::graph::chain::{Axes, Norm, Reduction};

/// The rows of a norm: an axis of a value, and the number that keeps divisors from 0.
struct RowNorm {
    x: Value,
    axis: i32,
    epsilon: f32,
}

impl<G> Batch<'_, G> {
    /// The sum over axes. Off by at most n/64 + 8 units of 2⁻²⁴ of the sum of absolute
    /// values, for n up to 4,096; [`kernel::generated`](crate::kernel::generated) has the
    /// other lengths.
    ///
    /// ```
    /// # use framebatch::{Axes, Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let table = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let rows = batch.sum(table, Axes::of(&[1]))?;
    /// let all = batch.sum(table, Axes::ALL)?;
    /// let column = batch.sum(table, Axes::of(&[-1]).kept())?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(rows)?, [3.0, 7.0]);
    /// assert_eq!(batch.read(all)?, [10.0]);
    /// assert_eq!(batch.shape(column)?, [2, 1]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for axes that the shape does not have, or
    /// that are named twice.
    pub fn sum(&mut self, x: Value, axes: Axes<'_>) -> Result<Value, Error> {
        self.reduce("sum", Reduction::Sum, x, axes)
    }

    /// The mean over axes, as exact as [`Batch::sum`].
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::sum`], and where there is nothing along the axes.
    pub fn mean(&mut self, x: Value, axes: Axes<'_>) -> Result<Value, Error> {
        self.reduce("mean", Reduction::Mean, x, axes)
    }

    /// The largest over axes, exactly; NaN if any is.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::mean`].
    pub fn max(&mut self, x: Value, axes: Axes<'_>) -> Result<Value, Error> {
        self.reduce("max", Reduction::Max, x, axes)
    }

    /// The smallest over axes, exactly; NaN if any is.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::mean`].
    pub fn min(&mut self, x: Value, axes: Axes<'_>) -> Result<Value, Error> {
        self.reduce("min", Reduction::Min, x, axes)
    }

    /// The place of the first of the largest, or of the first NaN, along an axis;
    /// over several the place in their row-major order. The result holds indexes,
    /// for [`Batch::gather`] or [`Batch::read_indexes`].
    ///
    /// ```
    /// # use framebatch::{Axes, Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let scores = batch.upload_shaped(&[1.0, 3.0, 2.0, 0.0], &[2, 2])?;
    /// let best = batch.argmax(scores, Axes::of(&[1]))?;
    /// batch.execute()?;
    /// assert_eq!(batch.read_indexes(best)?, [1, 0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::mean`].
    pub fn argmax(&mut self, x: Value, axes: Axes<'_>) -> Result<Value, Error> {
        self.reduce("argmax", Reduction::Argmax, x, axes)
    }

    /// eˣ over the sum of all eˣ along an axis, computed as e = exp(x − max), e / sum(e) and
    /// as exact as these. The result has the shape of `x`.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let scores = batch.upload(&[0.0, 0.0]);
    /// let odds = batch.softmax(scores, -1)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(odds)?, [0.5, 0.5]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for an axis that the shape does not have.
    pub fn softmax(&mut self, x: Value, axis: i32) -> Result<Value, Error> {
        let x = self.operand("softmax", x)?;
        let node = self.chain.norm(Norm::Softmax, x, axis, None)?;
        Ok(self.operation(node, &[x]))
    }

    /// (x − mean) / √(variance + epsilon) along an axis; weights and biases are a
    /// [`mul`](Batch::mul) and an [`add`](Batch::add) behind it, in the same pass. As exact
    /// as c = x − mean(x), c / sqrt(mean(c²) + epsilon) op by op. The result has the shape
    /// of `x`.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let x = batch.upload_shaped(&[1.0, 3.0, 10.0, 30.0], &[2, 2])?;
    /// let y = batch.layer_norm(x, -1, 0.0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(y)?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::softmax`], and for an epsilon below 0.
    pub fn layer_norm(&mut self, x: Value, axis: i32, epsilon: f32) -> Result<Value, Error> {
        self.norm("layer_norm", Norm::Layer, RowNorm { x, axis, epsilon })
    }

    /// x / √(mean of squares + epsilon) along an axis. The result has the shape of `x`.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::layer_norm`].
    pub fn rms_norm(&mut self, x: Value, axis: i32, epsilon: f32) -> Result<Value, Error> {
        self.norm("rms_norm", Norm::Rms, RowNorm { x, axis, epsilon })
    }

    /// x / maximum(length, epsilon) along an axis, where the length is the root
    /// of the sum of squares. The result has the shape of `x`.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::layer_norm`].
    pub fn normalize(&mut self, x: Value, axis: i32, epsilon: f32) -> Result<Value, Error> {
        self.norm("normalize", Norm::Normalize, RowNorm { x, axis, epsilon })
    }

    fn reduce(
        &mut self,
        name: &str,
        reduction: Reduction,
        x: Value,
        over: Axes<'_>,
    ) -> Result<Value, Error> {
        let x = self.operand(name, x)?;
        let node = self.chain.reduce(reduction, x, over)?;
        Ok(self.operation(node, &[x]))
    }

    fn norm(&mut self, name: &str, norm: Norm, rows: RowNorm) -> Result<Value, Error> {
        let RowNorm { x, axis, epsilon } = rows;
        let x = self.operand(name, x)?;
        if epsilon.is_nan() || epsilon < 0.0 {
            return Err(super::invalid(name, "epsilon must be 0 or more"));
        }
        let epsilon = self.constant(epsilon)?;
        let node = self.chain.norm(norm, x, axis, Some(epsilon))?;
        Ok(self.operation(node, &[x]))
    }
}
