//! What a chain should give, in float64, and how far off a float may be.
//!
//! Written from the definitions, with the errors that `kernel::generated`
//! states for each op carried along: a value is a number and a bound. Where
//! nothing can be said, as beside a pole, the bound is infinite.

use framebatch::graph::BinaryFn;
use framebatch::graph::chain::{Chain, Node, Norm, Op, Reduction};
use framebatch::graph::shape::Shape;

use crate::attention::expected;
use crate::bounded::{Q, U};

/// One tensor.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) shape: Shape,
    pub(crate) values: Vec<Q>,
}

/// What sums of so many values may be off, relative to their absolute sum; up to
/// `narrow` they are summed one by one.
fn sum_error(count: usize, narrow: usize) -> f64 {
    match count {
        _ if count <= narrow => count as f64 * U,
        ..=4096 => (count as f64 / 64.0 + 8.0) * U,
        _ => 72.0 * U + sum_error(count.div_ceil(4096), 32),
    }
}

/// How many values are summed one by one: more where the last axis is not among
/// those that they lie along.
fn narrow(axes: u8, rank: usize) -> usize {
    let has_last = rank > 0 && axes >> (rank - 1) & 1 == 1;
    if has_last { 32 } else { 512 }
}

fn sum(values: &[Q], narrow: usize) -> Q {
    let v = values.iter().map(|q| q.v).sum::<f64>();
    let e = values.iter().map(|q| q.e).sum::<f64>();
    let size = values.iter().map(|q| q.v.abs()).sum::<f64>();
    Q::new(v, e, sum_error(values.len(), narrow) * (size + e))
}

fn mean(values: &[Q], narrow: usize) -> Q {
    sum(values, narrow).div(Q::exact(values.len() as f64))
}

pub(crate) fn largest(values: &[Q], sign: f64) -> Q {
    let v = values
        .iter()
        .map(|q| q.v * sign)
        .fold(f64::NEG_INFINITY, f64::max);
    let e = values.iter().map(|q| q.e).fold(0.0, f64::max);
    Q::new(v * sign, e, 0.0)
}

fn argmax(values: &[Q]) -> Q {
    let best = (0..values.len()).fold(0, |best, i| {
        if values[i].v > values[best].v {
            i
        } else {
            best
        }
    });
    let at = values[best];
    let rivals = values.iter().enumerate().any(|(i, q)| {
        // What nothing is known of may be NaN, whose place comes first.
        let is_known = q.e.is_finite() && at.e.is_finite();
        let near = !is_known || q.v + q.e >= at.v - at.e;
        i != best && near && !(q.e == 0.0 && at.e == 0.0)
    });
    Q {
        v: best as f64,
        e: if rivals { f64::INFINITY } else { 0.0 },
    }
}

fn norm(norm: Norm, row: &[Q], narrow: usize, epsilon: Q) -> Vec<Q> {
    let sum = |row: &[Q]| sum(row, narrow);
    let mean = |row: &[Q]| mean(row, narrow);
    let scale = |row: &[Q], by: Q| row.iter().map(|q| q.div(by)).collect::<Vec<_>>();
    let squares = |row: &[Q]| row.iter().map(|q| q.mul(*q)).collect::<Vec<_>>();
    match norm {
        Norm::Softmax => {
            let most = largest(row, 1.0);
            let powers: Vec<Q> = row.iter().map(|q| q.add(most.neg()).exp()).collect();
            scale(&powers, sum(&powers))
        }
        Norm::Layer => {
            let middle = mean(row);
            let centered: Vec<Q> = row.iter().map(|q| q.add(middle.neg())).collect();
            scale(&centered, mean(&squares(&centered)).add(epsilon).sqrt())
        }
        Norm::Rms => scale(row, mean(&squares(row)).add(epsilon).sqrt()),
        Norm::Normalize => {
            let length = sum(&squares(row)).sqrt();
            scale(row, length.binary(BinaryFn::Maximum, epsilon))
        }
    }
}

impl Tensor {
    pub(crate) fn of(shape: Shape, values: impl Iterator<Item = f64>) -> Tensor {
        let values: Vec<Q> = values.map(Q::exact).collect();
        assert_eq!(values.len(), shape.count() as usize);
        Tensor { shape, values }
    }

