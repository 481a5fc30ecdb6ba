//! Lowers a chain to primitives, of which every composite op is made.
//!
//! Softmax, the norms, mean, dot, argmax and clamp become primitives here, in forms that
//! neither overflow nor cancel where the op itself does not. A reduction over more than
//! [`STRIP`] values becomes a tree of reductions. Which primitives share a stage is not
//! decided here.

use std::sync::Arc;

use crate::graph::chain::{
    Chain, Heads, Node, Norm, Op, Range, Reduced, Reduction, as_column, as_row,
};
use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{BinaryFn, CallerFn, FnForm, Precision, UnaryFn, ValueType};
use crate::program::{Fold, STRIP};
use crate::tensor::DType;

/// How a value is computed from its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    /// The input of this number.
    Input(u32),
    /// The number of this place among those that come with the call.
    Constant(u32),
    /// A number of elements, as a float: known with the shapes.
    Count(u32),
    Unary(UnaryFn),
    Binary(BinaryFn),
    Where,
    /// A function of the caller's own.
    Call(Arc<CallerFn>),
    /// A function of the caller's own that looks at any place of its inputs, which lie in memory
    /// and are seen as of these shapes.
    At(Arc<CallerFn>, Box<[Shape]>),
    /// One value for at most [`STRIP`] values along axes.
    Reduce {
        fold: Fold,
        over: Reduced,
    },
    /// One value for each [`STRIP`] values along axes, a bit each; the strips are the last
    /// dimension.
    Partial {
        fold: Fold,
        axes: u8,
    },
    /// Sums of products along the last axis of this domain, which has the value's axes and
    /// the axis that both operands share.
    Product(Shape, Precision),
    /// Attention of queries, keys and values, which lie in memory, with a scale, and perhaps a
    /// bias, which lies in memory too.
    Attention(Heads),
    Transpose([u8; MAX_RANK]),
    Slice(Box<[Range]>),
    Reshape,
    Gather(usize),
    Concat(usize),
}

impl Primitive {
    /// Whether a value is read and not computed.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(
            self,
            Primitive::Input(_) | Primitive::Constant(_) | Primitive::Count(_)
        )
    }

    /// Whether each element is computed of the operands' elements at its place.
    pub(super) fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Primitive::Unary(_) | Primitive::Binary(_) | Primitive::Where | Primitive::Call(_)
        )
    }
}

/// A value of a lowered chain: a primitive, its operands and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) primitive: Primitive,
    pub(super) operands: Vec<usize>,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
}

/// A chain of primitives: operands come before the values that use them, and no two values are
/// equal.
#[derive(Debug, Default)]
pub(super) struct Lowered {
    pub(super) values: Vec<Value>,
    pub(super) outputs: Vec<usize>,
}

/// Lowers a chain.
pub(super) fn lower(chain: &Chain) -> Lowered {
    let mut lowered = Lowered::default();
    let mut values: Vec<usize> = Vec::with_capacity(chain.nodes().len());
    for node in chain.nodes() {
        let operands: Vec<usize> = node.operands.iter().map(|id| values[id.index()]).collect();
        values.push(lowered.node(node, &operands));
    }
    lowered.outputs = chain
        .outputs()
        .iter()
        .map(|id| values[id.index()])
        .collect();
    // A chain whose results are stored gives nothing that could tell.
    if chain.stores().is_empty() {
        lowered.tell_stopped();
    }
    lowered
}

impl Lowered {
    /// Adds an output, which says whether an element was stopped of the functions with loops.
    fn tell_stopped(&mut self) {
        let mut told = None;
        for id in 0..self.values.len() {
            let Value {
                primitive: Primitive::Call(function) | Primitive::At(function, _),
                shape,
                ..
            } = &self.values[id]
            else {
                continue;
            };
            if function.content.max_passes.is_none() || shape.count() == 0 {
                continue;
            }
            let id = match function.content.told_by.and_then(CallerFn::numbered) {
                Some(told_by) => self.told(id, told_by),
                None => id,
            };
            let own = self.unary(UnaryFn::Stopped, id);
            let rank = self.values[own].shape.rank();
            let over = Reduced {
                axes: ((1_u32 << rank) - 1) as u8,
                keep: false,
            };
            let own = self.reduce(Fold::Max, own, over);
            told = Some(told.map_or(own, |told| self.binary(BinaryFn::Maximum, told, own)));
        }
        self.outputs.extend(told);
    }

