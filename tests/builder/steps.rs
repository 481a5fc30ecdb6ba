//! Ten thousand steps while devices are lost and memory is short.
//!
//! Tensors hold whole numbers that no two moments share, and a model in plain vectors makes the
//! steps that were answered: a step that ran twice or not at all, and a value that is old, empty
//! or of another tensor, differs from the model. `STEPS_RUNS` says how many runs there are, each
//! with moments of its own, from `STEPS_SEED` on.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use framebatch::{BatchConfig, Call, Code, Config, EngineChoice, Error, Gpu, Preset, Tensor};
use pollster::block_on;

use crate::engines::{in_time, open_as};
use crate::samples::{Samples, times};
use crate::steps_model::{BELOW, Kind, LARGE, SMALL, initial, sides};

/// Tensors that calls step.
const STATES: usize = 24;

/// Floats of a tensor that takes memory away.
const MUCH: usize = 1 << 16;

/// A tensor that calls step, and what it holds by the model.
struct State {
    tensor: Tensor,
    values: Vec<f32>,
    is_lost: bool,
}

enum Asked {
    Step {
        kind: Kind,
        from: usize,
        other: usize,
        to: usize,
    },
    Write {
        to: usize,
        at: usize,
        data: Vec<f32>,
    },
    Read {
        of: usize,
    },
    /// Reads a tensor that was computed of a state.
    Compute {
        of: usize,
    },
}

/// What a call gives: floats, or none where it writes.
type Answer = Result<Vec<f32>, Error>;

enum Pending {
    Waiting(Pin<Box<dyn Future<Output = Answer>>>),
    Over(Answer),
}

/// What goes wrong in the middle of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    Loss,
    Shortage,
    Both,
}

/// How long a device may owe an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Patience {
    Usual,
    /// A time so short that devices at work count as stalled now and then, and are lost.
    Short,
}

#[derive(Debug, Default)]
struct Report {
    steps: usize,
    losses: usize,
    shortages: usize,
    lost: usize,
    refused: usize,
}

struct Simulation {
    gpu: Gpu,
    samples: Samples,
    states: Vec<State>,
    /// What the program gave, which every device gets again.
    kept: Tensor,
    times: u32,
    asked: Vec<(Asked, Pending)>,
    report: Report,
    patience: Patience,
}

/// Starts a call, as programs do that do not await it at once.
fn start(future: impl Future<Output = Answer> + 'static) -> Pending {
    let mut future: Pin<Box<dyn Future<Output = Answer>>> = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(answer) => Pending::Over(answer),
        Poll::Pending => Pending::Waiting(future),
    }
}

impl Pending {
    fn wait(&mut self) {
        if let Pending::Waiting(future) = self {
            *self = Pending::Over(block_on(future));
        }
    }
}

async fn step(gpu: Gpu, kind: Kind, [from, other, to]: [Tensor; 3]) -> Answer {
    let mut batch = gpu.batch();
    let x = batch.tensor(&from)?;
    let value = match kind {
        Kind::Count => {
            let one = batch.number(1.0)?;
            batch.add(x, one)?
        }
        Kind::Turn => {
            let count = to.shape()[0];
            let [rows, columns] = sides(count as usize).map(|side| side as u32);
            let square = batch.reshape(x, &[rows, columns])?;
            let turned = batch.transpose(square, &[])?;
            let flat = batch.reshape(turned, &[count])?;
            let one = batch.number(1.0)?;
            batch.add(flat, one)?
        }
        Kind::Meet => {
            let y = batch.tensor(&other)?;
            let sum = batch.add(x, y)?;
            let below = batch.number(BELOW)?;
            batch.mod_(sum, below)?
        }
    };
    batch.compute_into(value, &to)?;
    batch.execute().await?;
    Ok(Vec::new())
}

async fn compute(gpu: Gpu, of: Tensor) -> Answer {
    let mut batch = gpu.batch();
    let x = batch.tensor(&of)?;
    let doubled = batch.scale(x, 2.0)?;
    let made = batch.compute(doubled)?;
    batch.execute().await?;
    gpu.read(&made).await
}

async fn answer(call: Call<f32>) -> Answer {
    call.await
}

