//! Partition: divides a batch between the GPU and the CPU beside it.
//!
//! This file decides where a call may go; `router` decides where calls go that may go
//! anywhere.

use super::Session;
use super::compile_gate::State;
use super::cost_model::{Model, Sum};
use super::in_flight::Company;
use super::launch::LaunchId;
use super::payload::{Batch, Call};
use super::program_cache::ProgramCache;
use super::router::{Group, Router, Routing};
use super::tensor_table::TensorTable;
use super::tuning::Observation;
use crate::batch::{BatchId, Millis};
use crate::device::{Device, Engine, Readback};
use crate::error::Error;
use crate::tensor::WORD;

/// Bytes of operands or results of a group beyond which it stays on the GPU: the CPU's
/// results all lie in memory at once.
const MOST_BYTES: f64 = (64 << 20) as f64;

/// The calls of a batch by structure, and which group each belongs to.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    /// For each call its group.
    pub(super) of: Vec<usize>,
}

impl Groups {
    /// Tells a batch where each of its calls goes.
    pub(super) fn apply(self, batch: &mut Batch) {
        let (works, payload) = batch.works_and_payload();
        for (work, group) in works.zip(&self.of) {
            work.is_cpu_share = self.groups[*group].engine == Engine::Cpu;
        }
        payload.groups = self.groups;
    }
}

impl<D: Device> Session<D> {
    /// Gives the session a CPU beside its GPU. With a routing the CPU takes the calls that
    /// it answers sooner, and in any case those that ask for the CPU; see
    /// [`Session::submit_to`]. On a session without a GPU nothing changes.
    #[must_use]
    pub fn with_companion(mut self, mut cpu: D, routing: Option<Routing>) -> Self {
        if self.devices.engine() == Engine::Gpu {
            cpu.allow(self.limits.budget().0);
            self.devices.add_companion(cpu);
            self.router = routing.map(Router::new);
        }
        self
    }

    /// Whether calls are routed: there is a router, and a CPU beside the GPU.
    pub(super) fn is_routing(&self) -> bool {
        self.router.is_some() && self.devices.has_companion()
    }

    /// The model that routes are chosen by, and whether it was measured here; `None` where
    /// nothing is chosen.
    pub fn model(&self) -> Option<(Model, bool)> {
        let router = self.router.as_ref().filter(|_| self.is_routing())?;
        Some((router.model, router.is_calibrated))
    }

    /// Goes by a model that was measured, here or before. While the CPU has taken over, the
    /// model is kept for the GPU that comes back. Nothing changes where no device is chosen,
    /// or for numbers that no model has.
    pub fn set_model(&mut self, model: Model) {
        if let Some(router) = self.router.as_mut().filter(|_| model.is_sound()) {
            router.adopt(model);
        }
    }

    /// Says where each call of a batch goes.
    pub(super) fn route(&mut self, at: usize) {
        if !self.devices.has_companion() {
            return;
        }
        let batch = self.queue.flying(at);
        // A written tensor may have been filled, and so copied, since the call was taken.
        for call in batch.calls() {
            for tensor in batch.written(self.programs.recipes(), call) {
                self.tensors.drop_copy(tensor);
            }
        }
        if self.router.is_none() && !batch.payload.asks_cpu {
            return;
        }
        let mut routed = routed(batch, &self.programs, &self.tensors, &mut self.router);
        let groups = &mut routed.groups;
        if let Some(router) = &mut self.router {
            // Groups that the GPU would get and has no kernel for yet, the CPU may have.
            let (mut is_ready, is_lost) = (true, self.life.is_lost());
            for group in groups.iter_mut().filter(|group| group.may_leave()) {
                let kernels = self.programs.recipes()[group.recipe.0 as usize].kernels();
                let state = || self.gate.ask(self.devices.primary_mut(), kernels);
                group.is_ready = !is_lost && !matches!(state(), State::Compiling);
                is_ready &= group.is_ready;
            }
            if !is_ready {
                router.choose(groups);
            }
            router.keep(groups);
        }
        routed.apply(self.queue.flying_mut(at));
    }

    /// The groups of a batch, each with its route.
    pub(super) fn routed(&mut self, batch: &Batch) -> Groups {
        routed(batch, &self.programs, &self.tensors, &mut self.router)
    }

