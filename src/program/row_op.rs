//! Row ops: a named kernel computes each row of a call by itself.
//!
//! A row op has no lengths and no values, so that all calls of one op share a row op. Which
//! ops there are is said in `ops`.

use super::{Access, Body, BufferId, Load, Named, Program, Settings, Source, Stage, Target};
use crate::tensor::Format;

/// The structure of calls of an op. Calls of equal row ops merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowOp {
    /// The kernel, chosen by op and inner sizes alone and never by how many rows were merged,
    /// so that merged neighbors cannot change a call's result.
    pub kernel: Named,
    /// What the kernel is told besides its operands.
    pub settings: Settings,
    /// Formats of the operands' rows, in order.
    pub operands: Vec<Format>,
    /// Format of the call's scalar, if calls have one.
    pub scalar: Option<Format>,
    /// Format of the result's rows.
    pub result: Format,
}

impl RowOp {
    /// The program, which has one stage.
    pub fn program(&self) -> Program {
        let operands = (0..).zip(&self.operands);
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
