//! What a batch records: data that goes in, operations, and what is kept.
//!
//! Shapes are checked by the chain, whose errors come out as they are.

use std::borrow::Cow;

use super::{Batch, Entry, Value, invalid};
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, UnaryFn};
use crate::native::tensor::{Tensor, shaped};
use crate::tensor::DType;

impl<'a, G> Batch<'a, G> {
    /// A vector that goes up with the batch.
    ///
    /// What cannot be recorded, such as the 1,025th node, is refused where the
    /// value is used first.
    pub fn upload(&mut self, data: impl Into<Cow<'a, [f32]>>) -> Value {
        let data = data.into();
        let entry = u32::try_from(data.len())
            .map_err(|_| invalid("upload", "an array has at most 2^30 elements; split it"))
            .and_then(|length| Shape::new(&[length]))
            .and_then(|shape| self.input("upload", shape, Home::Call));
        if entry.is_ok() {
            self.uploads.push(data);
        }
        self.push(entry)
    }

    /// An array of some shape, row-major, that goes up with the batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the data is not of that shape, for more
    /// than 8 dimensions, 2³⁰ elements or 1,024 nodes, and after
    /// [`execute`](Batch::execute).
    pub fn upload_shaped(
        &mut self,
        data: impl Into<Cow<'a, [f32]>>,
        dims: &[u32],
    ) -> Result<Value, Error> {
        let data = data.into();
        let shape = shaped("upload_shaped", dims, data.len())?;
        let entry = self.input("upload_shaped", shape, Home::Call)?;
        self.uploads.push(data);
        Ok(self.push(Ok(entry)))
    }

    /// A tensor that lies on the device already: nothing goes up for it.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`] for one whose data went with its device,
    /// [`Error::InvalidInput`] for one of another session, and after
    /// [`execute`](Batch::execute).
    pub fn tensor(&mut self, tensor: &Tensor) -> Result<Value, Error> {
        let number = self.gpu.shared().admit(tensor)?;
        let mut known = self.tensors.iter();
        if let Some((_, value, _)) = known.find(|(.., known)| *known == number) {
            return Ok(*value);
        }
        let entry = self.input("tensor", tensor.dims(), tensor.home())?;
        let value = self.push(Ok(entry));
        self.tensors.push((tensor.clone(), value, number));
        Ok(value)
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
        let constant = self.chain.constant()?;
        self.constants.push(factor);
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

    /// The sum of a · b along the last axis, which the result does not have:
    /// one number for two vectors.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`], and for two numbers, which have no axis.
    pub fn dot(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        let [a, b] = [self.operand("dot", a)?, self.operand("dot", b)?];
        let node = self.chain.dot(a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// The product of matrices: the last two axes of each, `[.., m, k]` and
    /// `[.., k, n]` give `[.., m, n]`; axes in front broadcast. What follows
    /// element by element is computed in the same pass.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::relu`], and for shapes without rows and columns, or
    /// which do not agree in `k`; both are named.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        let [a, b] = [self.operand("matmul", a)?, self.operand("matmul", b)?];
        let node = self.chain.matmul(a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// Makes a value a result, though operations use it or nothing computed it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a value of another batch, and after
    /// [`execute`](Batch::execute).
    pub fn keep(&mut self, value: Value) -> Result<(), Error> {
        self.operand("keep", value)?;
        if let Ok(entry) = &mut self.values[value.place] {
            entry.is_kept = true;
        }
        Ok(())
    }

    /// The dimensions of a value, outermost first; none for a number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a value of another batch, or one whose
    /// upload was refused.
    pub fn shape(&self, value: Value) -> Result<&[u32], Error> {
        Ok(self.entry("shape", value)?.shape.dims())
    }

    /// Operations recorded so far.
    pub fn num_operations(&self) -> usize {
        self.operations
    }

    /// Buffers that the recorded operations would take one by one: uploads,
    /// tensors, and the result of each.
    pub fn num_buffers(&self) -> usize {
        self.values.iter().flatten().count()
    }

    fn unary(&mut self, name: &str, function: UnaryFn, x: Value) -> Result<Value, Error> {
        let x = self.operand(name, x)?;
        let node = self.chain.unary(function, x)?;
        Ok(self.operation(node, &[x]))
    }

    fn binary(&mut self, function: BinaryFn, a: Value, b: Value) -> Result<Value, Error> {
        let name = function.name();
        let [a, b] = [self.operand(name, a)?, self.operand(name, b)?];
        let node = self.chain.binary(function, a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// The node of a value that is to be used.
    pub(super) fn operand(&self, name: &str, value: Value) -> Result<NodeId, Error> {
        self.check_open(name)?;
        Ok(self.entry(name, value)?.node)
    }

    pub(super) fn entry(&self, name: &str, value: Value) -> Result<&Entry, Error> {
        if value.batch != self.number {
            return Err(invalid(
                name,
                "a value is of another batch; values cannot be shared, tensors can",
            ));
        }
        self.values[value.place].as_ref().map_err(Error::clone)
    }

    pub(super) fn check_open(&self, name: &str) -> Result<(), Error> {
        match self.results {
            None => Ok(()),
            Some(_) => Err(invalid(
                name,
                "the batch was executed already; make another one",
            )),
        }
    }

    fn input(&mut self, name: &str, shape: Shape, home: Home) -> Result<Entry, Error> {
        self.check_open(name)?;
        let node = self.chain.input(shape, DType::F32, home)?;
        Ok(entry(&self.chain, node, Made::Given))
    }

    pub(super) fn operation(&mut self, node: NodeId, operands: &[NodeId]) -> Value {
        for known in self.values.iter_mut().flatten() {
            known.is_used |= operands.contains(&known.node);
        }
        self.operations += 1;
        let entry = entry(&self.chain, node, Made::Computed);
        self.push(Ok(entry))
    }

    fn push(&mut self, entry: Result<Entry, Error>) -> Value {
        self.values.push(entry);
        Value {
            batch: self.number,
            place: self.values.len() - 1,
        }
    }
}

/// Where a value comes from.
#[derive(PartialEq)]
enum Made {
    Given,
    Computed,
}

fn entry(chain: &Chain, node: NodeId, made: Made) -> Entry {
    Entry {
        node,
        shape: chain.node(node).shape,
        is_operation: made == Made::Computed,
        is_used: false,
        is_kept: false,
        result: None,
    }
}
