//! The CPU share of a batch: the calls that the CPU beside a GPU computes.
//!
//! The share goes in chunks, as on a CPU alone, and is answered as one, because it lands
//! between chunks of the GPU, of which one may have begun a call's result. Which calls are
//! in the share is the business of `partition`.

use std::task::{Context, Poll, Waker};

use super::Session;
use super::in_flight::InFlight;
use super::payload::{Call, Payload};
use super::scatter::Sent;
use crate::batch::BatchId;
use crate::device::{Device, Flight, HostWords, Readback, failed};
use crate::error::Error;
use crate::plan::{self, Chunk, NamedTensors, Plan, PlanSource, Recipe};
use crate::tensor::{Span, aligned};

impl<D: Device> Session<D> {
    /// Computes the CPU share of a batch just launched, before this returns.
    /// [`Launch::has_cpu_share`](super::Launch::has_cpu_share) says that there is one. Its
    /// flight comes before those of the launch.
    ///
    /// # Panics
    ///
    /// For a batch that is not in flight, or has no CPU share.
    pub fn compute(&mut self, batch: BatchId) -> Flight {
        let at = self.queue.place_in_flight(batch).expect("just launched");
        let own = self.queue.flying(at);
        let mut plans = self.plans_of_share(own.behind(), own.payload.named());
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let (calls, Payload { arena, .. }) = batch.behind_and_payload();
        let cpu = self.devices.companion_mut().expect("it has a share");
        let operands = arena.len();
        let mut run = |plan: &Plan| {
            let flight = cpu.launch(plan, arena).unwrap_or_else(failed);
            arena.truncate(operands);
            arena.trim();
            flight
        };
        let sent = way.chunks.first_mut();
        let sent = sent.filter(|sent: &&mut Sent| sent.is_cpu_share);
        let sent = sent.expect("the CPU has a share");
        if let [(_, plan)] = &mut plans[..] {
            sent.results = std::mem::take(&mut plan.results);
            return run(plan);
        }
        let mut all = JoinedResults::of(self.programs.recipes(), calls);
        let mut outcome = Ok(());
        for (chunk, plan) in &plans {
            outcome = landed(run(plan)).map(|words| all.add(chunk, &plan.results, &words));
            if outcome.is_err() {
                break;
            }
        }
        sent.results = all.results;
        let outcome = outcome.map(|()| Readback::Host(all.words.into()));
        Box::pin(std::future::ready(outcome))
    }

    /// Plans the CPU share in chunks, each no larger than one on a CPU alone if it can be
    /// cut.
    pub(super) fn plans_of_share(
        &self,
        calls: &[Call],
        tensors: NamedTensors<'_>,
    ) -> Vec<(Chunk, Plan)> {
        let source = PlanSource {
            recipes: self.programs.recipes(),
            calls,
            tensors,
            sharded: &[],
        };
        let cpu = self.devices.companion().expect("it has a share");
        let limits = self.limits.cpu_chunk(&cpu.limits(), 0);
        let mut rest = vec![Chunk::all(calls)];
        let mut plans = Vec::new();
        while let Some(next) = plan::assemble_next(source, &mut rest, &limits) {
            plans.push(next);
        }
        plans
    }
}

/// The results of a flight of a CPU.
fn landed(mut flight: Flight) -> Result<HostWords, Error> {
    match flight
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(Ok(Readback::Host(words))) => Ok(words),
        Poll::Ready(Err(error)) => Err(error),
        _ => unreachable!("a CPU is done when its launch returns"),
    }
}

/// The results of all calls of the share in one place, as of one chunk.
struct JoinedResults<'a> {
    recipes: &'a [Recipe],
    calls: &'a [Call],
    results: Vec<Span>,
    words: Vec<u32>,
}

impl<'a> JoinedResults<'a> {
    /// No results yet, but a place for each call's.
    fn of(recipes: &'a [Recipe], calls: &'a [Call]) -> Self {
        let mut end = 0;
        let results = calls.iter().map(|call| {
            let call = &call.work.planned;
            let words = recipes[call.recipe.0 as usize].words_of(call.rows);
            let at = end;
            end += aligned(words);
            Span { at, words }
        });
        JoinedResults {
            recipes,
            calls,
            results: results.collect(),
            words: Vec::new(),
        }
    }

    /// Adds the results of a chunk, which lie at `spans` of `words`.
    fn add(&mut self, chunk: &Chunk, spans: &[Span], words: &[u32]) {
        let end = self
            .results
            .last()
            .map_or(0, |last| last.at + aligned(last.words));
        self.words.resize(end as usize, 0);
        for (index, span) in (chunk.first..chunk.end).zip(spans) {
            let call = &self.calls[index].work.planned;
            let recipe = &self.recipes[call.recipe.0 as usize];
            for run in recipe.result_runs(chunk.rows_of(self.calls, index), call.rows) {
                let from = (span.at + run.from) as usize;
                let to = (self.results[index].at + run.to) as usize;
                let count = run.words as usize;
                self.words[to..to + count].copy_from_slice(&words[from..from + count]);
            }
        }
    }
}