    /// The value of the function that says whether the loops of another one were stopped.
    fn told(&mut self, id: usize, told_by: Arc<CallerFn>) -> usize {
        let Value {
            primitive,
            operands,
            shape,
            ..
        } = self.values[id].clone();
        let primitive = match primitive {
            Primitive::At(_, seen) => Primitive::At(told_by, seen),
            _ => Primitive::Call(told_by),
        };
        self.push(primitive, &operands, shape, DType::F32)
    }

    fn node(&mut self, node: &Node, operands: &[usize]) -> usize {
        let primitive = match &node.op {
            Op::Input { index, .. } => Primitive::Input(*index),
            Op::Constant { index } => Primitive::Constant(*index),
            Op::Unary(function) => Primitive::Unary(*function),
            Op::Binary(function) => Primitive::Binary(*function),
            Op::Where => Primitive::Where,
            Op::Call(function) => return self.call(function, operands, node.shape),
            Op::Clamp => {
                let raised = self.binary(BinaryFn::Maximum, operands[0], operands[1]);
                return self.binary(BinaryFn::Minimum, raised, operands[2]);
            }
            Op::Dot => {
                let products = self.binary(BinaryFn::Mul, operands[0], operands[1]);
                let last = self.values[products].shape.rank() - 1;
                let over = Reduced {
                    axes: 1 << last,
                    keep: false,
                };
                return self.reduce(Fold::Sum, products, over);
            }
            Op::Matmul(precision) => return self.product(operands, node.shape, *precision),
            Op::Attention(heads) => {
                let mut operands = operands.to_vec();
                for place in [0, 1, 2, 4] {
                    if let Some(operand) = operands.get_mut(place) {
                        *operand = self.in_memory(*operand);
                    }
                }
                return self.push(
                    Primitive::Attention(*heads),
                    &operands,
                    node.shape,
                    node.dtype,
                );
            }
            Op::Reduce { reduction, over } => {
                return self.reduction(*reduction, operands[0], *over);
            }
            Op::Norm { norm, axis } => return self.norm(*norm, operands, 1 << axis),
            Op::Transpose { order } => Primitive::Transpose(*order),
            Op::Slice { ranges } => Primitive::Slice(ranges.clone()),
            Op::Reshape { .. } => Primitive::Reshape,
            Op::Gather { axis } => Primitive::Gather(usize::from(*axis)),
            Op::Concat { axis } => Primitive::Concat(usize::from(*axis)),
        };
        self.push(primitive, operands, node.shape, node.dtype)
    }

    /// The product of two operands with a result of this shape. A vector counts as a matrix of
    /// one row or column, which the result does not have.
    fn product(&mut self, operands: &[usize], shape: Shape, precision: Precision) -> usize {
        let [a, b] = [0, 1].map(|place| self.values[operands[place]].shape);
        let factors = [as_row(a), as_column(b)];
        let mut dims = shape.dims().to_vec();
        if b.rank() == 1 {
            dims.push(1);
        }
        if a.rank() == 1 {
            dims.insert(dims.len() - 1, 1);
        }
        let made = Shape::new(&dims).expect("as many elements as the result");
        let domain = made.with_inner(a.dims()[a.rank() - 1]);
        let factors = [0, 1].map(|place| self.reshape(operands[place], factors[place]));
        let primitive = Primitive::Product(domain, precision);
        let product = self.push(primitive, &factors, made, DType::F32);
        self.reshape(product, shape)
    }

    fn reshape(&mut self, x: usize, to: Shape) -> usize {
        let Value { shape, dtype, .. } = self.values[x];
        match shape == to {
            true => x,
            false => self.push(Primitive::Reshape, &[x], to, dtype),
        }
    }

