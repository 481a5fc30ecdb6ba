//! Calls that are never sent: their plan as text, and the kernels that they need.

use super::Session;
use super::divide::Groups;
use super::load::Load;
use super::warmup::Kernels;
use crate::device::{Device, Engine};
use crate::kernel::Kernel;
use crate::plan::{Piece, Plan};
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

    /// The plan of the calls made since [`Session::begin_explain`], as text,
    /// each part under the name of its device where there is a choice. Their
    /// tickets are forgotten.
    pub fn end_explain(&mut self) -> String {
        let Some(mut load) = self.explained.take() else {
            return String::new();
        };
        let mut text = String::new();
        if self.beside.is_some() && (self.router.is_some() || load.asks(Engine::Cpu)) {
            let Groups { groups, of } = self.routed(&load);
            let engines: Vec<Engine> = of.iter().map(|group| groups[*group].engine).collect();
            load.engines = engines;
            load.part();
            let aside = &load.aside.calls;
            if !aside.is_empty() {
                text += "on the cpu\n";
                list(&self.plans_aside(aside, &load.sets), &mut text);
            }
            if load.calls.is_empty() {
                return text;
            }
            let line_end = if aside.is_empty() { "" } else { "\n" };
            text.extend([line_end, "on the gpu\n"]);
        }
        self.describe(load, &mut text);
        text
    }

    /// The plan of the device's calls.
    fn describe(&self, mut load: Load, text: &mut String) {
        let limits = self.piece_limits(0);
        let mut rest = self.pieces(&load);
        let next = || self.next_piece(&mut load, &mut rest, &limits);
        let plans: Vec<(Piece, Plan)> = std::iter::from_fn(next).collect();
        list(&plans, text);
    }
}

/// Plans as text, each under its number where there are some.
fn list(plans: &[(Piece, Plan)], text: &mut String) {
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
