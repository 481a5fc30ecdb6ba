//! How a batch records kernels of the program's own.

use super::{Batch, Value};
use crate::error::Error;
use crate::graph::chain::Op;
use crate::native::kernels::{Kernel, Number};

impl<G> Batch<'_, G> {
    /// Applies a kernel of the program's own to elements that broadcasting brings together.
    /// [`KernelDefinition`](crate::KernelDefinition) makes one, and has an example. What is
    /// element by element before and behind is computed in the same pass.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for another number of values or params than the kernel takes, for
    /// params of other types, shapes that do not broadcast, and indexes; otherwise the errors of
    /// [`Batch::relu`]. Out of the execution come [`Error::Shader`] with what a compiler says of
    /// the kernel's code, and [`Error::NoCpuFunction`] where a kernel without a function for the
    /// CPU is computed there.
    pub fn apply(
        &mut self,
        kernel: &Kernel,
        values: &[Value],
        params: &[Number],
    ) -> Result<Value, Error> {
        let name = kernel.name();
        let operands = values.iter().map(|value| self.operand(name, *value));
        let mut nodes = operands.collect::<Result<Vec<_>, Error>>()?;
        if nodes.len() != kernel.inputs().len() {
            return Err(Error::InvalidInput(format!(
                "{name} takes {} values ({}), not {}",
                kernel.inputs().len(),
                kernel.inputs().join(", "),
                nodes.len()
            )));
        }
        for number in kernel.params(params)? {
            nodes.push(self.constant(number)?);
        }
        let node = (self.chain).apply(Op::Call(kernel.function().clone()), &nodes)?;
        Ok(self.operation(node, &nodes))
    }
}
