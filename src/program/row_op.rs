//! Row ops: a named kernel computes each row of a call by itself.
//!
//! A row op has no lengths and no values, so that all calls of one op share a row op. Which
//! ops there are is said in `ops`.

use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::{Access, Body, BufferId, Load, Named, Program, Settings, Source, Stage, Target};
use crate::tensor::{DType, Format};

/// Operands of an op, of the op with the most: four control points and a t for each row.
const MOST_OPERANDS: usize = 5;

/// The structure of calls of an op. Calls of equal row ops merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOp {
    /// The kernel, chosen by op and inner sizes alone and never by how many rows were merged,
    /// so that merged neighbors cannot change a call's result.
    pub kernel: Named,
    /// What the kernel is told besides its operands.
    pub settings: Settings,
    /// Formats of the operands' rows, in order.
    pub operands: Formats,
    /// Format of the call's scalar, if calls have one.
    pub scalar: Option<Format>,
    /// Format of the result's rows.
    pub result: Format,
}

/// The formats of an op's operands. They lie in place, so that a call allocates nothing to say
/// what its op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    formats: [Format; MOST_OPERANDS],
    count: usize,
}

impl Formats {
    /// One operand more.
    pub(crate) fn push(&mut self, format: Format) {
        self.formats[self.count] = format;
        self.count += 1;
    }
}

impl From<&[Format]> for Formats {
    fn from(formats: &[Format]) -> Self {
        let absent = Format {
            dtype: DType::F32,
            width: 0,
        };
        let mut list = Formats {
            formats: [absent; MOST_OPERANDS],
            count: 0,
        };
        formats.iter().for_each(|format| list.push(*format));
        list
    }
}

impl Deref for Formats {
    type Target = [Format];

    fn deref(&self) -> &[Format] {
        &self.formats[..self.count]
    }
}

/// Hashes the kernel and its settings, which the formats follow from: each call of the native
/// face is looked up by its op.
impl Hash for RowOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
        self.settings.hash(state);
    }
}

impl RowOp {
    /// The program, which has one stage.
    pub fn program(&self) -> Program {
        let operands = (0..).zip(self.operands.iter());
        let operands = operands.map(|(operand, _)| Source::Input(operand));
        let scalar = self.scalar.map(|_| Source::Scalar);
        let loads = (0..).zip(operands.chain(scalar));
        let loads = loads.map(|(binding, source)| Load {
            source,
            binding,
            access: Access::Flat,
            packing: None,
        });
        Program::of(Stage {
            body: Body::Named(self.kernel.clone(), self.settings),
            loads: loads.collect(),
            scalars: Vec::new(),
            target: Target::Buffer(BufferId(0)),
        })
    }
}
