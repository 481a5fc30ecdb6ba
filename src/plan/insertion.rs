//! Lowers insertions, which pack vectors of a tensor in a page of an index.
//!
//! What a call's rows say is defined in `graph::insertion`.

use super::Recipe;
use super::lowering::{Structure, of_one_stage};
use super::recipe::Extent;
use super::slicing::Slicing;
use crate::graph::insertion::{Insertion, ROW};
use crate::kernel::{LANES, Named, Settings};
use crate::program::{Access, Body, Effort, Kind, Load, Program, Source, Stage, Target};

/// A call's operands are its rows, the number of the source, if it has one, and that of the
/// page. Calls merge whatever they insert.
impl Structure for Insertion {
    fn lower(&self, known: &[Recipe]) -> Recipe {
        Recipe::insert(self, known)
    }
}

impl Recipe {
    /// The recipe of an insertion, with one workgroup for each vector.
    pub fn insert(insertion: &Insertion, known: &[Recipe]) -> Recipe {
        // The inputs of the program, by number. A kernel binds a source, also one that it does not
        // read.
        let [rows, source, page] = [0, 1, 2];
        let source = match insertion.has_source {
            true => Source::Resident(source),
            false => Source::Input(source),
        };
        let load = |source, binding| Load {
            source,
            binding,
            access: Access::Flat,
            packing: None,
        };
        let settings = Settings {
            width: insertion.dim,
            mode: insertion.mode(),
            ..Settings::default()
        };
        let stage = Stage {
            body: Body::Named(Named::PackVectors, settings),
            loads: vec![load(Source::Input(rows), 0), load(source, 1)],
            scalars: Vec::new(),
            target: Target::Resident(page),
        };
        Recipe {
            operands: vec![Extent::rows(ROW)],
            results: vec![Extent::default()],
            tensors: vec![0; insertion.tensors() as usize],
            ordinals: vec![0, 0, insertion.tensors() as usize - 1],
            slicing: Slicing::Never,
            effort: Effort::of(Kind::Term, 4.0 * f64::from(insertion.dim)),
            ..of_one_stage(Program::of(stage), LANES, known)
        }
    }

    /// The structure of an insertion, if calls insert vectors.
    pub fn insertion(&self) -> Option<Insertion> {
        match &self.schedule.program.stages[..] {
            [stage] => match stage.body {
                Body::Named(Named::PackVectors, settings) => {
                    Some(Insertion::decode(settings.mode, settings.width))
                }
                _ => None,
            },
            _ => None,
        }
    }
}
