//! What the processor beside a GPU computes of a batch.
//!
//! It goes in pieces, as on a processor alone, and is answered as one: it lands
//! between pieces of the GPU, of which one may have begun a call's result. Which
//! calls these are is the business of `divide`.

use super::answers::Sent;
use super::flights::Flying;
use super::{COPIES, Session};
use crate::batch::BatchId;
use crate::device::{Device, Flight, Readback};
use crate::plan::{self, Asked, Call, Piece, PieceLimits, Plan, Recipe};
use crate::tensor::{Span, aligned};

impl<D: Device> Session<D> {
    /// Computes what was put aside of a batch just launched, before this
    /// returns: [`Launch::is_parted`](super::Launch::is_parted) says that there
    /// is something. Its flight comes before those of the launch.
    ///
    /// # Panics
    ///
    /// For a batch that is not on its way, or of which nothing was put aside.
    pub fn compute(&mut self, batch: BatchId) -> Flight {
        let mut flying = self.in_flight.iter();
        let at = flying.rposition(|flying| flying.load.id == batch);
        let at = at.expect("just launched");
        let load = &self.in_flight[at].load;
        let plans = self.plans_aside(&load.aside.calls, &load.sets);
        let Flying { load, pieces, .. } = &mut self.in_flight[at];
        let beside = self.beside.as_mut().expect("what was put aside is its");
        let operands = load.arena.len();
        let mut parts = Vec::with_capacity(plans.len());
        for (piece, plan) in plans {
            let flight = beside.launch(&plan, &mut load.arena);
            load.arena.truncate(operands);
            parts.push((piece, plan.results, flight));
        }
        load.arena.trim();
        let (results, flight) = match parts.len() {
            1 => {
                let (_, results, flight) = parts.remove(0);
                (results, flight)
            }
            _ => join((self.structures.recipes(), &load.aside.calls), parts),
        };
        let sent = pieces.first_mut().filter(|sent: &&mut Sent| sent.is_aside);
        sent.expect("something was put aside").results = results;
        flight
    }

    /// The pieces of calls that are put aside, each no larger than one on a processor
    /// alone if it can be cut.
    pub(super) fn plans_aside(&self, calls: &[Call], sets: &[Box<[u32]>]) -> Vec<(Piece, Plan)> {
        let asked = Asked {
            recipes: self.structures.recipes(),
            calls,
            sets,
            parted: &[],
        };
        let beside = self.beside.as_ref().expect("what was put aside is its");
        let limits = beside.limits();
        let limits = PieceLimits {
            slot_bytes: limits.max_side_bytes,
            bytes: self.budget.live() / COPIES / 2,
            copies: 1,
            threads: limits.max_threads,
        };
        let mut rest = vec![Piece::all(calls)];
        let mut plans = Vec::new();
        while let Some(next) = plan::assemble_next(asked, &mut rest, &limits) {
            plans.push(next);
        }
        plans
    }
}

/// Words of a piece's results, and where they belong among those of all.
struct Move {
    from: Span,
    to: u32,
}

/// The results of all calls in one place, as of one piece.
fn join(
    (recipes, calls): (&[Recipe], &[Call]),
    parts: Vec<(Piece, Vec<Span>, Flight)>,
) -> (Vec<Span>, Flight) {
    let mut end = 0;
    let results = calls.iter().map(|call| {
        let words = recipes[call.recipe.0 as usize].words_of(call.rows);
        let at = end;
        end += aligned(words);
        Span { at, words }
    });
    let results: Vec<Span> = results.collect();
    let parts = parts.into_iter().map(|(piece, spans, flight)| {
        let mut moves = Vec::with_capacity(spans.len());
        for (index, span) in (piece.first..piece.end).zip(spans) {
            let (call, home) = (&calls[index], results[index].at);
            let recipe = &recipes[call.recipe.0 as usize];
            let places = recipe.parts(piece.part(calls, index), call.rows);
            moves.extend(places.map(|(from, at, words)| Move {
                from: Span {
                    at: span.at + from,
                    words,
                },
                to: home + at,
            }));
        }
        (flight, moves)
    });
    let parts: Vec<(Flight, Vec<Move>)> = parts.collect();
    let flight = Box::pin(async move {
        let mut all = vec![0; end as usize];
        for (flight, moves) in parts {
            let Readback::Host(words) = flight.await? else {
                unreachable!("what a processor computes is in memory");
            };
            for Move { from, to } in moves {
                let [from_end, to_end] = [from.at, to].map(|at| (at + from.words) as usize);
                all[to as usize..to_end].copy_from_slice(&words[from.at as usize..from_end]);
            }
        }
        Ok(Readback::Host(all.into()))
    });
    (results, flight)
}
