//! Priorities: takes calls of high and of low priority, keeps the order of calls on tensors
//! that are written, and cuts low work into slices.
//!
//! The queue says which batch goes next.

use super::cost_model::{Model, Sum};
use super::in_flight::InFlight;
use super::launch::LaunchId;
use super::parked::move_calls;
use super::payload::{Call, Naming, Payload, precedes_batch};
use super::submission::{ReadCall, no_memory};
use super::{Batch, Session};
use crate::batch::{Accepted, LowWork, Millis, Order, Priority};
use crate::device::{Device, Engine};
use crate::error::Error;
use crate::plan::Recipe;
use crate::tensor::{Arena, WORD};

/// Words of operands from which memory moves to another batch rather than the words.
const MANY: u32 = 1 << 16;

impl<D: Device> Session<D> {
    /// The priority that a call gets so that it stays behind the calls which it must find
    /// done. Those of lower priority are raised to its own; behind those of higher priority
    /// low work becomes normal.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; nothing has changed then.
    pub(super) fn keep_order(
        &mut self,
        wanted: Priority,
        read: &ReadCall,
    ) -> Result<Priority, Error> {
        let named = &self.named_tensors;
        if named.is_empty() {
            return Ok(wanted);
        }
        let precedes = |batch: &Batch| batch.payload.precedes(named, &self.written_tensors);
        let higher = [Priority::High, Priority::Normal];
        let stays_behind = || {
            higher
                .iter()
                .any(|other| self.queue.any_in(*other, precedes))
        };
        let priority = match wanted {
            Priority::Low if stays_behind() => Priority::Normal,
            wanted => wanted,
        };
        let words = read.work.planned.inputs.words;
        let open = self.queue.open();
        let closes = priority == Priority::High && !open.is_empty() && precedes(open);
        if closes && !self.prepare_next(words) {
            return Err(no_memory(words));
        }
        if priority > Priority::Low {
            let (named, written) = (&self.named_tensors, &self.written_tensors);
            let order = Order {
                precedes_call: &|batch: &Batch| batch.payload.precedes(named, written),
                precedes: &precedes_batch,
            };
            let arenas = &mut self.arenas;
            self.queue.promote(priority, &order, |full| {
                // The call's operands lie behind those of the full batch.
                let mut arena = arenas.take();
                full.arena.hand_over(words, &mut arena);
                Payload::new(arena)
            });
        }
        Ok(priority)
    }

    /// Takes a call into a batch of another priority than normal. Its operands, which lie
    /// where those of a normal call would, move there.
    pub(super) fn enqueue_in(
        &mut self,
        priority: Priority,
        read: ReadCall,
        now: Millis,
    ) -> Result<Accepted, Error> {
        let ReadCall {
            mut work,
            request,
            numbers,
        } = read;
        let words = work.planned.inputs.words;
        let arenas = &mut self.arenas;
        let payload = || Payload::new(arenas.take());
        let (batch, normal) = self.queue.open_in(priority, &request, payload);
        let (own, others) = (&mut batch.payload.arena, &mut normal.payload.arena);
        let moves_memory = words >= MANY && own.is_empty() && others.is_free_apart();
        if !moves_memory && !own.reserve(words) {
            return Err(no_memory(words));
        }
        let superseded = self.queue.admit_in(&request)?;
        self.note_call(superseded);
        let arenas = &mut self.arenas;
        let payload = || Payload::new(arenas.take());
        let (batch, normal) = self.queue.open_in(priority, &request, payload);
        let (own, others) = (&mut batch.payload, &mut normal.payload);
        match moves_memory {
            true => others.arena.hand_over(words, &mut own.arena),
            false => {
                let operands = &others.arena.free()[..words as usize];
                own.arena.free()[..words as usize].copy_from_slice(operands);
            }
        }
        own.note_written(&self.written_tensors);
        let naming = Naming {
            tensors: &self.named_tensors,
            table: &self.tensors,
        };
        own.claim(&mut work, naming, numbers);
        let (ticket, batch) = self.queue.push_in(priority, request, work, now);
        Ok(self.accepted(Accepted {
            ticket,
            batch,
            superseded,
        }))
    }

