//! Profiles of batches of several sizes, and which size does the most for its time.
//!
//! One size is profiled in `profile`; here profiles are only compared.

use std::fmt;

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::profile::Profile;
use crate::error::Error;

/// The share of the largest rate that is good enough.
const ENOUGH: f64 = 0.95;

/// What batches of one size take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizedProfile {
    /// The size.
    pub size: usize,
    /// What a run of this size takes.
    pub profile: Profile,
}

impl SizedProfile {
    /// `size`, over the median of the time of a run: `None` where that took no time that a clock
    /// could tell.
    pub fn per_second(&self) -> Option<f64> {
        let ms = self.profile.run_ms.p50;
        (ms > 0.0).then(|| self.size as f64 / ms * 1e3)
    }
}

/// What batches of several sizes take: [`Gpu::profile_sizes`]. As text it is a table with a line for
/// each size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizesProfile {
    /// In the order in which the sizes were given.
    pub sizes: Vec<SizedProfile>,
}

impl SizesProfile {
    /// The smallest size that reaches 95 % of the largest [`SizedProfile::per_second`]: larger ones
    /// keep their callers waiting for next to nothing. `None` where no time is known.
    pub fn best(&self) -> Option<usize> {
        let rates = || self.sizes.iter().filter_map(SizedProfile::per_second);
        let most = rates().fold(0.0, f64::max);
        let good = |one: &&SizedProfile| one.per_second() >= Some(ENOUGH * most);
        let good = self.sizes.iter().filter(good);
        good.filter(|_| most > 0.0).map(|one| one.size).min()
    }
}

/// The head of a column, and what stands in it.
type Column = (&'static str, fn(&SizedProfile) -> Option<f64>);

/// What a column of a thousand millions of something says.
fn giga(number: Option<f64>) -> Option<f64> {
    number.map(|number| number / 1e9)
}

const COLUMNS: [Column; 10] = [
    ("size", |one| Some(one.size as f64)),
    ("ms", |one| Some(one.profile.run_ms.p50)),
    ("sd", |one| Some(one.profile.run_ms.sd)),
    ("batches", |one| Some(one.profile.batches)),
    ("kernels ms", |one| one.profile.gpu_ms.map(|ms| ms.p50)),
    ("per second", SizedProfile::per_second),
    ("GB/s up", |one| giga(one.profile.up_bytes_per_second())),
    ("GB/s down", |one| giga(one.profile.down_bytes_per_second())),
    ("GB/s kernels", |one| {
        giga(one.profile.kernel_bytes_per_second())
    }),
    ("GFLOP/s", |one| giga(one.profile.flops_per_second())),
];

impl fmt::Display for SizesProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let line = |one| COLUMNS.iter().map(|(_, of)| text(of(one))).collect();
        let lines: Vec<Vec<String>> = std::iter::once(head)
            .chain(self.sizes.iter().map(line))
            .collect();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            for (column, cell) in line.iter().enumerate() {
                let widest = lines.iter().map(|line| line[column].len()).max();
                let gap = if column > 0 { "  " } else { "" };
                write!(f, "{gap}{cell:>width$}", width = widest.unwrap_or(0))?;
            }
        }
        Ok(())
    }
}

/// Four digits, and more where there are that many whole ones.
fn text(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".into();
    };
    if value >= 1000.0 {
        return format!("{value:.0}");
    }
    // Digits behind the point, so that four are there in all.
    let whole = value.abs().log10().floor();
    let digits = if whole.is_finite() { 3.0 - whole } else { 0.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a few digits"
    )]
    let digits = digits.clamp(0.0, 12.0) as usize;
    let digits = format!("{value:.digits$}");
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').into(),
        false => digits,
    }
}

impl Gpu {
    /// [Profiles](Gpu::profile) `run` at each size of batches, one after the other, and says which
    /// of them is best. `run` is given the size, and makes that many calls, or calls of that many
    /// items.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let ones = vec![1.0; 1000];
    /// let run = |size| gpu.scale(&ones[..size], 2.0);
    /// let profile = gpu.profile_sizes(3, &[1, 10, 1000], run).await?;
    /// assert!(profile.best().is_some());
    /// println!("{profile}");
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for no sizes and for a size of 0; the errors of [`Gpu::profile`], of
    /// the first size that has one.
    pub async fn profile_sizes<R, T>(
        &self,
        iterations: usize,
        sizes: &[usize],
        mut run: impl FnMut(usize) -> R,
    ) -> Result<SizesProfile, Error>
    where
        R: Future<Output = Result<T, Error>>,
    {
        check(sizes)?;
        let mut profiles = Vec::with_capacity(sizes.len());
        for size in sizes.iter().copied() {
            let profile = self.profile(iterations, || run(size)).await?;
            profiles.push(SizedProfile { size, profile });
        }
        Ok(SizesProfile { sizes: profiles })
    }
}

impl Blocking {
    /// [`Gpu::profile_sizes`], of a function that blocks.
    ///
    /// # Errors
    ///
    /// Those of [`Gpu::profile_sizes`].
    pub fn profile_sizes<T>(
        &self,
        iterations: usize,
        sizes: &[usize],
        mut run: impl FnMut(usize) -> Result<T, Error>,
    ) -> Result<SizesProfile, Error> {
        let runs = |size| std::future::ready(run(size));
        super::platform::block_on(self.gpu().profile_sizes(iterations, sizes, runs))
    }
}

fn check(sizes: &[usize]) -> Result<(), Error> {
    match sizes.is_empty() || sizes.contains(&0) {
        true => Err(Error::InvalidInput(format!(
            "profile_sizes: sizes must be whole numbers from 1, got {sizes:?}"
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "tests/profile_sizes.rs"]
mod tests;
