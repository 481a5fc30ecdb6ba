//! The router: where equal calls of a flush go, to the GPU or to the CPU beside it.
//!
//! Pure: the router has no clock and no devices. A model foresees what calls take. How long
//! they really took comes in as an argument and corrects what is foreseen, slowly and
//! within bounds.

use super::cost_model::{Model, Sum};
use super::drift::Drift;
use crate::device::Engine;
use crate::plan::{Effort, Recipe, RecipeId};

/// Flushes for which a structure keeps its route.
pub(super) const HOLD: u32 = 60;

/// Flushes for which a structure keeps each of its first routes, and how many these are:
/// the model alone knows of them, and a few flushes tell how far the model is off.
const TRIAL: u32 = 8;
const TRIALS: u32 = 2;

/// Routes of a structure after which two of them are on trial again: a page that was busy at
/// first may be so no more, and a wrong model is never corrected by a device that is left out.
const AGAIN: u32 = 32;

/// The second route of a trial is to the device that the first one left out, unless that device
/// is foreseen to take more than so many times as long.
const NEAR: f64 = 2.0;

/// The same for later trials while the model is the usual one, which knows nothing of this
/// machine.
const NEAR_UNMEASURED: f64 = 4.0;

/// A group so many times larger or smaller than the one that its structure's route was
/// chosen for is routed anew.
const OTHER_SIZE: f64 = 4.0;

/// While the GPU is not ready, the CPU takes groups that keep it busy for no longer than
/// these milliseconds; the rest waits for the GPU.
pub(super) const BRIDGE_MS: f64 = 8.0;

/// A group: equal calls of a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) recipe: RecipeId,
    pub(super) sum: Sum,
    /// Where the calls must go, if anything says so.
    pub(super) fixed: Option<Engine>,
    /// Whether the GPU could take the group now.
    pub(super) is_ready: bool,
    /// Where the group goes.
    pub(super) engine: Engine,
    /// Milliseconds that the group is foreseen to take on each device.
    pub(super) cpu: f64,
    pub(super) gpu: f64,
}

/// How the calls that may leave a GPU are routed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// What work is foreseen to take on each device.
    pub model: Model,
    /// Milliseconds for which the CPU may be at work in one flush without harm; each beyond
    /// counts twice.
    pub patience_ms: f64,
}

/// The routing of a thread that nobody waits for: the CPU may be at work as long as it
/// takes.
impl From<Model> for Routing {
    fn from(model: Model) -> Self {
        Routing {
            model,
            patience_ms: f64::INFINITY,
        }
    }
}

/// Chooses routes and remembers them.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) model: Model,
    /// Whether the model was measured, now or before, and is not the usual one.
    pub(super) is_calibrated: bool,
    /// [`Routing::patience_ms`].
    patience_ms: f64,
    /// How much longer a flush of the GPU takes than foreseen.
    flush: Drift,
    /// Whether the CPU got all of the last batch.
    spares_gpu: bool,
    /// What is known of each structure, by its number.
    known: Vec<Known>,
}

/// What is known of a structure.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What a row of the structure takes, once asked for.
    row: Option<RowWork>,
    held: Held,
    /// How many routes were chosen for the structure.
    routes: u32,
    cpu: Drift,
    gpu: Drift,
}

/// What a row of a structure takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowWork {
    pub(super) effort: Effort,
    /// Dispatches of a call, whatever its rows.
    pub(super) dispatches: f64,
}

/// The second route of a trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The device of the route before.
    tried: Engine,
    /// How many times as long the other device may be foreseen to take.
    near: f64,
}

/// A route that was chosen.
#[derive(Clone, Copy, Debug)]
struct Held {
    engine: Engine,
    /// Flushes for which the route is still kept.
    left: u32,
    /// What the group was foreseen to take on the CPU by the model alone.
    size: f64,
}

impl Default for Held {
    fn default() -> Self {
        Held {
            engine: Engine::Gpu,
            left: 0,
            size: 0.0,
        }
    }
}

