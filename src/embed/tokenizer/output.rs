//! The tokens of a text as they are found.

use super::text::{Follows, Origin};

/// Ids and, where they are asked for, offsets.
#[derive(Default)]
pub(super) struct Output {
    pub(super) ids: Vec<u32>,
    pub(super) offsets: Vec<Origin>,
    pub(super) follows: Follows,
}

impl Output {
    /// Ids that follow others.
    pub(super) fn continuing(ids: Vec<u32>) -> Output {
        Output {
            ids,
            ..Output::default()
        }
    }

    /// Ids with their offsets.
    pub(super) fn aligned() -> Output {
        Output {
            follows: Follows::Origins,
            ..Output::default()
        }
    }

    pub(super) fn push(&mut self, id: u32, offsets: Origin) {
        self.ids.push(id);
        if self.follows == Follows::Origins {
            self.offsets.push(offsets);
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.ids.truncate(length);
        self.offsets.truncate(length);
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
