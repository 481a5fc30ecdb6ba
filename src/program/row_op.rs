//! Ops: one named kernel at work on rows, each of which is computed by itself.
//!
//! Free of lengths and values, so that all calls of one op share one. Which ops there
//! are is said in `ops`.

use super::{Access, Body, BufferId, Load, Named, Program, Settings, Source, Stage, Target};
use crate::tensor::Format;

/// The structure of calls of an op. Calls of equal ones merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowOp {
    /// What computes it: chosen by op and inner sizes alone, never by how many rows
    /// were merged, so that neighbors cannot change a call's result.
    pub kernel: Named,
    /// What that is told.
    pub settings: Settings,
    /// Formats of the operands' rows, in order.
    pub operands: Vec<Format>,
    /// Format of the call's scalar behind them, if it has one.
    pub scalar: Option<Format>,
    /// Format of the result's rows.
    pub result: Format,
}

impl RowOp {
    /// Its only stage.
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