impl Group {
    /// Whether the group goes to the GPU and might go to the CPU.
    pub(super) fn may_leave(&self) -> bool {
        self.fixed.is_none() && self.engine == Engine::Gpu
    }

    pub(super) fn new(recipe: RecipeId, fixed: Option<Engine>) -> Group {
        Group {
            recipe,
            sum: Sum::default(),
            fixed,
            is_ready: true,
            engine: fixed.unwrap_or(Engine::Gpu),
            cpu: 0.0,
            gpu: 0.0,
        }
    }
}

impl Router {
    pub(super) fn new(routing: Routing) -> Router {
        Router {
            model: routing.model,
            is_calibrated: false,
            patience_ms: routing.patience_ms,
            flush: Drift::default(),
            spares_gpu: false,
            known: Vec::new(),
        }
    }

    /// Goes by a model that was measured. The drifts from the model before and the routes
    /// that it chose are forgotten.
    pub(super) fn adopt(&mut self, model: Model) {
        self.model = model;
        self.is_calibrated = true;
        self.flush = Drift::default();
        for known in &mut self.known {
            *known = Known {
                row: known.row,
                ..Known::default()
            };
        }
    }

    /// Notes how many calls of a batch go to the primary device of a session.
    pub(super) fn note_launch(&mut self, calls: usize) {
        self.spares_gpu = calls == 0;
    }

    /// Whether the CPU got all of the last batch, because it answers sooner.
    pub(super) fn spares_gpu(&self) -> bool {
        self.spares_gpu
    }

    /// What a row of a structure takes.
    pub(super) fn row_work(&mut self, id: RecipeId, recipe: &Recipe) -> RowWork {
        let of_recipe = || RowWork {
            effort: recipe.effort(),
            dispatches: recipe.dispatches() as f64,
        };
        *self.known(id).row.get_or_insert_with(of_recipe)
    }

    /// Forgets what is known of a structure: its number is another structure's now.
    pub(super) fn forget(&mut self, id: RecipeId) {
        *self.known(id) = Known::default();
    }

    /// Says where each group goes, so that all groups together take least: the GPU's flush
    /// is paid for once, and a group that joins it pays for its own work alone.
    pub(super) fn choose(&mut self, groups: &mut [Group]) {
        let share = self.flush_ms() / groups.len() as f64;
        let near = match self.is_calibrated {
            true => NEAR,
            false => NEAR_UNMEASURED,
        };
        let (mut is_due, mut busy, mut free) = (false, 0.0, 0.0);
        let mut is_free = vec![false; groups.len()];
        for (group, is_free) in groups.iter_mut().zip(&mut is_free) {
            group.cpu = self.model.cpu_ms(&group.sum);
            group.gpu = self.model.gpu_ms(&group.sum);
            let known = self.known(group.recipe);
            let (held, trial) = (known.held.of(group.cpu), known.trial(near));
            group.cpu *= known.cpu.factor;
            group.gpu *= known.gpu.factor;
            let route = match group.fixed {
                Some(engine) => Some(engine),
                None if group.is_ready => held.or_else(|| self.left_out(group, trial?, share)),
                None if busy + group.cpu <= BRIDGE_MS => Some(Engine::Cpu),
                None => Some(Engine::Gpu),
            };
            group.engine = route.unwrap_or(Engine::Cpu);
            match route {
                Some(Engine::Gpu) => is_due = true,
                Some(Engine::Cpu) => busy += group.cpu,
                None => free += group.cpu,
            }
            *is_free = route.is_none();
        }
        let all = busy + free;
        let strain = 1.0 + ((all - self.patience_ms) / all).max(0.0);
        let free = || is_free.iter().enumerate().filter(|(_, is_free)| **is_free);
        let saved = free().map(|(at, _)| (groups[at].cpu * strain - groups[at].gpu).max(0.0));
        is_due |= saved.sum::<f64>() > self.flush_ms();
        for (at, _) in free() {
            let group = &mut groups[at];
            if is_due && group.gpu < group.cpu * strain {
                group.engine = Engine::Gpu;
            }
        }
    }