    fn reduction(&mut self, reduction: Reduction, x: usize, over: Reduced) -> usize {
        match reduction {
            Reduction::Sum => self.reduce(Fold::Sum, x, over),
            Reduction::Max => self.reduce(Fold::Max, x, over),
            Reduction::Min => self.reduce(Fold::Min, x, over),
            Reduction::Mean => self.mean(x, over),
            Reduction::Argmax => {
                // Two folds of single values are simpler than one fold of pairs.
                let kept = Reduced { keep: true, ..over };
                let largest = self.reduce(Fold::Max, x, kept);
                let same = self.binary(BinaryFn::Same, x, largest);
                self.reduce(Fold::First, same, over)
            }
        }
    }

    fn norm(&mut self, norm: Norm, operands: &[usize], axes: u8) -> usize {
        let over = Reduced { axes, keep: true };
        let x = operands[0];
        match norm {
            Norm::Softmax => {
                let largest = self.reduce(Fold::Max, x, over);
                let below = self.binary(BinaryFn::Sub, x, largest);
                let powers = self.unary(UnaryFn::Exp, below);
                let sum = self.reduce(Fold::Sum, powers, over);
                self.binary(BinaryFn::Div, powers, sum)
            }
            Norm::Layer => {
                let mean = self.mean(x, over);
                let centered = self.binary(BinaryFn::Sub, x, mean);
                let squares = self.binary(BinaryFn::Mul, centered, centered);
                let variance = self.mean(squares, over);
                let variance = self.binary(BinaryFn::Add, variance, operands[1]);
                let deviation = self.unary(UnaryFn::Sqrt, variance);
                self.binary(BinaryFn::Div, centered, deviation)
            }
            Norm::Rms => {
                let squares = self.binary(BinaryFn::Mul, x, x);
                let mean = self.mean(squares, over);
                let mean = self.binary(BinaryFn::Add, mean, operands[1]);
                let root = self.unary(UnaryFn::Sqrt, mean);
                self.binary(BinaryFn::Div, x, root)
            }
            Norm::Normalize => {
                let squares = self.binary(BinaryFn::Mul, x, x);
                let sum = self.reduce(Fold::Sum, squares, over);
                let length = self.unary(UnaryFn::Sqrt, sum);
                let length = self.binary(BinaryFn::Maximum, length, operands[1]);
                self.binary(BinaryFn::Div, x, length)
            }
        }
    }

    fn mean(&mut self, x: usize, over: Reduced) -> usize {
        let sum = self.reduce(Fold::Sum, x, over);
        let count = along(self.values[x].shape, over.axes);
        let count = self.push(Primitive::Count(count), &[], Shape::SCALAR, DType::F32);
        self.binary(BinaryFn::Div, sum, count)
    }

    fn reduce(&mut self, fold: Fold, x: usize, over: Reduced) -> usize {
        let from = self.values[x].shape;
        let kept = from.map(|axis, dim| (!over.has(axis)).then_some(dim));
        let result = match over.keep {
            true => from.map(|axis, dim| Some(if over.has(axis) { 1 } else { dim })),
            false => kept,
        };
        let dtype = fold.dtype();
        let count = along(from, over.axes);
        if count <= STRIP {
            return self.push(Primitive::Reduce { fold, over }, &[x], result, dtype);
        }
        let dims = [kept.dims(), &[count.div_ceil(STRIP)]].concat();
        let strips = Shape::new(&dims).expect("smaller than the operand");
        let axes = over.axes;
        let partial = self.push(Primitive::Partial { fold, axes }, &[x], strips, dtype);
        let last = Reduced {
            axes: 1 << kept.rank(),
            keep: false,
        };
        let reduced = self.reduce(fold.of_partials(), partial, last);
        self.reshape(reduced, result)
    }

    /// The value, or a copy of the value in memory if it is a number of the call.
    fn in_memory(&mut self, x: usize) -> usize {
        let Value { shape, dtype, .. } = self.values[x];
        match self.values[base(&self.values, x)].primitive {
            Primitive::Constant(_) => self.push(Primitive::Concat(0), &[x], shape, dtype),
            _ => x,
        }
    }