    /// Whether low work waits that may be sent at some time without a flush.
    pub fn has_low(&self) -> bool {
        self.queue.has_low()
    }

    /// Whether calls of low priority wait, also where they need a flush.
    pub fn has_low_calls(&self) -> bool {
        self.queue.has_low_calls()
    }

    /// Asks for the open batch where a call of low priority had to join it.
    pub fn flush_joined(&mut self) {
        self.queue.flush_joined();
    }

    /// Says that low work may be sent from here on, for a face whose CPU device computes in the
    /// thread that everything else there waits for.
    pub fn let_low_work_go(&mut self) {
        self.queue.set_low_work(match self.slice_engine {
            Engine::Cpu => LowWork::GoesBriefly,
            Engine::Gpu => LowWork::Goes,
        });
    }

    /// Says whether low work may be sent from here on. At first it may.
    pub fn set_low_work(&mut self, low_work: LowWork) {
        self.queue.set_low_work(low_work);
    }

    /// Cuts a batch of low priority, by its place in flight, down to a slice; its other
    /// calls wait on.
    pub(super) fn cut_slice(&mut self, at: usize, now: Millis) {
        let batch = self.queue.flying(at);
        if batch.priority != Priority::Low {
            return;
        }
        let most = self.queue.slice(now);
        let recipes = self.programs.recipes();
        let (mut units, mut kept) = (0.0, 0);
        for call in batch.calls() {
            let more = foreseen(recipes, call);
            if kept > 0 && units + more > most {
                break;
            }
            units += more;
            kept += 1;
        }
        let leaves: Vec<bool> = (0..batch.calls().len()).map(|call| call >= kept).collect();
        if !leaves.contains(&true) {
            return;
        }
        let payload = Payload::new(Arena::default());
        let mut other = self.queue.offshoot(at, payload);
        let batch = self.queue.flying_mut(at);
        move_calls(batch, &leaves, &mut other, &mut self.tensors);
        self.queue.wait_in_low(other);
    }

    /// Notes what a slice, by its place in flight, is foreseen to take, once all calls that wait
    /// for kernels have left it.
    pub(super) fn weigh_slice(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        if batch.priority == Priority::Low {
            let recipes = self.programs.recipes();
            let calls = batch.calls().iter();
            let units = calls.map(|call| foreseen(recipes, call)).sum();
            self.queue.in_flight_mut()[at].way.slice = units;
        }
    }

    /// Notes a flight that has landed well: how long the device took for its batch, if it was
    /// the batch's last.
    pub(super) fn note_turn(&mut self, launch: LaunchId, now: Millis) {
        let Some(at) = self.place_in_flight(launch.batch, launch.generation) else {
            return;
        };
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        if way.landed + 1 < way.chunks.len() || !way.rest.is_empty() {
            return;
        }
        let since = way.sent.0.max(self.last_landing.0);
        let (priority, units) = (batch.priority, way.slice);
        self.queue.took(priority, units, now.0 - since);
        self.last_landing = now;
    }
}

/// What a call is foreseen to take of a usual GPU, besides what all calls share. How far a
/// device is off, slices measure.
fn foreseen(recipes: &[Recipe], call: &Call) -> f64 {
    let planned = &call.work.planned;
    let recipe = &recipes[planned.recipe.0 as usize];
    let mut sum = Sum {
        calls: 1.0,
        up: f64::from(planned.inputs.words) * WORD as f64,
        down: recipe.result_words(planned.rows) as f64 * WORD as f64,
        ..Sum::default()
    };
    sum.effort.add(&recipe.effort(), f64::from(planned.rows));
    Model::default().gpu_ms(&sum)
}
