//! Explaining: calls that are never sent, their plan as text, and the kernels that they
//! need.

use super::Session;
use super::chunking::Chunker;
use super::compile_gate::Kernels;
use super::payload::{Batch, Payload};
use crate::device::Device;
use crate::kernel::Kernel;
use crate::plan::{Chunk, Plan};
use crate::tensor::Arena;

impl<D: Device> Session<D> {
    /// Begins to explain: from here on calls are planned and never sent.
    pub fn begin_explain(&mut self) {
        let payload = Payload::new(Arena::default());
        self.explained = Some(Batch::new(self.queue.open().id, payload, 0));
    }

    /// Ends explaining. Returns the kernels of the calls made since
    /// [`Session::begin_explain`], whose tickets are forgotten.
    pub fn end_kernels(&mut self) -> Kernels {
        let explained = self.explained.take();
        let calls = explained.iter().flat_map(|batch| batch.calls());
        let recipes = self.programs.recipes();
        let mut kernels: Vec<Kernel> = Vec::new();
        for call in calls {
            for kernel in recipes[call.work.planned.recipe.0 as usize].kernels() {
                if !kernels.contains(kernel) {
                    kernels.push(kernel.clone());
                }
            }
        }
        self.sweep();
        Kernels(kernels)
    }

    /// Ends explaining. Returns the plan of the calls made since [`Session::begin_explain`]
    /// as text, under the names of the devices where there is a choice. The tickets of the
    /// calls are forgotten.
    pub fn end_explain(&mut self) -> String {
        let Some(batch) = self.explained.take() else {
            return String::new();
        };
        let text = self.explain_batch(batch);
        text + &self.explain_tuning()
    }

    /// A line of what is tuned, for the end of a plan, once something is.
    pub fn explain_tuning(&self) -> String {
        match self.tuner.is_in_effect() {
            true => ["\n", &self.tuner.tuning().to_string()].concat(),
            false => String::new(),
        }
    }

    /// The plan of calls that are not sent, as text.
    fn explain_batch(&mut self, mut batch: Batch) -> String {
        let mut text = String::new();
        if self.devices.has_companion() && (self.router.is_some() || batch.payload.asks_cpu) {
            self.routed(&batch).apply(&mut batch);
            batch.move_cpu_share_to_back();
            let share = batch.behind();
            if !share.is_empty() {
                text += "on the cpu\n";
                list(
                    &self.plans_of_share(share, batch.payload.named()),
                    &mut text,
                );
            }
            if batch.ahead().is_empty() {
                return text;
            }
            let line_end = if share.is_empty() { "" } else { "\n" };
            text.extend([line_end, "on the gpu\n"]);
        }
        self.describe(batch, &mut text);
        text
    }

    /// Appends the plan of the calls that go to the primary device.
    fn describe(&self, batch: Batch, text: &mut String) {
        let chunker = Chunker {
            recipes: self.programs.recipes(),
            sharded: self.tensors.sharded(),
            sizes: self.chunk_sizes(0),
            limits: self.chunk_limits(0),
        };
        let mut rest = chunker.chunks(&batch);
        let next = || chunker.next(&batch, &mut rest);
        let plans: Vec<(Chunk, Plan)> = std::iter::from_fn(next).collect();
        list(&plans, text);
    }
}

/// Appends plans as text, each under its number if there are several.
fn list(plans: &[(Chunk, Plan)], text: &mut String) {
    for (index, (_, plan)) in plans.iter().enumerate() {
        if plans.len() > 1 {
            let line_end = if index > 0 { "\n" } else { "" };
            let (number, count) = ((index + 1).to_string(), plans.len().to_string());
            let head = [line_end, "piece ", &number, " of ", &count, "\n"];
            text.extend(head);
        }
        *text += &plan.to_string();
    }
}
