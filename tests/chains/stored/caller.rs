//! A caller that takes steps on its own tensors, in a session and by the oracle.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use framebatch::{Gpu, Tensor};
use pollster::block_on;

use super::step::{Formula, Goal, Step, square};
use crate::oracle;

/// What a step reads: the floats of each value, when its batch was computed.
type Reading = Pin<Box<dyn Future<Output = Vec<Vec<f32>>>>>;

/// Whether a step is awaited before the next one is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Steps wait for the next flush.
    Together,
    /// Each step is sent and awaited.
    OneByOne,
}

/// A caller of a session.
pub(crate) struct Caller {
    gpu: Gpu,
    tensors: Vec<Tensor>,
    pending: Vec<Reading>,
    /// The floats of all that was read, in order.
    pub(crate) read: Vec<Vec<f32>>,
}

impl Caller {
    pub(crate) fn new(gpu: &Gpu, side: u32, tensors: &[Vec<f32>]) -> Caller {
        let tensors = tensors.iter();
        let tensors = tensors.map(|floats| gpu.tensor(floats, &[side, side]).unwrap());
        Caller {
            gpu: gpu.clone(),
            tensors: tensors.collect(),
            pending: Vec::new(),
            read: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, step: &Step, pace: Pace) {
        let reading: Reading = match step {
            Step::Flush => return,
            Step::Read { tensor } => {
                let read = self.gpu.read(&self.tensors[*tensor]);
                Box::pin(async move { vec![read.await.unwrap()] })
            }
            Step::Write { tensor, at, floats } => {
                let written = self.gpu.write(&self.tensors[*tensor], *at, floats);
                Box::pin(async move {
                    written.await.unwrap();
                    Vec::new()
                })
            }
            Step::Batch(values) => self.batch(values),
        };
        self.pending.push(reading);
        if pace == Pace::OneByOne {
            self.gpu.flush();
            self.hear();
        }
    }

    /// Waits for all that was asked for.
    pub(crate) fn hear(&mut self) {
        for reading in self.pending.drain(..) {
            self.read.extend(block_on(reading));
        }
    }

    /// Reads every tensor.
    pub(crate) fn read_all(&mut self) {
        for tensor in 0..self.tensors.len() {
            self.take(&Step::Read { tensor }, Pace::Together);
        }
    }

    fn batch(&mut self, values: &[(Formula, Goal)]) -> Reading {
        let mut batch = self.gpu.batch();
        let (mut kept, mut new) = (Vec::new(), Vec::new());
        for (formula, goal) in values {
            let value = formula.record(&mut batch, &self.tensors).unwrap();
            match goal {
                Goal::New => new.push(batch.compute(value).unwrap()),
                Goal::Into(tensor) => batch.compute_into(value, &self.tensors[*tensor]).unwrap(),
                Goal::Read => {
                    batch.keep(value).unwrap();
                    kept.push(value);
                }
            }
        }
        self.tensors.extend(new);
        let mut execution: Reading = Box::pin(async move {
            batch.execute().await.unwrap();
            let mut read = Vec::new();
            for value in kept {
                read.push(batch.read(value).await.unwrap());
            }
            read
        });
        // The batch is sent when its future is polled first. An earlier flush may still take it.
        let mut context = Context::from_waker(Waker::noop());
        match execution.as_mut().poll(&mut context) {
            Poll::Ready(read) => Box::pin(ready(read)),
            Poll::Pending => execution,
        }
    }
}

/// What the oracle says of the same steps.
pub(crate) struct Expectation {
    tensors: Vec<oracle::Tensor>,
    pub(crate) read: Vec<oracle::Tensor>,
}

impl Expectation {
    pub(crate) fn new(side: u32, tensors: &[Vec<f32>]) -> Expectation {
        let tensors = tensors.iter().map(|floats| {
            let values = floats.iter().map(|value| f64::from(*value));
            oracle::Tensor::of(square(side), values)
        });
        Expectation {
            tensors: tensors.collect(),
            read: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Flush => {}
            Step::Read { tensor } => self.read.push(self.tensors[*tensor].clone()),
            Step::Write { tensor, at, floats } => {
                let values = floats.iter().map(|value| f64::from(*value));
                let shape = framebatch::graph::shape::Shape::new(&[floats.len() as u32]).unwrap();
                let written = oracle::Tensor::of(shape, values).values;
                let at = *at as usize;
                let own = &mut self.tensors[*tensor].values;
                own.splice(at..at + written.len(), written);
            }
            Step::Batch(values) => {
                let found = values
                    .iter()
                    .map(|(formula, _)| formula.expected(&self.tensors));
                let found: Vec<oracle::Tensor> = found.collect();
                for ((_, goal), value) in values.iter().zip(found) {
                    match goal {
                        Goal::New => self.tensors.push(value),
                        Goal::Into(tensor) => self.tensors[*tensor] = value,
                        Goal::Read => self.read.push(value),
                    }
                }
            }
        }
    }

    pub(crate) fn read_all(&mut self) {
        self.read.extend(self.tensors.iter().cloned());
    }
}
