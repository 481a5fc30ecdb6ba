//! Admission: how much a call takes, and whether a device can have the call.

use super::Session;
use super::budget::most_room;
use super::program_cache::Footprint;
use crate::device::{Device, Engine};
use crate::error::Error;
use crate::plan::{Recipe, RecipeId};
use crate::tensor::WORD;

impl<D: Device> Session<D> {
    /// What a call of so many rows takes.
    pub(super) fn footprint(&mut self, recipe: RecipeId, rows: u32) -> Result<Footprint, Error> {
        if self.programs.get(recipe).is_none() {
            return Err(Error::InvalidInput(format!(
                "structure {} is unknown",
                recipe.0
            )));
        }
        let last = *self.programs.footprint_mut(recipe);
        if rows > 0 && last.rows == rows {
            return Ok(last);
        }
        let footprint = self.weigh(&self.programs.recipes()[recipe.0 as usize], rows)?;
        *self.programs.footprint_mut(recipe) = footprint;
        Ok(footprint)
    }

    /// What a call of so many rows takes, unless no device can have it.
    fn weigh(&self, known: &Recipe, rows: u32) -> Result<Footprint, Error> {
        if rows == 0 {
            return Err(Error::InvalidInput("a call has at least one row".into()));
        }
        let limit = self.devices.primary().limits().max_side_bytes;
        // A call that can be cut goes in chunks: a few rows must fit.
        let least = known.least(rows);
        let sides = |rows| (known.input_words(rows), known.result_words(rows));
        let bytes = |(up, down): (u64, u64)| up.max(down) * WORD as u64;
        let (need, (up, down)) = (bytes(sides(least)), sides(rows));
        let too_large = |need, limit| Error::TooLarge {
            what: match least == rows {
                true => "a call that cannot be cut by rows",
                false => "a few rows of a call",
            },
            need,
            limit,
        };
        if need > limit {
            return Err(too_large(need, limit));
        }
        if !known.is_countable() {
            return Err(Error::TooMany);
        }
        match (u32::try_from(up), u32::try_from(down)) {
            (Ok(words), Ok(_)) => Ok(Footprint {
                rows,
                words,
                bytes: (up + down) * WORD as u64,
            }),
            _ => Err(too_large(bytes((up, down)), most_room(limit))),
        }
    }

    /// Refuses the call that was read for a device that is missing, or that lacks a tensor of the
    /// call.
    pub(super) fn check_engine(
        &self,
        recipe: RecipeId,
        engine: Option<Engine>,
    ) -> Result<(), Error> {
        let known = &self.programs.recipes()[recipe.0 as usize];
        let writes = !self.written_tensors.is_empty();
        match engine {
            Some(Engine::Gpu) if self.devices.engine() == Engine::Cpu => Err(Error::NoAdapter(
                "engine: calls run on the CPU here; leave engine out, or open a session with \
                 engine 'gpu'"
                    .into(),
            )),
            Some(Engine::Cpu) if self.devices.engine() == Engine::Gpu && writes => {
                Err(Error::InvalidInput(
                    "engine: the call writes to a tensor of the GPU; leave engine out".into(),
                ))
            }
            Some(Engine::Cpu) if self.devices.engine() == Engine::Gpu && known.has_caller_fns() => {
                Err(Error::InvalidInput(
                    "engine: kernels of the program's own are computed by the GPU where there is \
                     one; leave engine out"
                        .into(),
                ))
            }
            Some(Engine::Cpu) if self.devices.engine() == Engine::Gpu => {
                let has = |tensor: &u32| self.tensors.has_copy(*tensor);
                match self.devices.has_companion() && self.named_tensors.iter().all(has) {
                    true => Ok(()),
                    false => Err(Error::InvalidInput(
                        "engine: a tensor of the call is on the GPU alone; leave engine out".into(),
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}
