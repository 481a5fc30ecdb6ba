//! Chains whose results stay on the device: each result is stored in a resident tensor.

use super::{Chain, Home, NodeId, Op, refuse};
use crate::error::Error;

/// Where a result is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The input that is the target: a resident tensor, which other nodes may read too.
    pub target: NodeId,
    /// What of the target is written.
    pub extent: StoreExtent,
}

/// What of a target a call writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreExtent {
    /// All of it: the target has the result's shape.
    Whole,
    /// As many elements as the result has, in row-major order, from the offset on that comes
    /// with the call.
    Part,
}

impl Chain {
    /// Makes a node a result that is stored in a resident tensor. Either all results of a chain
    /// are stored or none is, and a part of a target is stored alone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the target is no resident tensor of the result's type, is
    /// of another shape, or is stored to already.
    pub fn store(&mut self, id: NodeId, store: Store) -> Result<(), Error> {
        let fits = self.is_storable(id, store) && self.outputs.len() == self.stores.len();
        if !fits {
            return Err(refuse(|| {
                [
                    "compute: a target must be a resident tensor in full precision of the result's shape, ",
                    &self.nodes.get(id.index()).map_or_else(String::new, |node| node.shape.to_string()),
                    ", and be written once",
                ]
                .concat()
            }));
        }
        self.push_output(id)?;
        self.stores.push(store);
        Ok(())
    }

    /// Where the results are stored, in their order; empty for a chain whose results are read.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    fn is_storable(&self, id: NodeId, store: Store) -> bool {
        let nodes = [id, store.target].map(|id| self.nodes.get(id.index()));
        let [Some(result), Some(target)] = nodes else {
            return false;
        };
        let Op::Input { home, .. } = target.op else {
            return false;
        };
        let is_known = self.stores.iter().any(|known| known.target == store.target);
        let is_whole = |store: &Store| store.extent == StoreExtent::Whole;
        // A part is written beside other parts, so nothing may depend on what was there before.
        let is_read = || {
            id == store.target
                || self
                    .nodes
                    .iter()
                    .any(|node| node.operands.contains(&store.target))
        };
        let fits = match store.extent {
            StoreExtent::Whole => target.shape == result.shape && self.stores.iter().all(is_whole),
            StoreExtent::Part => {
                let is_within = target.shape.count() >= result.shape.count();
                is_within && self.stores.is_empty() && !is_read()
            }
        };
        home == Home::Resident && target.dtype == result.dtype && !is_known && fits
    }
}
