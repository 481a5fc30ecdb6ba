//! Reads the tables of characters that the library holds.
//!
//! What the numbers of a table mean is known where it is used; `tests/tokenizer/peer/tables.rs` writes
//! the tables.

use std::slice::Iter;

/// What is left to read of a table.
pub(super) struct Table(Iter<'static, u8>);

impl Table {
    pub(super) fn new(bytes: &'static [u8]) -> Table {
        Table(bytes.iter())
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// Seven bits a byte, the lowest first; the last byte is below 128.
    pub(super) fn number(&mut self) -> u32 {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.byte();
            number |= u32::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        number
    }

    /// The number that lies a step from another one, which follows in the table.
    pub(super) fn moved(&mut self, from: u32) -> u32 {
        moved(from, self.number())
    }
}

/// A number and a step, whose lowest bit is the sign.
pub(super) fn moved(from: u32, step: u32) -> u32 {
    match step & 1 {
        0 => from.wrapping_add(step >> 1),
        _ => from.wrapping_sub(step >> 1),
    }
}
