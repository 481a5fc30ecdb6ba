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
        if let [_, _, ..] = kernel.results() {
            return Err(Error::InvalidInput(format!(
                "{}: it gives several results ({}); call `apply_fields`",
                kernel.name(),
                kernel.results().join(", ")
            )));
        }
        Ok(self.apply_fields(kernel, values, params)?[0])
    }

    /// The same for a kernel that gives a struct: a value for each of its fields, in order.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// use framebatch::KernelDefinition;
    ///
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let polar = KernelDefinition::new(
    ///     "polar",
    ///     "struct Polar { radius: f32, angle: f32 }
    ///     fn element(p: vec2f) -> Polar { return Polar(length(p), atan2(p.y, p.x)); }",
    /// )
    /// .cpu_into(|p, _, to| to.copy_from_slice(&[p[0].hypot(p[1]), p[1].atan2(p[0])]))
    /// .build()?;
    ///
    /// let mut batch = gpu.batch();
    /// let points = batch.upload_shaped(&[3.0, 4.0, 2.0, 0.0], &[2, 2])?;
    /// let fields = batch.apply_fields(&polar, &[points], &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(fields[0])?, [5.0, 2.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::apply`].
    pub fn apply_fields(
        &mut self,
        kernel: &Kernel,
        values: &[Value],
        params: &[Number],
    ) -> Result<Vec<Value>, Error> {
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
        let results = kernel.functions().iter().map(|function| {
            let node = (self.chain).apply(Op::Call(function.clone()), &nodes)?;
            Ok(self.operation(node, &nodes))
        });
        results.collect()
    }
}
