//! Residency: where the newest words of a tensor lie, and how many of them the host copies.
//!
//! Nothing is copied here, and no tensor is known by its number.

/// Where the newest words of a tensor lie. The device is the one that batches are sent to,
/// and the host is the memory of the CPU beside it, which has copies of short tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residency {
    /// Nowhere: the tensor was not filled since the device is in use. The host may still
    /// keep so many words of what the tensor was on the device before.
    Nowhere { kept: usize },
    /// On the device alone, in one buffer.
    Device,
    /// On the device, in one buffer, and so many words on the host.
    Both { words: usize },
    /// On the host alone, until the device needs the words. Calls on the CPU may read them
    /// there unless they are too many, or a call on the device is to write the tensor.
    Host { words: usize, is_readable: bool },
    /// On the device alone, in several buffers.
    Sharded,
}

impl Default for Residency {
    fn default() -> Self {
        Residency::Nowhere { kept: 0 }
    }
}

impl Residency {
    /// Words on the host that count against [`MOST_COPIED_IN_ALL`].
    pub(super) fn copied(self) -> usize {
        match self {
            Residency::Nowhere { kept: words }
            | Residency::Both { words }
            | Residency::Host {
                words,
                is_readable: true,
            } => words,
            _ => 0,
        }
    }

    /// Whether only the host has the words.
    pub(super) fn is_deferred(self) -> bool {
        matches!(self, Residency::Host { .. })
    }
}

/// Words of one tensor that the host copies at most, 1 MiB. A larger tensor keeps its calls
/// on the GPU.
pub(super) const MOST_COPIED: usize = 1 << 18;

/// Words of all tensors that the host copies at most, 32 MiB.
pub(super) const MOST_COPIED_IN_ALL: usize = 1 << 23;
