//! Indexes of vectors: what people ask for, in the words that kernels read.
//!
//! Vectors lie in *blocks* of 64: a scale for each, an id for each, then their
//! quads of words, of all 64 the first, of all the second, and so on. A quad is
//! four 32-bit floats, eight 16-bit ones or sixteen whole numbers, the first in the
//! lowest bits; behind a vector's end are zeros. Blocks make up *pages*.

mod file;
mod vectors;

pub use vectors::{Change, PAGE, Vectors};

use crate::error::Error;
use crate::graph::searching::{MOST_RESULTS, elements};
use crate::tensor::Packing;

/// Floats that a vector may have.
pub const MAX_DIM: u32 = 4096;

/// The largest magnitude of a float of a vector: no sum of products overflows.
pub const MAX_FLOAT: f32 = 1e17;

/// How alike a query and a vector are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// The cosine of the angle between them, from −1 to 1; 0 where either is zero.
    /// Vectors are scaled to length 1 when they are added.
    #[default]
    Cosine,
    /// Σ xᵢ·qᵢ.
    Dot,
    /// Σ (xᵢ − qᵢ)², the squared distance: the smallest is the best.
    L2,
}

impl Metric {
    /// Every metric, in the order of their numbers in files.
    pub const ALL: [Metric; 3] = [Metric::Cosine, Metric::Dot, Metric::L2];
}

/// What an index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// Floats of a vector: up to [`MAX_DIM`].
    pub dim: u32,
    /// What results are ordered by.
    pub metric: Metric,
    /// How vectors are kept: 32-bit floats if not packed. F16 and Bf16 are as
    /// [`Packing`] says; an Int8 vector is whole numbers from −127 to 127 times its
    /// own scale, off by at most 1/254 of its largest magnitude. Queries are 32-bit
    /// floats, and so are sums.
    pub packing: Option<Packing>,
}

impl IndexConfig {
    /// Vectors of 32-bit floats compared by their angle.
    pub fn new(dim: u32) -> IndexConfig {
        IndexConfig {
            dim,
            metric: Metric::default(),
            packing: None,
        }
    }

    /// Quads of words of a vector.
    pub fn quads(&self) -> u32 {
        self.dim.div_ceil(elements(self.packing))
    }

    /// Checks vectors laid end to end; how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming both widths, or the float that is none.
    pub fn check(&self, [about, item]: [&str; 2], floats: &[f32]) -> Result<usize, Error> {
        let dim = self.dim as usize;
        if !floats.len().is_multiple_of(dim) {
            return Err(invalid(
                about,
                &format!(
                    "{} floats are not a multiple of {dim}, the width of the index's vectors",
                    floats.len()
                ),
            ));
        }
        let most = match (self.packing, self.metric) {
            (Some(Packing::F16), Metric::Dot | Metric::L2) => 65_504.0,
            _ => MAX_FLOAT,
        };
        // A NaN is not within either.
        match floats.iter().position(|x| !(-most..=most).contains(x)) {
            None => Ok(floats.len() / dim),
            Some(at) => Err(invalid(
                about,
                &format!(
                    "{item} {} has {} at {}; give numbers from -{most:e} to {most:e}",
                    at / dim,
                    floats[at],
                    at % dim
                ),
            )),
        }
    }

    /// The floats that stand for a vector: by its angle, those of length 1.
    pub fn scaled(&self, vector: &[f32]) -> Vec<f32> {
        if self.metric != Metric::Cosine {
            return vector.to_vec();
        }
        let squares = vector.iter().map(|x| f64::from(*x) * f64::from(*x));
        let length = squares.sum::<f64>().sqrt();
        let scaled = |x: &f32| match length {
            0.0 => 0.0,
            #[expect(clippy::cast_possible_truncation, reason = "rounded to a float")]
            length => (f64::from(*x) / length) as f32,
        };
        vector.iter().map(scaled).collect()
    }

    /// A call's queries as kernels read them.
    ///
    /// # Errors
    ///
    /// Those of [`IndexConfig::check`].
    pub fn queries(&self, floats: &[f32]) -> Result<Vec<f32>, Error> {
        // Queries are never packed.
        let unpacked = IndexConfig {
            packing: None,
            ..*self
        };
        let count = unpacked.check(["search", "query"], floats)?;
        let padded = (self.quads() * elements(self.packing)) as usize;
        let mut queries = Vec::with_capacity(count * padded);
        for query in floats.chunks_exact(self.dim as usize) {
            queries.extend(self.scaled(query));
            queries.resize(queries.len().next_multiple_of(padded), 0.0);
        }
        Ok(queries)
    }

    fn check_self(&self) -> Result<(), Error> {
        match self.dim {
            1..=MAX_DIM => Ok(()),
            dim => Err(invalid(
                "index",
                &format!("dim is {dim}, but vectors have 1 to {MAX_DIM} floats"),
            )),
        }
    }
}

/// Checks how many results a query is to have.
///
/// # Errors
///
/// [`Error::InvalidInput`] where the index has not so many vectors, or no kernel
/// gives so many results.
pub fn check_count(count: usize, vectors: usize) -> Result<(), Error> {
    let most = MOST_RESULTS as usize;
    match count {
        0 => Err(invalid("search", "k is 0; ask for at least 1 result")),
        _ if count > most => Err(invalid(
            "search",
            &format!("k is {count}, but a search gives at most {most} results"),
        )),
        _ if count > vectors => Err(invalid(
            "search",
            &format!("k is {count}, but the index has {vectors} vectors"),
        )),
        _ => Ok(()),
    }
}

/// Rounds a count up, so that one that grows takes few values: to three
/// significant bits and a next one.
pub fn rounded(count: u32) -> u32 {
    let step = (count / 8).max(1);
    count.next_multiple_of(1 << step.ilog2())
}

fn invalid(about: &str, problem: &str) -> Error {
    Error::InvalidInput([about, ": ", problem].concat())
}