    /// The value row by row in memory, or a copy of it.
    fn whole(&mut self, mut x: usize) -> usize {
        loop {
            let Value {
                primitive,
                operands,
                shape,
                dtype,
            } = &self.values[x];
            match primitive {
                Primitive::Reshape => x = operands[0],
                Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Constant(_) => {
                    let (count, shape, dtype) = (shape.count(), *shape, *dtype);
                    // A number has no axis to be copied along.
                    let row = Shape::SCALAR.with_inner(count);
                    let of = if shape.rank() == 0 { row } else { shape };
                    let seen = self.reshape(x, of);
                    return self.push(Primitive::Concat(0), &[seen], of, dtype);
                }
                _ => return x,
            }
        }
    }

    /// What a function of the caller's gives.
    fn call(&mut self, function: &Arc<CallerFn>, operands: &[usize], shape: Shape) -> usize {
        let content = &function.content;
        let dtype = content.result.scalar.dtype();
        if content.is_fused() {
            let primitive = Primitive::Call(Arc::clone(function));
            return self.push(primitive, operands, shape, dtype);
        }
        let (inputs, params) = operands.split_at(content.inputs.len());
        let places = content.result.places(shape).expect("the shape of a call");
        let mut seen = Vec::with_capacity(inputs.len());
        let mut whole = Vec::with_capacity(operands.len());
        for (x, input) in inputs.iter().zip(&content.inputs) {
            let mut x = *x;
            if content.form == FnForm::Element && !input.is_whole {
                x = self.repeating(x, input.of, places);
            }
            let own = input.of.places(self.values[x].shape);
            seen.push(own.expect("the shape of an input"));
            whole.push(self.whole(x));
        }
        whole.extend(params);
        let primitive = Primitive::At(Arc::clone(function), seen.into());
        self.push(primitive, &whole, shape, dtype)
    }

    /// A tensor whose values begin anew as often as they have to for all of `places`: the tensor
    /// itself, or a copy that broadcasting made.
    fn repeating(&mut self, x: usize, of: ValueType, places: Shape) -> usize {
        let Value { shape, dtype, .. } = self.values[x];
        let own = of.places(shape).expect("the shape of an input");
        let first = own.dims().iter().position(|dim| *dim != 1);
        let repeated = &own.dims()[first.unwrap_or(own.rank())..];
        if places.dims().ends_with(repeated) {
            return x;
        }
        let shape = match of.lanes {
            1 => places,
            lanes => places.with_inner(lanes),
        };
        self.push(Primitive::Unary(UnaryFn::Copy), &[x], shape, dtype)
    }

    fn unary(&mut self, function: UnaryFn, x: usize) -> usize {
        let shape = self.values[x].shape;
        self.push(Primitive::Unary(function), &[x], shape, DType::F32)
    }

    fn binary(&mut self, function: BinaryFn, a: usize, b: usize) -> usize {
        let (left, right) = (self.values[a].shape, self.values[b].shape);
        let shape = left
            .broadcast(right, function.name())
            .expect("the chain's op was checked");
        self.push(Primitive::Binary(function), &[a, b], shape, DType::F32)
    }

    /// Adds a value, and returns its number: that of an earlier value, if one is equal.
    fn push(
        &mut self,
        primitive: Primitive,
        operands: &[usize],
        shape: Shape,
        dtype: DType,
    ) -> usize {
        let value = Value {
            primitive,
            operands: operands.to_vec(),
            shape,
            dtype,
        };
        let known = self.values.iter().position(|known| *known == value);
        known.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}

/// Elements along some axes, a bit each.
pub(super) fn along(shape: Shape, axes: u8) -> u32 {
    let dims = shape.dims().iter().enumerate();
    dims.filter(|(axis, _)| axes >> axis & 1 == 1)
        .map(|(_, dim)| dim)
        .product()
}

/// The value that this one is a view of, or the value itself.
pub(super) fn base(values: &[Value], mut id: usize) -> usize {
    while matches!(
        values[id].primitive,
        Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape
    ) {
        id = values[id].operands[0];
    }
    id
}
