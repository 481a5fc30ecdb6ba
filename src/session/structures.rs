//! What was asked so far, by number, and how each is computed.
//!
//! Those who ask for a number hold it, as often as they ask. What nobody holds
//! goes as soon as no call of it is pending, and its number is given again.
//! When to give one up is the holder's business.

use crate::graph::Graph;
use crate::graph::chain::Chain;
use crate::plan::{Call, Recipe, RecipeId};

/// What was asked, without lengths or with them.
#[derive(Debug, PartialEq)]
pub(super) enum Structure {
    Graph(Graph),
    Chain(Chain),
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
            });
            self.known.len() - 1
        });
        self.recipes[at] = recipe;
        self.known[at] = Known {
            structure,
            holders: 1,
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

    /// Frees what nobody holds and no call of these lists is of.
    pub(super) fn sweep(&mut self, pending: &[&[Call]]) {
        let mut is_used = vec![false; self.known.len()];
        for call in pending.iter().copied().flatten() {
            is_used[call.recipe.0 as usize] = true;
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
