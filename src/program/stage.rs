//! One stage of a program: what the stage reads, what it computes and where it writes.
//!
//! Stages have no sizes and no addresses.

use super::{Body, LANES, Width};
use std::sync::Arc;

use crate::graph::{CallerFn, Term};
use crate::tensor::Packing;

/// The most operands of a kernel. With the result and the segment table these are the eight
/// storage buffers that every WebGPU device binds at once.
pub const MAX_OPERANDS: usize = RESULT as usize;

/// The binding of the result. All kernels have the same numbers of bindings, operands first, so
/// that one bind group layout serves all; a kernel leaves out the operands that it does not
/// have.
pub const RESULT: u32 = 6;

/// The number of a buffer of a program, for a result or an intermediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub u32);

/// What a stage reads. The constants of a call are read with its scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The input of this number, which comes with the call in the arena.
    Input(u32),
    /// The call's scalar.
    Scalar,
    /// The input of this number, which is a resident tensor.
    Resident(u32),
    /// What an earlier stage wrote.
    Buffer(BufferId),
}

/// Where a stage writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A result or an intermediate of the program.
    Buffer(BufferId),
    /// The input of this number, a resident tensor. An operand of the call says where in the
    /// tensor the stage writes.
    Resident(u32),
}

/// A part of a program that one kernel computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// What the stage computes.
    pub body: Body,
    /// What the first variables of the stage's expressions are.
    pub loads: Vec<Load>,
    /// What the variables behind the loads are.
    pub scalars: Vec<Scalar>,
    /// Where the stage writes.
    pub target: Target,
}

/// A variable that differs from element to element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    /// What is read.
    pub source: Source,
    /// The binding that is read: [`RESULT`] where the stage reads what it writes.
    pub binding: u32,
    /// How a thread finds its element.
    pub access: Access,
    /// How the source's elements are packed, if they are packed.
    pub packing: Option<Packing>,
}

impl Load {
    /// Whether the stage overwrites what this load reads.
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
    /// At any place that a function of a caller's says: the entry has how many elements there are,
    /// and how many of them along the last axis.
    Whole,
    /// By what the thread read before: no word of the entry says where.
    Found,
}

/// A variable that is the same for all elements of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// The chain's constant of this number.
    Constant(u32),
    /// A number of elements, which the entry holds.
    Count,
}

impl Stage {
    /// How many buffers the stage reads and does not write.
    pub fn bindings(&self) -> usize {
        let loads = self.loads.iter().filter(|load| !load.is_in_place());
        let last = loads.map(|load| load.binding + 1).max();
        last.unwrap_or(0) as usize
    }

    /// The sources of the stage's bindings, in order. All inputs in the arena share a binding,
    /// for which the first of these inputs is given.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        (0..self.bindings() as u32).filter_map(|binding| {
            let mut loads = self.loads.iter();
            loads
                .find(|load| load.binding == binding)
                .map(|load| load.source)
        })
    }

    /// How the elements of a binding are packed, if they are packed.
    pub fn packing(&self, binding: u32) -> Option<Packing> {
        let mut loads = self.loads.iter();
        let load = loads.find(|load| load.binding == binding);
        load.and_then(|load| load.packing)
    }

    /// Whether one kernel computes both stages: these differ at most in which buffers they read
    /// and write, as equal layers of a network do.
    pub fn shares_kernel(&self, other: &Stage) -> bool {
        let of = |load: &Load| (load.binding, load.access, load.packing);
        self.body == other.body
            && self.scalars == other.scalars
            && self.loads.iter().map(of).eq(other.loads.iter().map(of))
    }

    /// The buffer of the program that the stage writes, unless it writes a resident tensor.
    pub fn buffer(&self) -> Option<BufferId> {
        match self.target {
            Target::Buffer(buffer) => Some(buffer),
            Target::Resident(_) => None,
        }
    }

    /// Whether the stage reads constants of the call.
    pub fn has_constants(&self) -> bool {
        let is_constant = |scalar: &Scalar| matches!(scalar, Scalar::Constant(_));
        self.scalars.iter().any(is_constant)
    }

    /// Whether the stage is a map that computes each element from the elements in the same place,
    /// and whose result has no strides of its own.
    pub fn is_flat_map(&self) -> bool {
        matches!(&self.body, Body::Map(map) if map.rank == 0 && !map.is_strided)
    }

    /// Whether the stage does nothing but copy an intermediate to a resident tensor.
    pub fn is_copy(&self) -> bool {
        let (Body::Map(map), Target::Resident(_), [load]) =
            (&self.body, self.target, &self.loads[..])
        else {
            return false;
        };
        matches!(load.source, Source::Buffer(_)) && map.value.terms() == [Term::Variable(0)]
    }

    /// Whether the stage applies a function of a caller's that looks at any place of its inputs.
    pub fn looks_anywhere(&self) -> bool {
        self.loads.iter().any(|load| load.access == Access::Whole)
    }

    /// The functions of callers that the stage applies, each once.
    pub fn caller_fns(&self) -> Vec<&Arc<CallerFn>> {
        let mut found: Vec<&Arc<CallerFn>> = Vec::new();
        self.body.each_expr(&mut |expr| {
            for term in expr.terms() {
                if let Term::Call(function, _) = term
                    && !found.contains(&function)
                {
                    found.push(function);
                }
            }
        });
        found
    }

    /// How many elements a value has of a load that a function of a caller's looks at.
    pub fn lanes(&self, load: u32) -> u32 {
        let Body::Map(map) = &self.body else {
            return 1;
        };
        let terms = map.value.terms();
        let mut of_calls = terms.iter().filter_map(|term| {
            let Term::Call(function, operands) = term else {
                return None;
            };
            let mut inputs = operands.iter().zip(&function.content.inputs);
            let input = inputs.find(|(of, _)| terms[of.index()] == Term::Variable(load));
            input.map(|(_, input)| input.of.lanes)
        });
        of_calls.next().unwrap_or(1)
    }

    /// How many neighboring threads must be in one workgroup.
    pub fn cooperating_threads(&self) -> u32 {
        match &self.body {
            Body::Map(_) | Body::Named(..) => 1,
            Body::Rows(rows) if rows.width == Width::Thread => 1,
            Body::Rows(_) | Body::Attention(_) | Body::Search(_) => LANES,
        }
    }
}
