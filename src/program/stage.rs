//! One stage of a program: what it reads, what it computes and where it writes.

use super::{Body, LANES, Width};
use crate::tensor::Packing;

/// Largest number of operands that a kernel takes. With the result and the
/// segment table these are the eight storage buffers that every WebGPU device
/// binds at once.
pub const MAX_OPERANDS: usize = RESULT as usize;

/// The binding of the result. Every kernel has the same bindings, operands
/// first, so that one layout serves all; it leaves out what it does not read.
pub const RESULT: u32 = 6;

/// A result or an intermediate of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub u32);

/// What a stage reads, besides its call's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The input of this number, in the arena with the call.
    Input(u32),
    /// The call's scalar.
    Scalar,
    /// The input of this number, in a buffer of its own.
    Resident(u32),
    /// What earlier stages made.
    Buffer(BufferId),
}

/// Where a stage writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A result or an intermediate of the program.
    Buffer(BufferId),
    /// The input of this number, a tensor that stays on the device. Where in that is
    /// the call's own data.
    Resident(u32),
}

/// One kernel at work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// What it computes.
    pub body: Body,
    /// What the variables of its expressions are, the first of them.
    pub loads: Vec<Load>,
    /// The variables behind the loads.
    pub scalars: Vec<Scalar>,
    /// Where it writes.
    pub target: Target,
}

/// A variable that differs from element to element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    /// What is read.
    pub source: Source,
    /// Which of the stage's distinct buffers that is; [`RESULT`] where it is the
    /// one that the stage writes.
    pub binding: u32,
    /// How a thread finds its element.
    pub access: Access,
    /// How its elements are packed, if they are.
    pub packing: Option<Packing>,
}

impl Load {
    /// Whether it reads what its stage then writes over.
    pub fn is_in_place(&self) -> bool {
        self.binding == RESULT
    }
}

/// How a thread finds an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// At the element's own number.
    Flat,
    /// By the strides of the call's entry.
    Strided,
    /// By strides, and by the index that the load of this number gives.
    Indexed(u32),
    /// By what it read before: no word of the entry says where.
    Found,
}

/// A variable that is the same for all elements of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// The chain's constant of this number.
    Constant(u32),
    /// A number of elements, from the entry.
    Count,
}

impl Stage {
    /// Distinct buffers that it reads and does not write.
    pub fn bindings(&self) -> usize {
        let loads = self.loads.iter().filter(|load| !load.is_in_place());
        let last = loads.map(|load| load.binding + 1).max();
        last.unwrap_or(0) as usize
    }

    /// What its bindings are, in order. Tensors of the arena share one, and
    /// the first of them stands for all.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        (0..self.bindings() as u32).filter_map(|binding| {
            let mut loads = self.loads.iter();
            loads
                .find(|load| load.binding == binding)
                .map(|load| load.source)
        })
    }

    /// How the elements of a binding are packed, if they are.
    pub fn packing(&self, binding: u32) -> Option<Packing> {
        let mut loads = self.loads.iter();
        let load = loads.find(|load| load.binding == binding);
        load.and_then(|load| load.packing)
    }

    /// Whether one kernel computes both: they differ at most in which tensors
    /// they read and where they write. Layers of a network do not.
    pub fn shares_kernel(&self, other: &Stage) -> bool {
        let of = |load: &Load| (load.binding, load.access, load.packing);
        self.body == other.body
            && self.scalars == other.scalars
            && self.loads.iter().map(of).eq(other.loads.iter().map(of))
    }

    /// The buffer of the program that it writes, if it writes one.
    pub fn buffer(&self) -> Option<BufferId> {
        match self.target {
            Target::Buffer(buffer) => Some(buffer),
            Target::Resident(_) => None,
        }
    }

    /// Whether it reads constants of the call.
    pub fn has_constants(&self) -> bool {
        let is_constant = |scalar: &Scalar| matches!(scalar, Scalar::Constant(_));
        self.scalars.iter().any(is_constant)
    }

    /// Whether it is a map of which each element is computed from those in its
    /// place, in memory that is its own.
    pub fn is_flat_map(&self) -> bool {
        matches!(&self.body, Body::Map(map) if map.rank == 0 && !map.is_strided)
    }

    /// Threads that must stay in one workgroup.
    pub fn group(&self) -> u32 {
        match &self.body {
            Body::Map(_) | Body::Named(..) => 1,
            Body::Rows(rows) if rows.width == Width::Thread => 1,
            Body::Rows(_) | Body::Attention(_) | Body::Search(_) => LANES,
        }
    }
}
