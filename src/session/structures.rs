//! The structures that faces ask for: each has a number, and goes when nobody needs it.
//!
//! How a structure is lowered is the planner's business. The recipes are in
//! `program_cache`.

use std::any::Any;

use super::Session;
use crate::device::Device;
use crate::plan::{Recipe, RecipeId, Structure};

impl<D: Device> Session<D> {
    /// The number of a structure; equal structures have one number, and their calls merge.
    /// The number is good until [`Session::forget`] was told of it as often as it was asked
    /// for.
    pub fn recipe<S: Structure>(&mut self, structure: S) -> RecipeId {
        if let Some(id) = self.programs.hold(&structure) {
            return id;
        }
        let recipe = structure.lower(self.programs.recipes());
        self.learn(Box::new(structure), recipe)
    }

    fn learn(&mut self, structure: Box<dyn Any + Send>, recipe: Recipe) -> RecipeId {
        let id = self.programs.add(structure, recipe);
        if let Some(router) = &mut self.router {
            router.forget(id); // The number may have been another structure's.
        }
        id
    }

    /// Gives up structures that were asked for. Calls that were made before are still
    /// computed.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = RecipeId>) {
        for id in ids {
            self.programs.release(id);
        }
        self.sweep();
    }

    /// Frees the structures that neither a holder nor a call needs any more.
    pub(super) fn sweep(&mut self) {
        if !self.programs.has_abandoned() {
            return;
        }
        let batches = self.queue.batches().chain(&self.explained);
        let calls = batches.flat_map(|batch| batch.calls());
        self.programs
            .sweep(calls.map(|call| call.work.planned.recipe));
    }
}
