//! Calls that are never sent: their plan as text, and the kernels that they need.

use super::Session;
use super::load::Load;
use super::warmup::Kernels;
use crate::device::Device;
use crate::kernel::Kernel;
use crate::plan;
use crate::tensor::Arena;

impl<D: Device> Session<D> {
    /// From here on calls are planned and never sent.
    pub fn begin_explain(&mut self) {
        self.explained = Some(Load::new(self.open.id, Arena::default()));
    }

    /// The kernels of the calls made since [`Session::begin_explain`]. Their
    /// tickets are forgotten.
    pub fn end_kernels(&mut self) -> Kernels {
        let explained = self.explained.take();
        let calls = explained.map_or_else(Vec::new, |load| load.calls);
        let recipes = self.structures.recipes();
        let mut kernels: Vec<Kernel> = Vec::new();
        for call in &calls {
            for kernel in recipes[call.recipe.0 as usize].kernels() {
                if !kernels.contains(kernel) {
                    kernels.push(kernel.clone());
                }
            }
        }
        self.sweep();
        Kernels(kernels)
    }

    /// The plan of the calls made since [`Session::begin_explain`], as text.
    /// Their tickets are forgotten.
    pub fn end_explain(&mut self) -> String {
        let Some(Load { calls, sets, .. }) = self.explained.take() else {
            return String::new();
        };
        let recipes = self.structures.recipes();
        let pieces = plan::pieces(recipes, &calls, self.device.limits().pieces);
        let mut text = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            if pieces.len() > 1 {
                let line_end = if index > 0 { "\n" } else { "" };
                let (number, count) = ((index + 1).to_string(), pieces.len().to_string());
                let head = [line_end, "piece ", &number, " of ", &count, "\n"];
                text.extend(head);
            }
            text += &plan::assemble(recipes, &calls, &sets, piece).to_string();
        }
        text
    }
}
