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
        let limits = self.limits_aside();
        let flying = self.in_flight.iter_mut();
        let flying = flying.rev().find(|flying| flying.load.id == batch);
        let Flying { load, pieces, .. } = flying.expect("just launched");
        let calls = &load.aside.calls;
        let asked = Asked {
            recipes: self.structures.recipes(),
            calls,
            sets: &load.sets,
            parted: &[],
        };
        let beside = self.beside.as_mut().expect("what was put aside is its");
        let operands = load.arena.len();
        let mut rest = vec![Piece::all(calls)];
        let mut parts = Vec::new();
        while let Some((piece, plan)) = plan::assemble_next(asked, &mut rest, &limits) {
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
            _ => join((asked.recipes, calls), parts),
        };
        let sent = pieces.first_mut().filter(|sent: &&mut Sent| sent.is_aside);
        sent.expect("something was put aside").results = results;
        flight
    }

    /// The plans of calls that are put aside.
    pub(super) fn plans_aside(&self, calls: &[Call], sets: &[Box<[u32]>]) -> Vec<Plan> {
        let asked = Asked {
            recipes: self.structures.recipes(),
            calls,
            sets,
            parted: &[],
        };
        let limits = self.limits_aside();
        let mut rest = vec![Piece::all(calls)];
        let next = || plan::assemble_next(asked, &mut rest, &limits);
        std::iter::from_fn(next).map(|(_, plan)| plan).collect()
    }

    /// What a piece of them may need at most: as much as on a processor alone.
    fn limits_aside(&self) -> PieceLimits {
        let beside = self.beside.as_ref().expect("what was put aside is its");
        let limits = beside.limits();
        PieceLimits {
            slot_bytes: limits.max_side_bytes,
            bytes: self.budget.live() / COPIES / 2,
            copies: 1,
            threads: limits.max_threads,
        }
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
