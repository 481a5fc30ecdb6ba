//! Indexes of vectors: configuration, checks and queries, in the words that kernels read.
//!
//! Vectors lie in *blocks* of 64: a scale for each vector, its id + 1 for each, or 0 in a place
//! without a vector, then the first quads of all 64 vectors, the second quads, and so on. A quad of words holds four 32-bit floats, eight
//! 16-bit floats or sixteen 8-bit integers, the first in the lowest bits, and zeros behind the
//! end of a vector. Blocks make up *pages*. How a search is computed is said in `plan::search`.

mod device_places;
mod file;
mod masks;
mod vectors;

pub use crate::graph::insertion::MAX_FLOAT;
pub use device_places::{DevicePlaces, PageRows};
pub use vectors::{Change, PAGE, Vectors, read_vector};

use crate::error::Error;
use crate::graph::insertion::Insertion;
use crate::graph::searching::{MOST_RESULTS, elements};
use crate::tensor::{Packing, unit_vector};

/// The most floats of a vector.
pub const MAX_DIM: u32 = 4096;

/// How alike a query and a vector are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// The cosine of the angle between both, from −1 to 1; 0 where either has length 0.
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

/// What an index holds, and how vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// Floats of a vector: up to [`MAX_DIM`].
    pub dim: u32,
    /// What results are ordered by.
    pub metric: Metric,
    /// How vectors are packed; `None` for 32-bit floats. F16 and Bf16 are as [`Packing`] says; an
    /// Int8 vector is whole numbers from −127 to 127 times a scale of its own, off by at most
    /// 1/254 of its largest magnitude. Int4 is refused. Queries and sums are 32-bit floats.
    pub packing: Option<Packing>,
}

impl IndexConfig {
    /// The configuration of vectors of 32-bit floats that are compared by their angle.
    pub fn new(dim: u32) -> IndexConfig {
        IndexConfig {
            dim,
            metric: Metric::default(),
            packing: None,
        }
    }

    /// How many quads of words a vector takes.
    pub fn quads(&self) -> u32 {
        self.dim.div_ceil(elements(self.packing))
    }

    /// The structure of an insertion of vectors.
    pub fn insertion(&self) -> Insertion {
        Insertion {
            packing: self.packing,
            is_scaled: self.metric == Metric::Cosine,
            dim: self.dim,
            has_source: true,
        }
    }

    /// Checks vectors laid end to end, and returns how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming both widths, or the float that is too large or no number.
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
        let most = self.insertion().most();
        // No range contains NaN.
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

    /// A vector as it is compared: scaled to length 1, if angles are compared.
    pub fn scaled(&self, vector: &[f32]) -> Vec<f32> {
        if self.metric != Metric::Cosine {
            return vector.to_vec();
        }
        unit_vector(vector)
    }

    /// Queries as kernels read them: scaled, and padded to whole quads.
    ///
    /// # Errors
    ///
    /// The errors of [`IndexConfig::check`].
    pub fn queries(&self, floats: &[f32]) -> Result<Vec<f32>, Error> {
        // Queries are not packed, so that a packing's range does not hold for them.
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
        if !(1..=MAX_DIM).contains(&self.dim) {
            let problem = format!(
                "dim is {}, but vectors have 1 to {MAX_DIM} floats",
                self.dim
            );
            return Err(invalid("index", &problem));
        }
        match self.packing {
            Some(packing) if !Packing::OF_VECTORS.contains(&packing) => {
                let name = packing.name();
                let problem = format!("vectors are never kept as {name}; take int8, or 16 bits");
                Err(invalid("index", &problem))
            }
            _ => Ok(()),
        }
    }
}

/// Checks how many results a query asks for.
///
/// # Errors
///
/// [`Error::InvalidInput`] where the index has fewer vectors, or kernels give fewer results.
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

/// Rounds a count up to four significant bits, so that a count that grows takes few different
/// values.
pub fn rounded(count: u32) -> u32 {
    let step = (count / 8).max(1);
    count.next_multiple_of(1 << step.ilog2())
}

fn invalid(about: &str, problem: &str) -> Error {
    Error::InvalidInput([about, ": ", problem].concat())
}