    /// The device that the first route of a trial left out, unless its group is foreseen to
    /// take far longer there. `share` is what each group pays of the GPU's flush if all go;
    /// a group that is sent there by itself may have to pay for all of the flush.
    fn left_out(&self, group: &Group, trial: Trial, share: f64) -> Option<Engine> {
        let cpu = group.cpu + (group.cpu - self.patience_ms).max(0.0);
        let Trial { tried, near } = trial;
        match tried {
            Engine::Gpu if cpu <= (group.gpu + share) * near => Some(Engine::Cpu),
            Engine::Cpu if group.gpu + self.flush_ms() <= cpu * near => Some(Engine::Gpu),
            Engine::Gpu | Engine::Cpu => None,
        }
    }

    fn flush_ms(&self) -> f64 {
        self.model.flush_ms() * self.flush.factor
    }

    /// Remembers the routes of groups that were chosen, for one flush more.
    pub(super) fn keep(&mut self, groups: &[Group]) {
        let mut is_new = false;
        for group in groups {
            let size = self.model.cpu_ms(&group.sum);
            let Known {
                held,
                routes,
                cpu,
                gpu,
                ..
            } = self.known(group.recipe);
            if group.fixed.is_some() || !group.is_ready {
                continue; // The route was not chosen.
            }
            match held.of(size) {
                Some(_) => held.left -= 1,
                None => {
                    let is_trial = *routes % AGAIN < TRIALS;
                    *routes += 1;
                    is_new = true;
                    match group.engine {
                        Engine::Cpu => gpu.fade(),
                        Engine::Gpu => cpu.fade(),
                    }
                    *held = Held {
                        engine: group.engine,
                        left: if is_trial { TRIAL } else { HOLD } - 1,
                        size,
                    }
                }
            }
        }
        if is_new && groups.iter().all(|group| group.engine == Engine::Cpu) {
            self.flush.fade();
        }
    }

    /// Notes how long the CPU took for its groups of a flush.
    pub(super) fn note_cpu(&mut self, groups: &[Group], took: f64) {
        let own = || groups.iter().filter(|group| group.engine == Engine::Cpu);
        let foreseen: f64 = own().map(|group| group.cpu).sum();
        for group in own().filter(|_| foreseen > 0.0) {
            let took = took * group.cpu / foreseen;
            let foreseen = self.model.cpu_ms(&group.sum);
            self.known(group.recipe).cpu.note(foreseen, took);
        }
    }

    /// Notes how long the GPU took for its groups of a flush that was alone in flight.
    pub(super) fn note_gpu(&mut self, groups: &[Group], took: f64) {
        let own = || groups.iter().filter(|group| group.engine == Engine::Gpu);
        let foreseen: f64 = own().map(|group| group.gpu).sum();
        let flush = self.flush_ms();
        if foreseen < flush {
            self.flush.note(self.model.flush_ms(), took - foreseen);
            return;
        }
        let took = took - flush;
        for group in own() {
            let took = took * group.gpu / foreseen;
            let foreseen = self.model.gpu_ms(&group.sum);
            self.known(group.recipe).gpu.note(foreseen, took);
        }
    }

    fn known(&mut self, id: RecipeId) -> &mut Known {
        let at = id.0 as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, Known::default());
        }
        &mut self.known[at]
    }
}

impl Known {
    /// The second route of a trial, when it is due. `later` is [`Trial::near`] of later trials
    /// than the first.
    fn trial(&self, later: f64) -> Option<Trial> {
        (self.routes % AGAIN == 1).then_some(Trial {
            tried: self.held.engine,
            near: if self.routes == 1 { NEAR } else { later },
        })
    }
}

impl Held {
    /// The route, for a group of this size, if it is still kept.
    fn of(&self, size: f64) -> Option<Engine> {
        let is_like = size <= self.size * OTHER_SIZE && size * OTHER_SIZE >= self.size;
        (self.left > 0 && is_like).then_some(self.engine)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/router.rs"]
mod tests;
