//! What it takes to compute a value again, which decides whether a value that several stages
//! use is kept in memory.
//!
//! Counts of simple operations; the cost model of devices is another matter.

use super::lower::{Lowered, Primitive};

/// How many simple operations any other function counts for.
const COSTLY: u32 = 8;

/// What it takes to compute a value from tensors in memory.
#[derive(Clone, Copy)]
pub(super) struct Recomputation {
    /// Simple operations.
    pub(super) work: u32,
    /// Tensors that are read.
    pub(super) tensors: u32,
    /// The value that is read, if only one is.
    tensor: usize,
}

/// For each value what it takes to compute that value again.
pub(super) fn recomputations(lowered: &Lowered) -> Vec<Recomputation> {
    let mut all: Vec<Recomputation> = Vec::with_capacity(lowered.values.len());
    for (id, value) in lowered.values.iter().enumerate() {
        let work = match value.primitive {
            Primitive::Unary(function) if function.is_cheap() => 1,
            Primitive::Binary(function) if function.is_cheap() => 1,
            Primitive::Where => 1,
            Primitive::Unary(_) | Primitive::Binary(_) | Primitive::Call(_) => COSTLY,
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => 0,
            _ => {
                let is_number = matches!(
                    value.primitive,
                    Primitive::Constant(_) | Primitive::Count(_)
                );
                all.push(Recomputation {
                    work: 0,
                    tensors: u32::from(!is_number),
                    tensor: id,
                });
                continue;
            }
        };
        let mut own = Recomputation {
            work,
            tensors: 0,
            tensor: id,
        };
        for operand in &value.operands {
            let of = all[*operand];
            own.work = own.work.saturating_add(of.work);
            if of.tensors > 0 && !(own.tensors == 1 && own.tensor == of.tensor) {
                own.tensors = own.tensors.saturating_add(of.tensors);
                own.tensor = of.tensor;
            }
        }
        all.push(own);
    }
    all
}
