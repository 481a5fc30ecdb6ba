//! How a batch records uploads, tensors, operations, and which values are results.
//!
//! The chain checks shapes, and its errors are passed on.

use std::borrow::Cow;

use super::{Batch, Entry, NamedTensor, Progress, Value, invalid};
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::{Chain, Home, Op};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, UnaryFn};
use crate::native::tensor::{Tensor, shaped};
use crate::tensor::DType;

impl<'a, G> Batch<'a, G> {
    /// A vector that goes up with the batch.
    ///
    /// The floats are borrowed until [`execute`](Batch::execute) copies them, or owned where
    /// a `Vec` is given. What cannot be recorded, such as the 1,025th node, is refused where
    /// the value is used first.
    pub fn upload(&mut self, data: impl Into<Cow<'a, [f32]>>) -> Value {
        let data = data.into();
        let entry = u32::try_from(data.len())
            .map_err(|_| invalid("upload", "an array has at most 2^30 elements; split it"))
            .and_then(|length| Shape::new(&[length]))
            .and_then(|shape| self.input("upload", shape, DType::F32, Home::Call));
        if entry.is_ok() {
            self.uploads.push(Upload::Floats(data));
        }
        self.push(entry)
    }

    /// An array of some shape, row-major, that goes up with the batch.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let table = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// assert_eq!(batch.shape(table)?, [2, 3]);
    /// assert!(batch.upload_shaped(&[1.0, 2.0], &[3]).is_err());
    /// # Ok::<(), framebatch::Error>(())
    /// ```
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
        let entry = self.input("upload_shaped", shape, DType::F32, Home::Call)?;
        self.uploads.push(Upload::Floats(data));
        Ok(self.push(Ok(entry)))
    }

    /// A tensor that lies on the device already: nothing goes up for it.
    /// [`Gpu::tensor`](crate::Gpu::tensor) makes one, and has an example.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`] for one whose data went with its device,
    /// [`Error::InvalidInput`] for one of another session, and after
    /// [`execute`](Batch::execute).
    pub fn tensor(&mut self, tensor: &Tensor) -> Result<Value, Error> {
        let number = self.gpu.shared().admit(tensor)?;
        let mut known = self.tensors.iter();
        if let Some(known) = known.find(|known| known.number == number) {
            return Ok(known.value);
        }
        let entry = self.input("tensor", tensor.dims(), DType::F32, tensor.home())?;
        let value = self.push(Ok(entry));
        self.tensors.push(NamedTensor {
            tensor: tensor.clone(),
            value,
            number,
        });
        Ok(value)
    }

    /// The sum of a · b along the last axis, which the result does not have:
    /// one number for two vectors; other axes broadcast. Off by at most n/64 + 8 units of
    /// 2⁻²⁴ of the sum of absolute products, for n up to 4,096.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for two numbers, which have no axis.
    pub fn dot(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        let [a, b] = self.operands("dot", [a, b])?;
        let node = self.chain.dot(a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// The product of matrices: the last two axes of each, `[.., m, k]` and
    /// `[.., k, n]` give `[.., m, n]`; axes in front broadcast. What follows
    /// element by element is computed in the same pass. Each element is summed from the
    /// first product to the last, off by at most k·2⁻²⁴ of the sum of absolute values.
    ///
    /// A vector is one row on the left and one column on the right, and the result
    /// has no axis for that, as in NumPy: `[k]` and `[.., k, n]` give `[.., n]`,
    /// `[.., m, k]` and `[k]` give `[.., m]`, two vectors one number. What follows
    /// a product with a vector is a pass of its own.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let rows = batch.upload_shaped(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let weights = batch.upload_shaped(&[1.0, 0.0, 0.0, -1.0], &[2, 2])?;
    /// let product = batch.matmul(rows, weights)?;
    /// let layer = batch.relu(product)?; // In the same pass.
    /// batch.execute()?;
    /// assert_eq!(batch.read(layer)?, [1.0, 0.0, 3.0, 0.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for numbers, shapes of 8 dimensions, and those
    /// which do not agree in `k`; both are named.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value, Error> {
        let [a, b] = self.operands("matmul", [a, b])?;
        let node = self.chain.matmul(a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// Makes a value a result, though operations use it or nothing computed it.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let x = batch.upload(&[1.0, 4.0]);
    /// let root = batch.sqrt(x)?;
    /// let twice = batch.scale(root, 2.0)?;
    /// batch.keep(root)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(root)?, [1.0, 2.0]);
    /// assert_eq!(batch.read(twice)?, [2.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
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
        let is_number =
            |entry: &Entry| matches!(self.chain.node(entry.node).op, Op::Constant { .. });
        let values = self.values.iter().flatten();
        values.filter(|entry| !is_number(entry)).count()
    }

    pub(super) fn unary(
        &mut self,
        name: &str,
        function: UnaryFn,
        x: Value,
    ) -> Result<Value, Error> {
        let x = self.operand(name, x)?;
        let node = self.chain.unary(function, x)?;
        Ok(self.operation(node, &[x]))
    }

    pub(super) fn binary(
        &mut self,
        function: BinaryFn,
        a: Value,
        b: Value,
    ) -> Result<Value, Error> {
        let name = function.name();
        let [a, b] = self.operands(name, [a, b])?;
        let node = self.chain.binary(function, a, b)?;
        Ok(self.operation(node, &[a, b]))
    }

    /// The node of a value that is an operand of the operation `name`.
    pub(super) fn operand(&self, name: &str, value: Value) -> Result<NodeId, Error> {
        self.check_open(name)?;
        Ok(self.entry(name, value)?.node)
    }

    pub(super) fn operands<const N: usize>(
        &self,
        name: &str,
        values: [Value; N],
    ) -> Result<[NodeId; N], Error> {
        let mut nodes = [self.operand(name, values[0])?; N];
        for (node, value) in nodes.iter_mut().zip(values).skip(1) {
            *node = self.operand(name, value)?;
        }
        Ok(nodes)
    }

    /// The node of a number.
    pub(super) fn constant(&mut self, number: f32) -> Result<NodeId, Error> {
        let node = self.chain.constant()?;
        self.constants.push(number);
        Ok(node)
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
        match self.progress {
            Progress::Open | Progress::Traced => Ok(()),
            Progress::Stored | Progress::Done(_) => Err(invalid(
                name,
                "the batch was executed already; make another one",
            )),
        }
    }

    pub(super) fn input(
        &mut self,
        name: &str,
        shape: Shape,
        dtype: DType,
        home: Home,
    ) -> Result<Entry, Error> {
        self.check_open(name)?;
        let node = self.chain.input(shape, dtype, home)?;
        Ok(entry(&self.chain, node, Origin::Input))
    }

    pub(super) fn operation(&mut self, node: NodeId, operands: &[NodeId]) -> Value {
        for known in self.values.iter_mut().flatten() {
            known.is_used |= operands.contains(&known.node);
        }
        self.operations += 1;
        let entry = entry(&self.chain, node, Origin::Operation);
        self.push(Ok(entry))
    }

    pub(super) fn push(&mut self, entry: Result<Entry, Error>) -> Value {
        self.values.push(entry);
        Value {
            batch: self.number,
            place: self.values.len() - 1,
        }
    }
}

/// Data that is uploaded with a batch.
#[derive(Clone, Debug)]
pub(super) enum Upload<'a> {
    Floats(Cow<'a, [f32]>),
    Indexes(Cow<'a, [u32]>),
    Integers(Cow<'a, [i32]>),
    /// What a call of a function is given, by number.
    Given(usize),
}

impl Upload<'_> {
    /// The bytes, in a call of a function that is given these arrays; none in a batch.
    pub(super) fn bytes<'b>(&'b self, given: &[&'b [f32]]) -> &'b [u8] {
        match self {
            Upload::Floats(floats) => bytemuck::cast_slice(floats),
            Upload::Indexes(indexes) => bytemuck::cast_slice(indexes),
            Upload::Integers(integers) => bytemuck::cast_slice(integers),
            Upload::Given(at) => bytemuck::cast_slice(given[*at]),
        }
    }

    /// The same data, without a borrow.
    pub(super) fn owned(&self) -> Upload<'static> {
        match self {
            Upload::Floats(floats) => Upload::Floats(floats.to_vec().into()),
            Upload::Indexes(indexes) => Upload::Indexes(indexes.to_vec().into()),
            Upload::Integers(integers) => Upload::Integers(integers.to_vec().into()),
            Upload::Given(at) => Upload::Given(*at),
        }
    }
}

/// Where a value comes from.
#[derive(PartialEq)]
pub(super) enum Origin {
    Input,
    Operation,
}

pub(super) fn entry(chain: &Chain, node: NodeId, origin: Origin) -> Entry {
    Entry {
        node,
        shape: chain.node(node).shape,
        is_operation: origin == Origin::Operation,
        is_used: false,
        is_kept: false,
        is_stored: false,
        result: None,
    }
}
