//! Profiles: runs a function several times, and says how the times of its batches are spread.
//!
//! The session measures its batches; here numbers are only sorted and divided.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::platform::{Mutex, block_on, now_ms};
use crate::error::Error;
use crate::session::Facts;

/// How a number differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The standard deviation: the root of Σ (xᵢ − mean)² / (runs − 1), and 0 of one run.
    pub sd: f64,
    /// The median: the smallest that half of the runs are not above.
    pub p50: f64,
    /// The 95th percentile: the smallest that 95 of 100 runs are not above.
    pub p95: f64,
}

/// What a run takes: [`Gpu::profile`]. Times in milliseconds, sizes in bytes; counts are means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Runs that counted.
    pub iterations: usize,
    /// From the start of a run until its future was ready.
    pub run_ms: Spread,
    /// Batches that were sent during a run, other callers' included; what follows is of these.
    pub batches: f64,
    /// Calls.
    pub calls: f64,
    /// Items of the calls.
    pub items: f64,
    /// Chunks.
    pub pieces: f64,
    /// Bytes that were sent to the device.
    pub bytes_up: f64,
    /// Bytes that were read back.
    pub bytes_down: f64,
    /// [`Facts::flops`]; `None` unless they are known of every batch.
    pub flops: Option<f64>,
    /// [`Facts::kernel_bytes`]; `None` unless they are known of every batch.
    pub kernel_bytes: Option<f64>,
    /// [`Facts::encode_ms`], added up over the batches of a run, as all that follows.
    pub encode_ms: Spread,
    /// [`Facts::transfer_ms`].
    pub transfer_ms: Spread,
    /// [`Facts::gpu_ms`]; `None` unless it is known of every batch.
    pub gpu_ms: Option<Spread>,
    /// [`Facts::read_ms`].
    pub read_ms: Spread,
}

impl Profile {
    /// Items a second, by the mean time of a run.
    pub fn items_per_second(&self) -> Option<f64> {
        per_second(self.items, self.run_ms.mean)
    }

    /// Bytes a second on their way to the device, by the mean time of writing operands.
    pub fn up_bytes_per_second(&self) -> Option<f64> {
        per_second(self.bytes_up, self.transfer_ms.mean)
    }

    /// Bytes a second on their way back, by the mean of [`Facts::read_ms`], which is more than
    /// the copying.
    pub fn down_bytes_per_second(&self) -> Option<f64> {
        per_second(self.bytes_down, self.read_ms.mean)
    }

    /// Bytes a second that kernels read and wrote, by the mean of [`Facts::gpu_ms`]. These are
    /// counted in front of a device's caches, and may be more than its memory gives.
    pub fn kernel_bytes_per_second(&self) -> Option<f64> {
        per_second(self.kernel_bytes?, self.gpu_ms?.mean)
    }

    /// Floating-point operations a second, by the mean of [`Facts::gpu_ms`]. A billion of these
    /// are a GFLOP/s.
    pub fn flops_per_second(&self) -> Option<f64> {
        per_second(self.flops?, self.gpu_ms?.mean)
    }

    /// Kernels' share of the time of kernels and transfers, 0 to 1, of the means.
    pub fn kernel_efficiency(&self) -> Option<f64> {
        let gpu = self.gpu_ms?.mean;
        Some(gpu / (gpu + self.transfer_ms.mean + self.read_ms.mean))
    }

    /// Kernels' share of a run's time, of the means.
    pub fn utilization(&self) -> Option<f64> {
        let share = self.gpu_ms?.mean / self.run_ms.mean;
        share.is_finite().then_some(share)
    }
}

/// When a run began and ended.
#[derive(Clone, Copy)]
struct Run {
    start: f64,
    end: f64,
}

