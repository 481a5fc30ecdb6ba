//! What it takes to compute a value again, which decides whether one that several
//! stages use is kept.

use super::lower::{Lowered, Primitive};

/// What a function that is not simple counts for.
const COSTLY: u32 = 8;

/// What it takes to compute a value from tensors.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) work: u32,
    pub(super) tensors: u32,
    /// The tensor, where it is one.
    pub(super) tensor: usize,
}

/// Of each value.
pub(super) fn costs(lowered: &Lowered) -> Vec<Cost> {
    let mut costs: Vec<Cost> = Vec::with_capacity(lowered.values.len());
    for (id, value) in lowered.values.iter().enumerate() {
        let own = match value.primitive {
            Primitive::Unary(function) if function.is_cheap() => 1,
            Primitive::Binary(function) if function.is_cheap() => 1,
            Primitive::Unary(_) | Primitive::Binary(_) => COSTLY,
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => 0,
            Primitive::Constant(_) | Primitive::Count(_) => {
                costs.push(Cost {
                    work: 0,
                    tensors: 0,
                    tensor: id,
                });
                continue;
            }
            _ => {
                costs.push(Cost {
                    work: 0,
                    tensors: 1,
                    tensor: id,
                });
                continue;
            }
        };
        let mut cost = Cost {
            work: own,
            tensors: 0,
            tensor: id,
        };
        for operand in &value.operands {
            let of = costs[*operand];
            cost.work = cost.work.saturating_add(of.work);
            if of.tensors > 0 && !(cost.tensors == 1 && cost.tensor == of.tensor) {
                cost.tensors = cost.tensors.saturating_add(of.tensors);
                cost.tensor = of.tensor;
            }
        }
        costs.push(cost);
    }
    costs
}
