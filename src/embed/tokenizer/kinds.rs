//! A number for each character, read of a table. What the numbers mean is known where they are used.

use super::table::Table;

/// Characters below this one lie in one array; the others are a few long runs.
const DENSE: u32 = 0x2_0000;

/// A number for each character.
pub(super) struct Kinds {
    dense: Vec<u8>,
    /// Where each run ends that reaches beyond the array, and the number of its characters.
    runs: Vec<(u32, u8)>,
}

impl Kinds {
    /// Reads runs of characters of one kind, to the last of all.
    pub(super) fn read(table: &mut Table) -> Kinds {
        let mut kinds = Kinds {
            dense: vec![0; DENSE as usize],
            runs: Vec::new(),
        };
        let mut at = 0;
        while at <= u32::from(char::MAX) {
            // No run is empty, so this ends.
            let end = at + table.number().max(1);
            let kind = table.byte();
            kinds.dense[at.min(DENSE) as usize..end.min(DENSE) as usize].fill(kind);
            if end > DENSE {
                kinds.runs.push((end, kind));
            }
            at = end;
        }
        kinds
    }

    pub(super) fn of(&self, c: char) -> u8 {
        let c = u32::from(c);
        match self.dense.get(c as usize) {
            Some(kind) => *kind,
            None => self.runs[self.runs.partition_point(|(end, _)| *end <= c)].1,
        }
    }
}