    /// The element that stands at a place of a shape that this one broadcasts
    /// to.
    pub(crate) fn broadcast(&self, place: &[usize]) -> Q {
        let skipped = place.len() - self.shape.rank();
        let own = place[skipped..].iter().zip(self.shape.dims());
        let own: Vec<usize> = own
            .map(|(at, dim)| if *dim == 1 { 0 } else { *at })
            .collect();
        self.at(&own)
    }

    fn at(&self, place: &[usize]) -> Q {
        let pairs = place.iter().zip(self.shape.dims());
        self.values[pairs.fold(0, |index, (at, dim)| index * *dim as usize + at)]
    }
}

/// The places of a shape, in order.
pub(crate) fn places(shape: Shape) -> Vec<Vec<usize>> {
    let mut places = vec![Vec::new()];
    for dim in shape.dims() {
        places = places
            .into_iter()
            .flat_map(|place| (0..*dim as usize).map(move |at| [place.clone(), vec![at]].concat()))
            .collect();
    }
    places
}

/// All values of a chain's results.
pub(crate) fn evaluate(chain: &Chain, inputs: &[Tensor], constants: &[f32]) -> Vec<Tensor> {
    let mut known: Vec<Tensor> = Vec::new();
    for node in chain.nodes() {
        let of = |place: usize| &known[node.operands[place].index()];
        let each = |value: &dyn Fn(&[usize]) -> Q| -> Vec<Q> {
            places(node.shape)
                .iter()
                .map(|place| value(place))
                .collect()
        };
        let values = match &node.op {
            Op::Input { index, .. } => inputs[*index as usize].values.clone(),
            Op::Constant { index } => vec![Q::exact(f64::from(constants[*index as usize]))],
            Op::Unary(function) => each(&|place| of(0).at(place).unary(*function)),
            Op::Binary(function) => each(&|place| {
                of(0)
                    .broadcast(place)
                    .binary(*function, of(1).broadcast(place))
            }),
            Op::Where => each(&|place| {
                let [a, b] = [1, 2].map(|operand| of(operand).broadcast(place));
                of(0).broadcast(place).choose(a, b)
            }),
            Op::Clamp => each(&|place| {
                let raised = of(0)
                    .at(place)
                    .binary(BinaryFn::Maximum, of(1).broadcast(place));
                raised.binary(BinaryFn::Minimum, of(2).broadcast(place))
            }),
            Op::Attention(heads) => {
                let bias = (node.operands.len() > 4).then(|| of(4));
                expected(*heads, node, [of(0), of(1), of(2), of(3)], bias)
            }
            Op::Dot | Op::Matmul(_) | Op::Reduce { .. } | Op::Norm { .. } => folded(node, &known),
            _ => moved(node, &known),
        };
        known.push(Tensor {
            shape: node.shape,
            values,
        });
    }
    let outputs = chain.outputs().iter();
    outputs.map(|id| known[id.index()].clone()).collect()
}

/// One element of a product of matrices, summed from the first product to the last.
fn product(a: &Tensor, b: &Tensor, place: &[usize]) -> Q {
    // A vector has no axis of its own in the result.
    let (rest, column) = place.split_at(place.len() - usize::from(b.shape.rank() > 1));
    let (stack, row) = rest.split_at(rest.len() - usize::from(a.shape.rank() > 1));
    let count = a.shape.dims()[a.shape.rank() - 1] as usize;
    let products: Vec<Q> = (0..count)
        .map(|k| {
            let left = a.broadcast(&[stack, row, &[k]].concat());
            left.mul(b.broadcast(&[stack, &[k], column].concat()))
        })
        .collect();
    self::products(&products)
}

/// A sum of products, from the first to the last.
pub(crate) fn products(products: &[Q]) -> Q {
    let total = sum(products, 32);
    let size = products.iter().map(|q| q.v.abs() + q.e).sum::<f64>();
    Q::new(total.v, total.e, products.len() as f64 * U * size)
}

