//! The program cache: the recipes in use by number, what each was lowered from, and who
//! holds each.
//!
//! The cache knows no more of a structure than whether it equals another: a new kind of
//! structure changes nothing here.
//! When to give a structure up is the holder's business.

use std::any::Any;

use crate::plan::{Recipe, RecipeId, Structure};

/// The recipes of a session.
#[derive(Debug, Default)]
pub(super) struct ProgramCache {
    recipes: Vec<Recipe>,
    /// One for each recipe, in the same order. There are few, so a search is cheap; a
    /// face asks once a structure.
    entries: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    /// What the recipe was lowered from; `None` where the number is free.
    structure: Option<Box<dyn Any + Send>>,
    holders: u32,
    /// What the last call took: the next one often is as large.
    last: Footprint,
}

/// What a call of so many rows takes: words of operands, and bytes of operands and
/// results. Of no rows where no call of the structure fitted the device yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    pub(super) rows: u32,
    pub(super) words: u32,
    pub(super) bytes: u64,
}

impl ProgramCache {
    /// The recipes by number, with empty ones for the numbers that are free.
    pub(super) fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    /// The recipe of a number that somebody holds.
    pub(super) fn get(&self, id: RecipeId) -> Option<&Recipe> {
        let at = id.0 as usize;
        let entry = self.entries.get(at).filter(|entry| entry.holders > 0);
        entry.map(|_| &self.recipes[at])
    }

    /// What the last call of a structure took.
    pub(super) fn footprint_mut(&mut self, id: RecipeId) -> &mut Footprint {
        &mut self.entries[id.0 as usize].last
    }

    /// Forgets what calls took: another device has other limits.
    pub(super) fn forget_footprints(&mut self) {
        for entry in &mut self.entries {
            entry.last = Footprint::default();
        }
    }

    /// The number of a structure that is known, held once more.
    pub(super) fn hold<S: Structure>(&mut self, structure: &S) -> Option<RecipeId> {
        let is_same = |entry: &Entry| {
            let known = entry.structure.as_deref();
            known.and_then(|known| known.downcast_ref()) == Some(structure)
        };
        let at = self.entries.iter().position(is_same)?;
        self.entries[at].holders += 1;
        Some(number(at))
    }

    /// A number for a structure that is not known yet, held once: the lowest that is free.
    pub(super) fn add(&mut self, structure: Box<dyn Any + Send>, recipe: Recipe) -> RecipeId {
        let is_free = |entry: &Entry| entry.structure.is_none();
        let at = self.entries.iter().position(is_free).unwrap_or_else(|| {
            self.recipes.push(Recipe::default());
            self.entries.push(Entry::default());
            self.entries.len() - 1
        });
        self.recipes[at] = recipe;
        self.entries[at] = Entry {
            structure: Some(structure),
            holders: 1,
            last: Footprint::default(),
        };
        number(at)
    }

    /// One holder less.
    pub(super) fn release(&mut self, id: RecipeId) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.holders = entry.holders.saturating_sub(1);
        }
    }

    /// Whether a structure that nobody holds is still there.
    pub(super) fn has_abandoned(&self) -> bool {
        self.entries.iter().any(Entry::is_abandoned)
    }

    /// Frees the numbers that nobody holds and no pending call names.
    pub(super) fn sweep(&mut self, pending: impl Iterator<Item = RecipeId>) {
        let mut is_used = vec![false; self.entries.len()];
        for recipe in pending {
            is_used[recipe.0 as usize] = true;
        }
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if entry.is_abandoned() && !is_used[at] {
                entry.structure = None;
                self.recipes[at] = Recipe::default();
            }
        }
    }
}

impl Entry {
    fn is_abandoned(&self) -> bool {
        self.holders == 0 && self.structure.is_some()
    }
}

fn number(index: usize) -> RecipeId {
    RecipeId(u32::try_from(index).expect("fewer than 2^32 structures"))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/program_cache.rs"]
mod tests;