impl Simulation {
    fn new(gpu: Gpu, seed: u64, patience: Patience) -> Simulation {
        let state = |number: usize| {
            let length = if number < STATES - 2 { SMALL } else { LARGE };
            let values = initial(length as usize, number as u32);
            State {
                tensor: gpu.tensor(&values, &[length]).unwrap(),
                values,
                is_lost: false,
            }
        };
        Simulation {
            states: (0..STATES).map(state).collect(),
            kept: gpu.tensor(&initial(500, 3), &[500]).unwrap(),
            gpu,
            samples: Samples(seed),
            times: STATES as u32,
            asked: Vec::new(),
            report: Report::default(),
            patience,
        }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.samples.unit() * end as f32) as usize
    }

    /// Another state of the same length.
    fn alike(&mut self, to: usize) -> usize {
        if to < STATES - 2 {
            self.below(STATES - 2)
        } else {
            STATES - 2 + self.below(2)
        }
    }

    /// Whether nothing may be refused.
    fn is_calm(&self, trouble: Trouble) -> bool {
        trouble == Trouble::None && self.patience == Patience::Usual
    }

    fn ask_step(&mut self, from: usize, to: usize) {
        let kind = [Kind::Count, Kind::Turn, Kind::Meet][self.below(3)];
        let other = self.alike(to);
        let tensors = [from, other, to].map(|at| self.states[at].tensor.clone());
        let asked = Asked::Step {
            kind,
            from,
            other,
            to,
        };
        self.ask(asked, step(self.gpu.clone(), kind, tensors));
    }

    fn ask_write(&mut self, to: usize, at: usize, count: usize) {
        self.times += 1;
        let data = initial(self.states[to].values.len(), self.times)[at..at + count].to_vec();
        let call = self.gpu.write(&self.states[to].tensor, at as u32, &data);
        let written = async move { call.await.map(|_| Vec::new()) };
        self.ask(Asked::Write { to, at, data }, written);
    }

    fn ask(&mut self, asked: Asked, future: impl Future<Output = Answer> + 'static) {
        self.asked.push((asked, start(future)));
    }

    /// One call at random.
    fn ask_any(&mut self) {
        let to = self.below(STATES);
        let length = self.states[to].values.len();
        match self.below(100) {
            0..64 => self.ask_step(to, to),
            64..70 => {
                let from = self.alike(to);
                self.ask_step(from, to);
            }
            70..72 => self.ask_write(to, 0, length),
            72..76 => {
                let (at, count) = (self.below(length - 5), 1 + self.below(4));
                self.ask_write(to, at, count);
            }
            76..82 => {
                let computed = compute(self.gpu.clone(), self.states[to].tensor.clone());
                self.ask(Asked::Compute { of: to }, computed);
            }
            _ => {
                let call = self.gpu.read(&self.states[to].tensor);
                self.ask(Asked::Read { of: to }, answer(call));
            }
        }
    }

    /// Takes all memory that the budget leaves.
    fn take_memory(&mut self) -> Vec<Tensor> {
        self.report.shortages += 1;
        let floats = vec![1.0; MUCH];
        let take = || self.gpu.tensor(&floats, &[MUCH as u32]).ok();
        let mut taken: Vec<Tensor> = std::iter::from_fn(take).take(64).collect();
        taken.truncate(taken.len().saturating_sub(1)); // Room for some of the calls.
        taken
    }

    fn round(&mut self, trouble: Trouble) {
        let count = 20 + self.below(1000);
        let [begin, end] = [0, 0].map(|_| self.below(count));
        let (mut taken, mut destroyer) = (Vec::new(), None);
        for number in 0..count {
            if number == begin && matches!(trouble, Trouble::Shortage | Trouble::Both) {
                taken = self.take_memory();
            }
            if number == begin && matches!(trouble, Trouble::Loss | Trouble::Both) {
                self.report.losses += 1;
                let device = self.gpu.wgpu_device();
                let moment = Duration::from_micros(self.below(20_000) as u64);
                destroyer = Some(thread::spawn(move || {
                    thread::sleep(moment);
                    if let Some(device) = device {
                        device.destroy();
                    }
                }));
            }
            if number == end {
                taken.clear();
            }
            self.ask_any();
            if self.below(60) == 0 {
                self.asked.last_mut().expect("just asked").1.wait();
            }
        }
        self.asked
            .iter_mut()
            .for_each(|(_, pending)| pending.wait());
        drop(taken);
        if let Some(destroyer) = destroyer {
            destroyer.join().expect("it destroys a device");
        }
        self.follow(trouble);
        self.probe(trouble);
    }

    /// Makes the answered calls in the model, and compares what they read.
    fn follow(&mut self, trouble: Trouble) {
        for (asked, pending) in std::mem::take(&mut self.asked) {
            let Pending::Over(answer) = pending else {
                panic!("it was waited for");
            };
            let reads = match &asked {
                Asked::Step {
                    kind: Kind::Meet,
                    from,
                    other,
                    ..
                } => vec![*from, *other],
                Asked::Step { from, .. } => vec![*from],
                Asked::Read { of } | Asked::Compute { of } => vec![*of],
                Asked::Write { .. } => Vec::new(),
            };
            let is_lost = reads.iter().any(|at| self.states[*at].is_lost);
            let found = match answer {
                Ok(found) => found,
                Err(error) => {
                    assert_typed(&error);
                    self.report.refused += 1;
                    assert!(is_lost || !self.is_calm(trouble), "in calm: {error}");
                    continue;
                }
            };
            assert!(!is_lost, "a lost tensor was read");
            self.make(&asked, &found);
        }
    }

    fn make(&mut self, asked: &Asked, found: &[f32]) {
        let states = &mut self.states;
        match asked {
            Asked::Step {
                kind,
                from,
                other,
                to,
            } => {
                self.report.steps += 1;
                states[*to].values = kind.model(&states[*from].values, &states[*other].values);
                states[*to].is_lost = false;
            }
            Asked::Write { to, at, data } => {
                let State {
                    values, is_lost, ..
                } = &mut states[*to];
                values[*at..at + data.len()].copy_from_slice(data);
                *is_lost &= data.len() < values.len();
            }
            Asked::Read { of } => assert_eq!(found, states[*of].values, "state {of}"),
            Asked::Compute { of } => {
                let doubled: Vec<f32> = states[*of].values.iter().map(|x| 2.0 * x).collect();
                assert_eq!(found, doubled, "computed of state {of}");
            }
        }
    }

    /// Reads everything while nothing else is going on: what is lost says so.
    fn probe(&mut self, trouble: Trouble) {
        let is_calm = self.is_calm(trouble);
        let kept = self.gpu.read(&self.kept);
        let tensors = self.states.iter().map(|state| &state.tensor);
        let reads: Vec<Call<f32>> = tensors.map(|tensor| self.gpu.read(tensor)).collect();
        match block_on(kept) {
            Ok(kept) => assert_eq!(kept, initial(500, 3)),
            // Three devices in a row may seem to stall over one batch.
            Err(error) => assert!(
                self.patience == Patience::Short,
                "the program gave it: {error}"
            ),
        }
        for (number, (state, read)) in self.states.iter_mut().zip(reads).enumerate() {
            match block_on(read) {
                Ok(found) => {
                    assert!(!state.is_lost, "state {number} is lost, and was read");
                    assert_eq!(found, state.values, "state {number}");
                }
                Err(error) => {
                    assert_eq!(error.code(), Code::DeviceLost, "{error}");
                    assert!(state.is_lost || !is_calm, "in calm: {error}");
                    self.report.lost += usize::from(!state.is_lost);
                    state.is_lost = true;
                }
            }
        }
    }

    /// Writes lost states whole, most of them, from others or from new data.
    fn mend(&mut self) {
        for to in 0..STATES {
            if !self.states[to].is_lost || self.below(5) == 0 {
                continue;
            }
            let from = self.alike(to);
            if self.states[from].is_lost || self.below(2) == 0 {
                self.ask_write(to, 0, self.states[to].values.len());
            } else {
                self.ask_step(from, to);
            }
        }
        self.asked
            .iter_mut()
            .for_each(|(_, pending)| pending.wait());
        self.follow(Trouble::None);
    }
}