    /// Notes how long [`Session::compute`] took for the CPU share of a batch.
    pub fn note_compute(&mut self, batch: BatchId, ms: f64) {
        let at = self.queue.place_in_flight(batch);
        if let (Some(router), Some(at)) = (&mut self.router, at) {
            router.note_cpu(&self.queue.in_flight()[at].way.groups, ms);
        }
    }

    /// Notes that a flight has landed, before it is settled.
    pub fn note_landing(
        &mut self,
        launch: LaunchId,
        outcome: &Result<Readback, Error>,
        now: Millis,
    ) {
        if outcome.is_ok() {
            self.note_turn(launch, now);
        }
        let Some(at) = self.place_in_flight(launch.batch, launch.generation) else {
            return;
        };
        let way = &self.queue.in_flight()[at].way;
        if outcome.is_ok() && way.is_heard_next() {
            self.life.heard(now);
        }
        // A CPU share keeps the face from noticing results, and a failure tells nothing of
        // speed.
        let is_told = outcome.is_ok()
            && self.devices.engine() == Engine::Gpu
            && way.company == Company::Alone
            && way.is_at_last()
            && !way.chunks.iter().any(|sent| sent.is_cpu_share);
        if !is_told {
            return;
        }
        let took_ms = now.0 - way.sent.0;
        if let Some(router) = self
            .router
            .as_mut()
            .filter(|_| self.devices.has_companion())
        {
            router.note_gpu(&way.groups, took_ms);
        }
        let bytes = way.chunks.iter().map(|sent| sent.bytes).sum();
        if self.tuner.observe(Observation { bytes, took_ms }) {
            self.is_retuned = true;
            self.retune();
        }
    }
}

/// The groups of a batch, each with its route.
fn routed(
    batch: &Batch,
    programs: &ProgramCache,
    tensors: &TensorTable,
    router: &mut Option<Router>,
) -> Groups {
    let mut all = group(batch, programs, tensors, router);
    for group in &mut all.groups {
        if group.fixed.is_none() && group.sum.up.max(group.sum.down) > MOST_BYTES {
            group.fixed = Some(Engine::Gpu);
        }
        group.engine = group.fixed.unwrap_or(Engine::Gpu);
    }
    if let Some(router) = router {
        router.choose(&mut all.groups);
    }
    all
}

/// Collects the calls of a batch in groups; calls that have no choice of devices are in
/// groups of their own.
fn group(
    batch: &Batch,
    programs: &ProgramCache,
    tensors: &TensorTable,
    router: &mut Option<Router>,
) -> Groups {
    const ROUTES: usize = 3;
    let recipes = programs.recipes();
    let mut places = vec![usize::MAX; recipes.len() * ROUTES];
    // Calls that are only explained have dropped no copies.
    let mut is_written = Vec::new();
    for call in batch.calls() {
        for tensor in batch.written(recipes, call) {
            is_written.resize(tensors.count(), false);
            is_written[tensor as usize] = true;
        }
    }
    let has =
        |tensor: &u32| tensors.has_copy(*tensor) && is_written.get(*tensor as usize) != Some(&true);
    let mut all = Groups::default();
    for taken in batch.calls() {
        let Call { work, .. } = taken;
        let call = &work.planned;
        // What a caller's function does on the CPU is the caller's business, and takes any time.
        let stays = router.is_none()
            || recipes[call.recipe.0 as usize].has_caller_fns()
            || !batch.payload.tensors_of(taken).iter().all(has);
        let fixed = work.wanted.or(stays.then_some(Engine::Gpu));
        let route = fixed.map_or(0, |engine| 1 + usize::from(engine == Engine::Cpu));
        let place = &mut places[call.recipe.0 as usize * ROUTES + route];
        if *place == usize::MAX {
            *place = all.groups.len();
            all.groups.push(Group::new(call.recipe, fixed));
        }
        all.of.push(*place);
        let recipe = &recipes[call.recipe.0 as usize];
        let Sum {
            calls, up, down, ..
        } = &mut all.groups[*place].sum;
        *calls += 1.0;
        *up += f64::from(call.inputs.words) * f64::from(WORD);
        *down += recipe.result_words(call.rows) as f64 * f64::from(WORD);
        if let Some(router) = router {
            let row = router.row_work(call.recipe, recipe);
            let sum = &mut all.groups[*place].sum;
            sum.effort.add(&row.effort, call.rows.into());
            sum.dispatches = row.dispatches;
        }
    }
    all
}
