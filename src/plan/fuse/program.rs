//! What a chain is computed by: stages without any number in them.
//!
//! Equal programs merge into one dispatch a stage, whatever the shapes of
//! their calls: every count, stride, offset and constant is in [`Sizes`] or
//! comes with the call. Stages that differ only in what they read and write share
//! a pipeline.

use super::attention::Attention;
use crate::graph::Expr;
use crate::graph::shape::Shape;
use crate::kernel::RESULT;
use crate::tensor::{DType, Packing};

/// Most values that one reduction takes; more become a tree of reductions.
pub const CHUNK: u32 = 4096;

/// Rows of up to this many values take one thread, longer ones a workgroup.
pub const NARROW: u32 = 32;

/// The same where the last axis is not among those of the rows: then neighbors of
/// a thread read beside it. What is summed over a call's own rows, such as the
/// tokens of texts, is one program up to here.
pub const TALL: u32 = 512;

/// Threads that share a row, a tile of a product or a block of queries.
pub const LANES: u32 = 64;

/// A result or an intermediate of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub u32);

/// What a stage reads, besides its call's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The chain's input of this number, in the arena with the call.
    Input(u32),
    /// The chain's input of this number, in a buffer of its own.
    Resident(u32),
    /// What earlier stages made.
    Buffer(BufferId),
}

/// The stages of a chain, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The stages.
    pub stages: Vec<Stage>,
    /// Where the chain's results are.
    ///
    /// Invariant: no stage reads them, so that results can share a buffer.
    pub outputs: Vec<BufferId>,
    /// How many buffers the stages write.
    pub buffers: u32,
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
    pub buffer: BufferId,
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
}

/// A variable that is the same for all elements of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// The chain's constant of this number.
    Constant(u32),
    /// A number of elements, from the entry.
    Count,
}

/// What a stage computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// One value for each place.
    Map(Map),
    /// Rows, each folded to values that may be used for its elements.
    Rows(Rows),
    /// Heads of an attention.
    Attention(Attention),
}

/// `result[i] = value(loads of i, scalars)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Dimensions that strides are counted in; 0 where every load is flat.
    pub rank: u32,
    /// What is computed.
    pub value: Expr,
    /// Whether results lie apart, as the parts of a concat do.
    pub is_strided: bool,
}

/// Reductions of rows, in order, and what is made of them. The variables
/// behind the scalars are what the steps gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Dimensions of the places of rows.
    pub outer: u32,
    /// Dimensions of the places within a row.
    pub inner: u32,
    /// Who computes a row.
    pub width: Width,
    /// What is known of a row, step by step.
    pub steps: Vec<RowStep>,
    /// The result.
    pub result: RowResult,
    /// Whether a row is cut into chunks, with a result for each.
    pub is_cut: bool,
    /// Which loads are the same for a whole row.
    pub is_row: Vec<bool>,
}

/// Who computes a row: chosen by its length alone, because the order of
/// summation depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// One thread, value by value.
    Thread,
    /// A workgroup (or a thread that sums like one): thread `l` takes the values `l`, `l + 64`, ..., and the
    /// partial results are folded pairwise, those 32 apart first.
    Group,
    /// A workgroup computes a tile of a matrix product: a row of `Rows` is one
    /// of its elements, summed from the first product to the last.
    Tile(Tile),
}

/// A product of matrices. The outer dimensions of its stage are at least
/// three: those in front, rows and columns; the inner one is what both share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The loads of the two factors.
    pub factors: [u32; 2],
    /// Whether the neighbors in a factor are those along its rows or columns,
    /// and not along the dimension that is summed.
    pub is_across: [bool; 2],
}

/// One value for a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowStep {
    /// The fold of an expression over the row.
    Fold(Fold, Expr),
    /// A value made of earlier ones.
    Let(Expr),
}

/// What a row gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowResult {
    /// One value.
    Row(Expr),
    /// A value for each of its elements.
    Element(Expr),
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The largest; NaN if any is.
    Max,
    /// The smallest; NaN if any is.
    Min,
    /// The place of the first that is not 0.
    First,
    /// The smallest of integers.
    Least,
}

impl Fold {
    /// The fold's name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Max => "max",
            Fold::Min => "min",
            Fold::First => "first",
            Fold::Least => "least",
        }
    }

    /// The type of what it gives.
    pub(super) const fn dtype(self) -> DType {
        match self {
            Fold::Sum | Fold::Max | Fold::Min => DType::F32,
            Fold::First | Fold::Least => DType::U32,
        }
    }

    /// The fold that makes one result of several.
    pub(super) const fn of_partials(self) -> Fold {
        match self {
            Fold::First => Fold::Least,
            other => other,
        }
    }
}

/// The numbers of one call's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Those of each stage.
    pub stages: Vec<StageSizes>,
    /// Words of each buffer.
    pub buffers: Vec<u32>,
    /// Shapes of the results.
    pub outputs: Vec<Shape>,
}

/// The numbers of one stage for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSizes {
    /// Threads that the call takes: one for four elements of a map, one or
    /// [`LANES`] for a row. As many as there are numbers where it takes more, which
    /// is more than [`MOST_THREADS`](crate::plan::MOST_THREADS).
    pub threads: u32,
    /// For each load, how far behind the start of its source it begins.
    pub offsets: Vec<u32>,
    /// How far behind the start of the buffer the result begins.
    pub result: u32,
    /// The words of the call's entry behind its addresses, see [`super::Layout`].
    pub words: Vec<u32>,
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
            Body::Map(_) => 1,
            Body::Rows(rows) if rows.width == Width::Thread => 1,
            Body::Rows(_) | Body::Attention(_) => LANES,
        }
    }
}
