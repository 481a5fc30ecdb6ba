//! What was asked so far, by number, and how each is computed.
//!
//! Those who ask for a number hold it, as often as they ask. What nobody holds
//! goes as soon as no call of it is pending, and its number is given again.
//! When to give one up is the holder's business.

use super::Session;
use crate::device::Device;
use crate::graph::chain::Chain;
use crate::graph::sampling::Sampling;
use crate::graph::searching::Searching;
use crate::plan::{Recipe, RecipeId};
use crate::program::RowOp;

impl<D: Device> Session<D> {
    /// The number of an op; equal ones have one number and merge. It
    /// is good until [`Session::forget`] was told of it as often as it was
    /// asked for.
    pub fn recipe(&mut self, op: &RowOp) -> RecipeId {
        let same = |known: &Structure| matches!(known, Structure::Op(known) if known == op);
        if let Some(id) = self.structures.hold(same) {
            return id;
        }
        self.learn(Structure::Op(op.clone()), Recipe::new(op))
    }

    /// The number of a chain, as good as that of an op. Calls of one program
    /// merge whatever their shapes.
    ///
    /// Such a call's operands are the chain's inputs of [`Home::Call`], then
    /// its constants, then the numbers of the tensors that its other inputs
    /// are, each part from the next multiple of 16 bytes on.
    ///
    /// [`Home::Call`]: crate::graph::chain::Home::Call
    pub fn chain(&mut self, chain: Chain) -> RecipeId {
        let same = |known: &Structure| matches!(known, Structure::Chain(known) if *known == chain);
        if let Some(id) = self.structures.hold(same) {
            return id;
        }
        let recipe = Recipe::fuse(&chain, self.structures.recipes());
        self.learn(Structure::Chain(chain), recipe)
    }

    fn learn(&mut self, structure: Structure, recipe: Recipe) -> RecipeId {
        let id = self.structures.learn(structure, recipe);
        if let Some(router) = &mut self.router {
            router.forget(id); // What it knew was of the number's last structure.
        }
        id
    }

    /// The number of a sampling of clips, as good as that of an op. Calls
    /// merge whatever they sample.
    ///
    /// Such a call's operands are its rows, its header, the number of the store
    /// and that of its target, if it has one.
    pub fn sampling(&mut self, sampling: Sampling) -> RecipeId {
        let wanted = Structure::Sampling(sampling);
        if let Some(id) = self.structures.hold(|known| *known == wanted) {
            return id;
        }
        let recipe = Recipe::sample(&sampling, self.structures.recipes());
        self.learn(wanted, recipe)
    }

    /// The number of a search of an index, as good as that of an op. Calls of one
    /// index are computed together.
    ///
    /// Such a call's operands are its queries, its mask and the numbers of the
    /// pages.
    pub fn searching(&mut self, searching: Searching) -> RecipeId {
        let wanted = Structure::Searching(searching);
        if let Some(id) = self.structures.hold(|known| *known == wanted) {
            return id;
        }
        self.learn(wanted, Recipe::search(&searching))
    }

    /// Gives up structures that were asked for. Calls that were made before are
    /// still computed.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = RecipeId>) {
        for id in ids {
            self.structures.release(id);
        }
        self.sweep();
    }

    /// A structure's recipe.
    pub fn recipe_of(&self, id: RecipeId) -> Option<&Recipe> {
        self.structures.get(id)
    }

    /// Frees the structures that neither a holder nor a call needs any more.
    pub(super) fn sweep(&mut self) {
        if !self.structures.has_abandoned() {
            return;
        }
        let batches = self.queue.batches().chain(&self.explained);
        let calls = batches.flat_map(|batch| batch.calls());
        self.structures
            .sweep(calls.map(|call| call.work.planned.recipe));
    }
}

/// What was asked, without lengths or with them.
#[derive(Debug, PartialEq)]
pub(super) enum Structure {
    Op(RowOp),
    Chain(Chain),
    Sampling(Sampling),
    Searching(Searching),
    /// Nothing: the number is free.
    Gone,
}

/// The structures of a session.
#[derive(Debug, Default)]
pub(super) struct Structures {
    recipes: Vec<Recipe>,
    /// What the recipes are of, in the same order. Few, so a search is cheap; a
    /// face asks once a structure.
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    structure: Structure,
    holders: u32,
    /// Of its last call: the next one often is as large.
    taken: Taken,
}

/// What a call of so many rows takes: words of operands, and bytes of operands and
/// results. Of no rows where no call of the structure fitted the device yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) rows: u32,
    pub(super) words: u32,
    pub(super) bytes: u64,
}

impl Structures {
    /// The recipes by number, those of free numbers too.
    pub(super) fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    /// The recipe of a number that somebody holds.
    pub(super) fn get(&self, id: RecipeId) -> Option<&Recipe> {
        let at = id.0 as usize;
        let known = self.known.get(at).filter(|known| known.holders > 0);
        known.map(|_| &self.recipes[at])
    }

    /// What the last call of a structure took.
    pub(super) fn taken(&mut self, id: RecipeId) -> &mut Taken {
        &mut self.known[id.0 as usize].taken
    }

    /// Forgets what calls took: another device has other limits.
    pub(super) fn forget_taken(&mut self) {
        for known in &mut self.known {
            known.taken = Taken::default();
        }
    }

    /// The number of a structure that is known, held once more.
    pub(super) fn hold(&mut self, same: impl Fn(&Structure) -> bool) -> Option<RecipeId> {
        let mut known = self.known.iter();
        let at = known.position(|known| same(&known.structure))?;
        self.known[at].holders += 1;
        Some(number(at))
    }

    /// A number for a new structure, held once.
    pub(super) fn learn(&mut self, structure: Structure, recipe: Recipe) -> RecipeId {
        let free = |known: &Known| known.structure == Structure::Gone;
        let at = self.known.iter().position(free).unwrap_or_else(|| {
            self.recipes.push(Recipe::default());
            self.known.push(Known {
                structure: Structure::Gone,
                holders: 0,
                taken: Taken::default(),
            });
            self.known.len() - 1
        });
        self.recipes[at] = recipe;
        self.known[at] = Known {
            structure,
            holders: 1,
            taken: Taken::default(),
        };
        number(at)
    }

    /// One holder less.
    pub(super) fn release(&mut self, id: RecipeId) {
        if let Some(known) = self.known.get_mut(id.0 as usize) {
            known.holders = known.holders.saturating_sub(1);
        }
    }

    /// Whether a structure that nobody holds is still there.
    pub(super) fn has_abandoned(&self) -> bool {
        self.known.iter().any(Known::is_abandoned)
    }

    /// Frees what nobody holds and no pending call is of.
    pub(super) fn sweep(&mut self, pending: impl Iterator<Item = RecipeId>) {
        let mut is_used = vec![false; self.known.len()];
        for recipe in pending {
            is_used[recipe.0 as usize] = true;
        }
        for (at, known) in self.known.iter_mut().enumerate() {
            if known.is_abandoned() && !is_used[at] {
                known.structure = Structure::Gone;
                self.recipes[at] = Recipe::default();
            }
        }
    }
}

impl Known {
    fn is_abandoned(&self) -> bool {
        self.holders == 0 && self.structure != Structure::Gone
    }
}

fn number(index: usize) -> RecipeId {
    RecipeId(u32::try_from(index).expect("fewer than 2^32 structures"))
}
