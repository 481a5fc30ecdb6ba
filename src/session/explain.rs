//! Plans of calls that are never sent, as text.

use super::Session;
use super::load::Load;
use crate::device::Device;
use crate::plan;
use crate::tensor::Arena;

impl<D: Device> Session<D> {
    /// From here on calls are planned and never sent.
    pub fn begin_explain(&mut self) {
        self.explained = Some(Load::new(self.open.id, Arena::default()));
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