impl Gpu {
    /// Runs `run` so many times, after a first time that warms up, and says what a run takes: in
    /// all, and by the batches that were sent meanwhile. What `run` has called when its future is
    /// polled first is flushed. It is called outside of all locks.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let profile = gpu.profile(10, || gpu.lerp(&[0.0; 64], &[1.0; 64], 0.5)).await?;
    /// assert_eq!((profile.iterations, profile.calls, profile.items), (10, 1.0, 64.0));
    /// println!("{} ms, ± {}", profile.run_ms.p50, profile.run_ms.sd);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for no iterations; the first error of a run, which ends the
    /// profile; those of every call.
    pub async fn profile<R, T>(
        &self,
        iterations: usize,
        mut run: impl FnMut() -> R,
    ) -> Result<Profile, Error>
    where
        R: Future<Output = Result<T, Error>>,
    {
        check(iterations)?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let _watch = self.on_batch(hear(&heard));
        let mut runs = Vec::with_capacity(iterations);
        for k in 0..=iterations {
            let start = now_ms();
            let mut result = pin!(run());
            let mut is_flushed = false;
            poll_fn(|context| {
                let polled = result.as_mut().poll(context);
                if !is_flushed {
                    is_flushed = true;
                    self.flush();
                }
                polled
            })
            .await?;
            let end = now_ms();
            if k > 0 {
                runs.push(Run { start, end });
            }
        }
        // Batches are told in order, each after its answers: with the answer of one more call
        // those of the runs have been told.
        let last = self.lerp(&[0.0], &[0.0], 0.0);
        self.flush();
        last.await?;
        Ok(summary(
            &runs,
            &heard.lock().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

impl Blocking {
    /// [`Gpu::profile`], of a function that blocks.
    ///
    /// ```
    /// use framebatch::{Blocking, Config};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let profile = gpu.profile(3, || gpu.lerp(&[0.0; 64], &[1.0; 64], 0.5))?;
    /// assert!(profile.run_ms.min <= profile.run_ms.max);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Gpu::profile`].
    pub fn profile<T>(
        &self,
        iterations: usize,
        mut run: impl FnMut() -> Result<T, Error>,
    ) -> Result<Profile, Error> {
        let runs = || std::future::ready(run());
        block_on(self.gpu().profile(iterations, runs))
    }
}

fn check(iterations: usize) -> Result<(), Error> {
    match iterations {
        0 => Err(Error::InvalidInput(
            "profile: iterations must be a whole number from 1, got 0".into(),
        )),
        _ => Ok(()),
    }
}

/// A listener that keeps what it hears.
fn hear(heard: &Arc<Mutex<Vec<Facts>>>) -> impl FnMut(&Facts) + Send + 'static {
    let heard = Arc::clone(heard);
    move |facts| {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(*facts);
    }
}

/// What these runs took, of which there is at least one. A batch is of the run in which it was
/// sent.
fn summary(runs: &[Run], heard: &[Facts]) -> Profile {
    let of = |run: &Run| {
        let span = run.start..=run.end;
        heard
            .iter()
            .filter(move |facts| span.contains(&facts.sent.0))
    };
    let sums = |number: fn(&Facts) -> f64| -> Vec<f64> {
        runs.iter().map(|run| of(run).map(number).sum()).collect()
    };
    let of_each = |number: fn(&Facts) -> f64| mean(&sums(number));
    // A sum is known where there are batches, and the number is known of each.
    let known_sums = |number: fn(&Facts) -> Option<f64>| -> Option<Vec<f64>> {
        let mut all = runs.iter().flat_map(of).map(number).peekable();
        let is_known = all.peek().is_some() && all.all(|number| number.is_some());
        let sum = |run| of(run).filter_map(number).sum();
        is_known.then(|| runs.iter().map(sum).collect())
    };
    let known_mean = |number| known_sums(number).map(|sums| mean(&sums));
    let took: Vec<f64> = runs.iter().map(|run| run.end - run.start).collect();
    Profile {
        iterations: runs.len(),
        run_ms: spread(&took),
        batches: of_each(|_| 1.0),
        calls: of_each(|facts| facts.calls as f64),
        items: of_each(|facts| facts.items as f64),
        pieces: of_each(|facts| facts.pieces as f64),
        bytes_up: of_each(|facts| facts.bytes_up as f64),
        bytes_down: of_each(|facts| facts.bytes_down as f64),
        flops: known_mean(|facts| facts.flops),
        kernel_bytes: known_mean(|facts| facts.kernel_bytes),
        encode_ms: spread(&sums(|facts| facts.encode_ms)),
        transfer_ms: spread(&sums(|facts| facts.transfer_ms)),
        gpu_ms: known_sums(|facts| facts.gpu_ms).map(|sums| spread(&sums)),
        read_ms: spread(&sums(|facts| facts.read_ms)),
    }
}

/// How these numbers are spread; there is at least one.
fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = values.len();
    let at = |percent: usize| sorted[(count * percent).div_ceil(100) - 1];
    let middle = mean(values);
    let squares: f64 = values.iter().map(|x| (x - middle).powi(2)).sum();
    Spread {
        mean: middle,
        min: sorted[0],
        max: sorted[count - 1],
        sd: (squares / (count - 1).max(1) as f64).sqrt(),
        p50: at(50),
        p95: at(95),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn per_second(count: f64, ms: f64) -> Option<f64> {
    (ms > 0.0).then(|| count / ms * 1e3)
}

#[cfg(test)]
#[path = "tests/profile.rs"]
mod tests;