fn assert_typed(error: &Error) {
    let code = error.code();
    let is_known = matches!(code, Code::DeviceLost | Code::OutOfMemory);
    assert!(is_known, "{code:?}: {error}");
}

fn run(gpu: Gpu, seed: u64, patience: Patience) {
    let mut simulation = Simulation::new(gpu, seed, patience);
    let mut round = 0;
    while simulation.report.steps < times(1500, 10_000) {
        let troubles = [Trouble::Loss, Trouble::Shortage, Trouble::Both];
        let trouble = match round % 2 {
            1 => troubles[round / 2 % 3],
            _ => Trouble::None,
        };
        simulation.round(trouble);
        simulation.mend();
        round += 1;
    }
    let report = &simulation.report;
    let is_troubled = report.losses > 0 && report.shortages > 0;
    assert!(
        is_troubled || patience == Patience::Short,
        "seed {seed}: {report:?}"
    );
    let stats = simulation.gpu.stats();
    assert_eq!(stats.pending, 0);
    assert_eq!(stats.calls, stats.settled + stats.rejected);
}

/// A number of the environment's, or the usual one.
fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name);
    given.map_or(usual, |given| given.parse().expect("a number"))
}

fn settings(preset: Preset) -> Config {
    Config {
        engine: EngineChoice::Gpu,
        batch: BatchConfig {
            memory_budget: Some(6 << 20),
            ..preset.config()
        },
        ..Config::default()
    }
}

#[test]
fn thousands_of_steps_with_losses_and_shortages_give_right_values_or_typed_errors() {
    let first = number("STEPS_SEED", 7);
    for seed in first..first + number("STEPS_RUNS", 1) {
        // Few steps go together, or many.
        let preset = match seed % 2 {
            0 => Preset::Eager,
            _ => Preset::Throughput,
        };
        in_time(move || run(open_as(settings(preset)), seed, Patience::Usual));
    }
}

#[test]
fn thousands_of_steps_on_devices_that_seem_to_stall_give_right_values_or_typed_errors() {
    let first = number("STEPS_SEED", 7);
    for seed in first..first + number("STEPS_RUNS", times(2, 20)) {
        // Work takes longer than that now and then, wherever it is.
        let config = Config {
            stall_ms: Some([9.0, 11.0, 14.0, 17.0, 20.0][(seed % 5) as usize]),
            ..settings(Preset::Eager)
        };
        in_time(move || run(open_as(config), seed, Patience::Short));
    }
}
