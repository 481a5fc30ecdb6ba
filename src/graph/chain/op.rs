//! The operations of chains, as data. What each asks of shapes is in `shape_inference`.

use std::sync::Arc;

use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{BinaryFn, CallerFn, Precision, UnaryFn};
use crate::tensor::Packing;

/// Where the data of an input lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// In the arena: it comes with the call.
    Call,
    /// On the device: it is a resident tensor.
    Resident,
    /// On the device, as packed floats.
    Packed(Packing),
}

impl Home {
    /// Every home, in the order of their numbers on the wire.
    pub const ALL: [Home; 2 + Packing::ALL.len()] = [
        Home::Call,
        Home::Resident,
        Home::Packed(Packing::F16),
        Home::Packed(Packing::Bf16),
        Home::Packed(Packing::Int8),
        Home::Packed(Packing::Int4),
    ];

    /// How the data is packed, if it is packed.
    pub const fn packing(self) -> Option<Packing> {
        match self {
            Home::Call | Home::Resident => None,
            Home::Packed(packing) => Some(packing),
        }
    }

    /// The number of the home on the wire.
    pub(super) const fn code(self) -> u32 {
        match self {
            Home::Call => 0,
            Home::Resident => 1,
            Home::Packed(packing) => 2 + packing as u32,
        }
    }
}

/// An operation on tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A tensor that calls give or name.
    Input {
        /// The number among the inputs.
        index: u32,
        /// Where the tensor's data lies.
        home: Home,
    },
    /// A number that comes with the call.
    Constant {
        /// The number among the constants.
        index: u32,
    },
    /// A function of each element.
    Unary(UnaryFn),
    /// A function of elements that broadcasting brings together.
    Binary(BinaryFn),
    /// A value between a low and a high one: minimum(maximum(x, low), high).
    Clamp,
    /// A function of the caller's own: of elements that broadcasting brings together, and behind
    /// these of numbers that come with the call.
    Call(Arc<CallerFn>),
    /// The second operand where the first, a condition, is true, and the third elsewhere; all
    /// three broadcast. A condition is false where it is a zero of either sign, and true for all
    /// else, NaN included.
    Where,
    /// Sum of products along the last axis.
    Dot,
    /// The product of matrices, which are the last two axes of each operand; the axes in front
    /// broadcast.
    Matmul(Precision),
    /// softmax(q·kᵀ · scale)·v for each head of queries, keys and values. The last two axes are
    /// rows and the heads' floats, head by head; the axes in front broadcast. The fourth operand
    /// is the scale, a number that comes with the call. A fifth one is a bias of `[heads,
    /// queries + keys - 1]`, which is added to each scaled score by how far the key is behind the
    /// query: the first column is that of the last query and the first key.
    Attention(Heads),
    /// One value for each place outside of the axes.
    Reduce {
        /// The reduction.
        reduction: Reduction,
        /// Along which axes.
        over: Reduced,
    },
    /// Each row along an axis, scaled by what the row holds. All norms but softmax take an epsilon
    /// as the second operand.
    Norm {
        /// The norm.
        norm: Norm,
        /// Along which axis.
        axis: u8,
    },
    /// Axes in another order: axis `i` of the result is `order[i]`.
    Transpose {
        /// The order; zeros behind the rank.
        order: [u8; MAX_RANK],
    },
    /// A part of each axis.
    Slice {
        /// One for each axis.
        ranges: Box<[Range]>,
    },
    /// The same elements in another shape.
    Reshape {
        /// The shape.
        shape: Shape,
    },
    /// Elements at the indexes that the second operand holds. An index outside of the axis gives
    /// NaN, because a device cannot refuse it.
    Gather {
        /// Along which axis.
        axis: u8,
    },
    /// Operands laid end to end.
    Concat {
        /// Along which axis.
        axis: u8,
    },
}

/// A part of an axis, within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The place of the first element.
    pub start: u32,
    /// The step from one element to the next; never 0.
    pub step: i32,
    /// How many elements.
    pub count: u32,
}

/// How many values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The largest; NaN if any value is.
    Max,
    /// The smallest; NaN if any value is.
    Min,
    /// The place of the first NaN, otherwise of the first of the largest values.
    Argmax,
}

/// The axes that a reduction is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduced {
    /// A bit for each axis.
    pub axes: u8,
    /// Whether the result has a dimension of 1 for each reduced axis.
    pub keep: bool,
}

impl Reduced {
    /// Whether an axis is reduced.
    pub fn has(self, axis: usize) -> bool {
        self.axes >> axis & 1 == 1
    }
}

/// The parameters of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heads {
    /// How many heads lie side by side in a row of queries. Rows of keys and of values have as many,
    /// or a number that divides it: neighboring heads of queries share one.
    pub count: u32,
    /// Whether a query attends to no keys behind its own place. The last query is at the place
    /// of the last key.
    pub is_causal: bool,
    /// How far from its own place a query attends to keys; `None` is however far.
    pub window: Option<u32>,
}

/// The most floats of a head of an attention.
pub const MAX_HEAD: u32 = 512;

impl Reduction {
    /// Every reduction, in the order of their numbers on the wire.
    pub const ALL: [Reduction; 5] = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Max,
        Reduction::Min,
        Reduction::Argmax,
    ];

    const NAMES: [&str; 5] = ["sum", "mean", "max", "min", "argmax"];
}

/// How a row is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Norm {
    /// eˣ over the sum of all eˣ.
    Softmax,
    /// (x − mean) / √(variance + ε).
    Layer,
    /// x / √(mean of squares + ε).
    Rms,
    /// x / maximum(length, ε).
    Normalize,
}

impl Norm {
    /// Every norm, in the order of their numbers on the wire.
    pub const ALL: [Norm; 4] = [Norm::Softmax, Norm::Layer, Norm::Rms, Norm::Normalize];

    const NAMES: [&str; 4] = ["softmax", "layerNorm", "rmsNorm", "normalize"];
}

impl Op {
    /// The name in messages.
    pub fn name(&self) -> &str {
        match self {
            Op::Input { .. } => "tensor",
            Op::Constant { .. } => "number",
            Op::Unary(function) => function.name(),
            Op::Binary(function) => function.name(),
            Op::Clamp => "clamp",
            Op::Call(function) => &function.content.name,
            Op::Where => "where",
            Op::Dot => "dot",
            Op::Matmul(_) => "matmul",
            Op::Attention(_) => "attention",
            Op::Reduce { reduction, .. } => Reduction::NAMES[*reduction as usize],
            Op::Norm { norm, .. } => Norm::NAMES[*norm as usize],
            Op::Transpose { .. } => "transpose",
            Op::Slice { .. } => "slice",
            Op::Reshape { .. } => "reshape",
            Op::Gather { .. } => "gather",
            Op::Concat { .. } => "concat",
        }
    }
}

/// The axes that a reduction removes, counted from the front, or from the back where they are
/// negative. `Batch::sum` has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes<'a> {
    pub(super) axes: &'a [i32],
    pub(super) is_kept: bool,
}

impl<'a> Axes<'a> {
    /// Every axis: the result is one number.
    pub const ALL: Axes<'static> = Axes {
        axes: &[],
        is_kept: false,
    };

    /// Axes that the result does not have. None means all axes.
    pub const fn of(axes: &'a [i32]) -> Axes<'a> {
        Axes {
            axes,
            is_kept: false,
        }
    }

    /// The same axes, which the result has with dimension 1.
    #[must_use]
    pub const fn kept(self) -> Axes<'a> {
        Axes {
            axes: self.axes,
            is_kept: true,
        }
    }
}
