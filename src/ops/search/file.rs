//! Saves an index as bytes, and loads it again.
//!
//! The bytes are little-endian words: `fbix`, the version 1, the number of the metric, the number
//! of the packing (0 for 32-bit floats, then as on the wire), floats of a vector, how many
//! vectors there are, and the next id; then the ids, rising; then for each vector its scale and
//! its quads. Pages and blocks are not saved.

use super::{IndexConfig, MAX_FLOAT, Metric, Vectors, invalid};
use crate::error::Error;
use crate::graph::searching::{NOBODY, elements};
use crate::tensor::{Packing, vector_scale};

const MAGIC: u32 = u32::from_le_bytes(*b"fbix");
const VERSION: u32 = 1;
const HEADER: usize = 7;

const INFINITE_F16: u32 = 0x7c00;
/// What the largest float of a vector is rounded to.
const MAX_BF16: u32 = (MAX_FLOAT.to_bits() + 0x8000) >> 16;

impl Vectors {
    /// The index as bytes, for [`Vectors::load`].
    pub fn save(&self) -> Vec<u8> {
        let mut ids: Vec<u32> = self.all().collect();
        ids.sort_unstable();
        let config = &self.config;
        let mut words = vec![
            MAGIC,
            VERSION,
            config.metric as u32,
            config.packing.map_or(0, |packing| 1 + packing as u32),
            config.dim,
            u32::try_from(ids.len()).expect("ids are 32 bits wide"),
            self.next,
        ];
        words.extend(&ids);
        for id in ids {
            let (scale, quads) = self.vector(id);
            words.push(scale);
            words.extend(quads);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The index that [`Vectors::save`] gave as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] saying what is wrong with the bytes.
    pub fn load(bytes: &[u8]) -> Result<Vectors, Error> {
        let words: Vec<u32> = (bytes.chunks_exact(4))
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let [magic, version, metric, packing, dim, count, next] =
            match words.first_chunk::<HEADER>() {
                Some(header) if header[0] == MAGIC => *header,
                _ => return Err(wrong("they are no index that was saved")),
            };
        debug_assert_eq!(magic, MAGIC);
        if version != VERSION {
            return Err(wrong(&format!(
                "they are of version {version}, but this release reads version {VERSION}"
            )));
        }
        let metric = Metric::ALL.get(metric as usize);
        let mut packings = [None].into_iter().chain(Packing::OF_VECTORS.map(Some));
        let (Some(metric), Some(packing)) = (metric, packings.nth(packing as usize)) else {
            return Err(wrong("there is no such metric or type"));
        };
        let config = IndexConfig {
            dim,
            metric: *metric,
            packing,
        };
        let mut vectors = Vectors::new(config)?;
        let (count, each) = (count as usize, 1 + 4 * config.quads() as usize);
        let need = 4 * (HEADER as u64 + count as u64 * (1 + each as u64));
        if bytes.len() as u64 != need {
            return Err(wrong(&format!(
                "there are {}, but {count} vectors of {dim} floats take {need}",
                bytes.len()
            )));
        }
        if next == NOBODY {
            return Err(wrong("the next id is too large"));
        }
        let (ids, rest) = words[HEADER..].split_at(count);
        let is_rising = ids.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_rising || ids.last().is_some_and(|last| *last >= next) {
            return Err(wrong("the ids do not rise, or one is too large"));
        }
        for (id, vector) in ids.iter().zip(rest.chunks_exact(each)) {
            if !has_padding(&config, &vector[1..]) {
                return Err(wrong(&format!(
                    "the vector of id {id} goes on behind its {dim} floats"
                )));
            }
            if !vector
                .iter()
                .enumerate()
                .all(|(at, word)| is_known(packing, at, *word))
            {
                return Err(wrong(&format!(
                    "the vector of id {id} holds what is no number"
                )));
            }
            vectors.put(*id, vector[0], &vector[1..]);
        }
        vectors.next = next;
        Ok(vectors)
    }
}

/// Whether there are only zeros behind the end of a vector: a distance counts what is there.
fn has_padding(config: &IndexConfig, words: &[u32]) -> bool {
    let each = elements(config.packing) / 4;
    let is_zero = |(first, word): (u32, &u32)| match config.dim.saturating_sub(first) {
        0 => *word == 0,
        left if left < each => *word >> (32 / each * left) == 0,
        _ => true,
    };
    (0..).step_by(each as usize).zip(words).all(is_zero)
}

/// Whether packing can give this word of a vector, word 0 being the scale: with other words a sum of
/// products might be infinite or NaN.
fn is_known(packing: Option<Packing>, at: usize, word: u32) -> bool {
    let float = f32::from_bits(word);
    let halves = [word & 0x7fff, word >> 16 & 0x7fff].into_iter();
    match packing {
        _ if at == 0 => (0.0..=vector_scale(MAX_FLOAT)).contains(&float),
        None => (-MAX_FLOAT..=MAX_FLOAT).contains(&float),
        Some(Packing::Int8 | Packing::Int4) => true,
        Some(Packing::F16) => halves.max() < Some(INFINITE_F16),
        Some(Packing::Bf16) => halves.max() <= Some(MAX_BF16),
    }
}

fn wrong(problem: &str) -> Error {
    invalid("index: the bytes", problem)
}
