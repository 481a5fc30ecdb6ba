//! What a batch stores: results that stay on the device, in tensors.
//!
//! Shapes and tensors are checked here. The part of the recorded chain that a call needs is chosen
//! in `selection`.

use super::selection::Selection;
use super::{Batch, Progress, Value, invalid};
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::{Home, Store, StoreExtent};
use crate::native::request::{Coverage, Written};
use crate::native::tensor::Tensor;
use crate::tensor::DType;

/// A value that is stored in a tensor.
#[derive(Debug)]
pub(super) struct RecordedStore {
    node: NodeId,
    /// Keeps the tensor until the batch is sent.
    pub(super) tensor: Tensor,
    /// The tensor's number in the session.
    number: u32,
}

impl<G> Batch<'_, G> {
    /// Has a value stay on the device: the tensor holds it once the batch was
    /// [executed](Batch::execute), and nothing comes back for it. The value is no result
    /// unless [`keep`](Batch::keep) names it, too.
    ///
    /// The tensor is there at once, with room on the device; until the batch was executed, other
    /// batches that name it are refused. Calls that are made after `execute` read
    /// it without waiting. Where the batch is dropped or fails, the tensor has no words, and what
    /// reads it fails for the same reason. What is lost with its device stays lost, because
    /// nothing is kept to compute it again; what reads it fails with [`Error::TensorLost`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let mut batch = gpu.batch();
    /// let x = batch.upload(&[1.0, 2.0, 3.0]);
    /// let squares = batch.mul(x, x)?;
    /// let squares = batch.compute(squares)?;
    /// batch.execute()?; // Nothing is read back.
    ///
    /// let mut batch = gpu.batch();
    /// let x = batch.tensor(&squares)?;
    /// let sum = batch.sum(x, framebatch::Axes::ALL)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(sum)?, [14.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a value of another batch, for indexes, and after
    /// [`execute`](Batch::execute); [`Error::TooLarge`] where no buffer holds the value,
    /// [`Error::OutOfMemory`], [`Error::Disposed`].
    pub fn compute(&mut self, value: Value) -> Result<Tensor, Error> {
        if let Progress::Traced = self.progress {
            return Err(invalid(
                "compute",
                "each call of a function would need a tensor of its own; return the value, or \
                 give `compute_into` a tensor",
            ));
        }
        let node = self.floats_operand("compute", value)?;
        let shape = self.chain.node(node).shape;
        let read = self.tensors.iter().map(|named| named.number).collect();
        let tensor = self.gpu.shared().make_room(shape, read)?;
        self.store(value, node, &tensor, tensor.number());
        Ok(tensor)
    }

    /// Stores a value in a tensor that exists, of the same shape. The value may be computed of the
    /// tensor itself, as in the step of a simulation: all values of a batch see tensors as they are
    /// when [`execute`](Batch::execute) is called, and calls that are made later see what the
    /// batch stored.
    ///
    /// The tensor's [source](Tensor::without_source) is given up: when the device is lost, what
    /// reads the tensor fails with [`Error::TensorLost`], until a batch stores to it that does not
    /// read it.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let places = gpu.tensor(&[0.0, 10.0], &[2])?;
    /// let speeds = gpu.tensor(&[1.0, -2.0], &[2])?;
    /// for _ in 0..3 {
    ///     let mut batch = gpu.batch();
    ///     let (x, v) = (batch.tensor(&places)?, batch.tensor(&speeds)?);
    ///     let moved = batch.add(x, v)?;
    ///     batch.compute_into(moved, &places)?;
    ///     batch.execute()?;
    /// }
    /// assert_eq!(gpu.read(&places)?, [3.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor of another shape or session, in fewer bits, imported,
    /// or that the batch stores to already; for a value of another batch, for indexes, and after
    /// [`execute`](Batch::execute).
    pub fn compute_into(&mut self, value: Value, tensor: &Tensor) -> Result<(), Error> {
        let node = self.floats_operand("compute_into", value)?;
        let shape = self.chain.node(node).shape;
        if shape != tensor.dims() {
            return Err(Error::InvalidInput(format!(
                "compute_into: the value has shape {shape}, but the tensor {}; reshape one of them",
                tensor.dims()
            )));
        }
        let number = self.gpu.shared().admit_target("compute_into", tensor)?;
        if self.stores.iter().any(|store| store.number == number) {
            return Err(invalid(
                "compute_into",
                "the batch stores to this tensor already; store the last value alone",
            ));
        }
        self.store(value, node, tensor, number);
        Ok(())
    }

    /// The tensors that the batch writes, and the chain that computes these.
    pub(super) fn lay_out_stores(&self) -> Result<(Selection<'_>, Vec<Written>), Error> {
        let stores = self.stores.iter();
        // The answer of a store without elements is known.
        let stores = stores.filter(|store| store.tensor.dims().count() > 0);
        let stores: Vec<&RecordedStore> = stores.collect();
        let nodes: Vec<NodeId> = stores.iter().map(|store| store.node).collect();
        let mut selection = Selection::of(self, &nodes)?;
        let mut written = Vec::with_capacity(stores.len());
        for store in stores {
            let shape = store.tensor.dims();
            let read = selection.tensor(store.number);
            let target = match read {
                Some(node) => node,
                None => selection.add_tensor(shape, Home::Resident, store.number)?,
            };
            let extent = StoreExtent::Whole;
            let own = selection.node(store.node);
            selection.chain.store(own, Store { target, extent })?;
            written.push(Written {
                number: store.number,
                words: shape.count(),
                coverage: match read {
                    Some(_) => Coverage::Updated,
                    None => Coverage::Replaced,
                },
            });
        }
        Ok((selection, written))
    }

    fn store(&mut self, value: Value, node: NodeId, tensor: &Tensor, number: u32) {
        if let Ok(entry) = &mut self.values[value.place] {
            entry.is_stored = true;
        }
        self.stores.push(RecordedStore {
            node,
            tensor: tensor.clone(),
            number,
        });
    }

    /// The node of a value that holds floats.
    pub(super) fn floats_operand(&self, name: &str, value: Value) -> Result<NodeId, Error> {
        let node = self.operand(name, value)?;
        match self.chain.node(node).dtype {
            DType::F32 => Ok(node),
            _ => Err(invalid(
                name,
                "tensors hold floats, and this value holds whole numbers; keep it and call `read_indexes` or `read_i32`",
            )),
        }
    }
}
