//! Runs calls of chains the whole way: through a session, in one batch.

use std::collections::VecDeque;

use framebatch::batch::{Millis, Preset};
use framebatch::device::{Device, Readback};
use framebatch::graph::chain::{Home, Op};
use framebatch::session::{Answer, Launch, Session, Submission};
use framebatch::tensor::aligned;
use pollster::block_on;

use crate::engines::within_memory;
use crate::random::Sample;

const NOW: Millis = Millis(0.0);

/// The words of each result of a call.
pub(crate) type Results = Vec<Vec<u32>>;

/// A session, and tensors on its device by their words.
pub(crate) struct Sent<D> {
    session: Session<D>,
    tensors: Vec<((Vec<u32>, Home), u32)>,
}

impl<D: Device> Sent<D> {
    pub(crate) fn to(device: D) -> Sent<D> {
        Sent {
            session: Session::new(device, within_memory(Preset::Throughput.config())).unwrap(),
            tensors: Vec::new(),
        }
    }

    /// The results of each call of one batch, and how many dispatches they took.
    pub(crate) fn run(&mut self, calls: &[&Sample]) -> (Vec<Results>, u64) {
        let before = self.session.stats().device.dispatches;
        let tickets: Vec<_> = calls.iter().map(|call| self.submit(call)).collect();
        self.session.flush();
        let mut words: Vec<Vec<u32>> = vec![Vec::new(); calls.len()];
        while let Some(launch) = self.launch() {
            let mut flights = VecDeque::from(launch.flights);
            while let Some(flight) = flights.pop_front() {
                let outcome = block_on(flight);
                let settled = self
                    .session
                    .settle(launch.batch, launch.generation, outcome);
                let settled = settled.expect("in flight");
                flights.extend(settled.next);
                let readback = settled.outcome.unwrap();
                for answer in settled.answers {
                    let call = tickets.iter().position(|own| *own == Some(answer.ticket));
                    let words = &mut words[call.expect("one of these")];
                    words.resize(answer.total as usize, 0);
                    let at = answer.at as usize;
                    words[at..at + answer.span.words as usize]
                        .copy_from_slice(&part(&readback, &answer));
                }
            }
        }
        for (_, tensor) in self.tensors.drain(..) {
            self.session.release(tensor);
        }
        let results = calls.iter().zip(words);
        let results = results.map(|(call, words)| split(call, &words)).collect();
        (results, self.session.stats().device.dispatches - before)
    }

    /// Chunks sent so far.
    pub(crate) fn chunks(&self) -> u64 {
        self.session.stats().pieces
    }

    /// The next batch, and before it what it needs compiled.
    fn launch(&mut self) -> Option<Launch> {
        loop {
            let launch = self.session.launch(NOW);
            let works = self.session.compiles();
            let is_done = launch.is_some() || works.is_empty();
            for work in works {
                let generation = self.session.generation();
                self.session.compiled(generation, block_on(work), NOW);
            }
            if is_done {
                return launch;
            }
        }
    }

    /// The call's ticket; `None` where there is nothing to compute.
    fn submit(&mut self, Sample { chain, call }: &Sample) -> Option<framebatch::batch::Ticket> {
        let counts = chain
            .outputs()
            .iter()
            .map(|id| chain.node(*id).shape.count());
        if counts.sum::<u32>() == 0 {
            return None;
        }
        let recipe = self.session.recipe(chain.clone());
        let (mut operands, mut tensors): (Vec<&[u32]>, Vec<u32>) = (Vec::new(), Vec::new());
        for (node, words) in chain.inputs().zip(&call.inputs) {
            match node.op {
                Op::Input {
                    home: Home::Call, ..
                } => operands.push(words),
                Op::Input { home, .. } => tensors.push(self.tensor(words, home)),
                _ => unreachable!("inputs are inputs"),
            }
        }
        operands.extend([&call.constants[..], &tensors]);
        let need: u32 = operands.iter().map(|part| aligned(part.len() as u32)).sum();
        let room = self.session.room(need.into()).unwrap();
        let mut at = 0;
        for operand in operands {
            room[at..at + operand.len()].copy_from_slice(operand);
            at += aligned(operand.len() as u32) as usize;
        }
        let submission = Submission {
            recipe,
            rows: 1,
            scalar: 0,
            key: None,
        };
        Some(self.session.submit(&submission, NOW).unwrap().ticket)
    }

    /// The number of a tensor with these words; calls that have equal ones share
    /// it, or they would not be computed together.
    fn tensor(&mut self, words: &[u32], home: Home) -> u32 {
        let same = |known: &(Vec<u32>, Home)| known.0 == words && known.1 == home;
        if let Some((_, number)) = self.tensors.iter().find(|(known, _)| same(known)) {
            return *number;
        }
        // Tensors that are not packed share slabs, behind one another.
        let number = match home.packing() {
            Some(_) => self.session.hold(),
            None => self.session.hold_shared(words.len() as u32, &[]),
        };
        let filled = match home.packing() {
            Some(_) if words.is_empty() => vec![0],
            Some(packing) => packing.pack(words).unwrap(),
            None => words.to_vec(),
        };
        let packing = home.packing();
        self.session.fill_packed(number, &filled, packing).unwrap();
        self.tensors.push(((words.to_vec(), home), number));
        number
    }
}

fn part(readback: &Readback, answer: &Answer) -> Vec<u32> {
    let words = match readback {
        Readback::Host(words) => words,
        Readback::Mapped(mapped) => mapped.words(),
    };
    let start = answer.span.at as usize;
    words[start..start + answer.span.words as usize].to_vec()
}

/// Results lie one after the other, each from a multiple of 16 bytes on.
fn split(Sample { chain, .. }: &Sample, words: &[u32]) -> Results {
    let mut at = 0;
    let outputs = chain.outputs().iter().map(|id| {
        let count = chain.node(*id).shape.count();
        let start = at as usize;
        at += aligned(count);
        words[start..start + count as usize].to_vec()
    });
    outputs.collect()
}