/// Ops that make one value of many, or of each with many.
fn folded(node: &Node, known: &[Tensor]) -> Vec<Q> {
    let of = |place: usize| &known[node.operands[place].index()];
    let each = |value: &dyn Fn(&[usize]) -> Q| -> Vec<Q> {
        places(node.shape)
            .iter()
            .map(|place| value(place))
            .collect()
    };
    match &node.op {
        Op::Dot => {
            let whole = of(0).shape.broadcast(of(1).shape, "dot").unwrap();
            let count = whole.dims()[whole.rank() - 1] as usize;
            each(&|place| {
                let product = |k: usize| {
                    let place = [place, &[k]].concat();
                    of(0).broadcast(&place).mul(of(1).broadcast(&place))
                };
                sum(&(0..count).map(product).collect::<Vec<_>>(), 32)
            })
        }
        Op::Matmul(_) => each(&|place| product(of(0), of(1), place)),
        Op::Reduce { reduction, over } => {
            let whole = places(of(0).shape);
            let narrow = narrow(over.axes, of(0).shape.rank());
            let result = |place: &[usize]| -> Vec<usize> {
                let kept = place.iter().enumerate().filter_map(|(axis, at)| {
                    match (over.has(axis), over.keep) {
                        (false, _) => Some(*at),
                        (true, true) => Some(0),
                        (true, false) => None,
                    }
                });
                kept.collect()
            };
            each(&|place| {
                let row: Vec<Q> = (whole.iter())
                    .filter(|from| result(from) == place)
                    .map(|from| of(0).at(from))
                    .collect();
                match reduction {
                    Reduction::Sum => sum(&row, narrow),
                    Reduction::Mean => mean(&row, narrow),
                    Reduction::Max => largest(&row, 1.0),
                    Reduction::Min => largest(&row, -1.0),
                    Reduction::Argmax => argmax(&row),
                }
            })
        }
        Op::Norm { norm: which, axis } => {
            let axis = usize::from(*axis);
            let narrow = narrow(1 << axis, node.shape.rank());
            let epsilon = node
                .operands
                .get(1)
                .map_or(Q::exact(0.0), |_| of(1).values[0]);
            let mut known: Vec<(Vec<usize>, Vec<Q>)> = Vec::new();
            for start in places(node.shape).iter().filter(|place| place[axis] == 0) {
                let along = |k: usize| {
                    let mut place = start.clone();
                    place[axis] = k;
                    of(0).at(&place)
                };
                let row: Vec<Q> = (0..node.shape.dims()[axis] as usize).map(along).collect();
                known.push((start.clone(), norm(*which, &row, narrow, epsilon)));
            }
            each(&|place| {
                let mut start = place.to_vec();
                start[axis] = 0;
                let row = known.iter().find(|(known, _)| *known == start);
                row.expect("every place is in a row").1[place[axis]]
            })
        }
        _ => unreachable!("another function's op"),
    }
}

/// Ops that move elements.
fn moved(node: &Node, known: &[Tensor]) -> Vec<Q> {
    let of = |place: usize| &known[node.operands[place].index()];
    let each = |value: &dyn Fn(&[usize]) -> Q| -> Vec<Q> {
        places(node.shape)
            .iter()
            .map(|place| value(place))
            .collect()
    };
    match &node.op {
        Op::Transpose { order } => each(&|place| {
            let mut from = place.to_vec();
            for (axis, at) in place.iter().enumerate() {
                from[usize::from(order[axis])] = *at;
            }
            of(0).at(&from)
        }),
        Op::Slice { ranges } => each(&|place| {
            let from = place.iter().zip(ranges).map(|(at, range)| {
                (i64::from(range.start) + *at as i64 * i64::from(range.step)) as usize
            });
            of(0).at(&from.collect::<Vec<_>>())
        }),
        Op::Reshape { .. } => of(0).values.clone(),
        Op::Gather { axis } => {
            let axis = usize::from(*axis);
            let rank = of(1).shape.rank();
            each(&|place| {
                let index = of(1).at(&place[axis..axis + rank]);
                let limit = of(0).shape.dims()[axis] as usize;
                if index.e > 0.0 || index.v as usize >= limit {
                    return Q {
                        v: f64::NAN,
                        e: f64::INFINITY,
                    };
                }
                let from = [&place[..axis], &[index.v as usize], &place[axis + rank..]];
                of(0).at(&from.concat())
            })
        }
        Op::Concat { axis } => {
            let axis = usize::from(*axis);
            each(&|place| {
                let mut place = place.to_vec();
                for operand in &node.operands {
                    let part = &known[operand.index()];
                    let length = part.shape.dims()[axis] as usize;
                    if place[axis] < length {
                        return part.at(&place);
                    }
                    place[axis] -= length;
                }
                unreachable!("a place lies in one of the parts")
            })
        }
        _ => unreachable!("another function's op"),
    }
}
