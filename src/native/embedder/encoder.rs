//! An encoder as a structure of calls. Each length of texts has a structure, which is looked up by
//! the encoder's number instead of by its chain.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::embed::{Config, Tokens, forward, forward_into};
use crate::error::Error;
use crate::graph::chain::{Chain, Home};

/// Who takes the vector of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::native) enum Destination {
    /// The caller.
    Host,
    /// A tensor.
    Tensor,
}

/// The sizes of a model, and where its tensors lie.
#[derive(Debug)]
pub(in crate::native) struct Encoder {
    number: u64,
    pub(super) config: Config,
    homes: Vec<Home>,
}

impl Encoder {
    pub(super) fn new(config: Config, homes: Vec<Home>) -> Encoder {
        static ENCODERS: AtomicU64 = AtomicU64::new(0);
        Encoder {
            number: ENCODERS.fetch_add(1, Ordering::Relaxed),
            config,
            homes,
        }
    }

    /// The chain of a text.
    pub(in crate::native) fn chain(
        &self,
        tokens: Tokens,
        destination: Destination,
    ) -> Result<Chain, Error> {
        match destination {
            Destination::Host => forward(&self.config, tokens, &self.homes),
            Destination::Tensor => forward_into(&self.config, tokens, &self.homes),
        }
    }
}

impl PartialEq for Encoder {
    fn eq(&self, other: &Encoder) -> bool {
        self.number == other.number
    }
}

impl Eq for Encoder {}

impl Hash for Encoder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
