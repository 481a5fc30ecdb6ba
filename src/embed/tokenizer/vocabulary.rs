//! Splits words into the ids of pieces, the longest piece first.
//!
//! The vocabulary is a table with open addressing. Hashes grow byte by byte, so one pass over a
//! word gives the hashes of all pieces that begin at one place. The hash of a continuing piece goes
//! on from that of the prefix.

/// Slots of the table: a token's hash, and its id plus one; 0 where there is none.
type Slot = (u32, u32);

/// The ids of all tokens.
pub(super) struct Vocabulary {
    /// Every token, one after another, and where each begins and the last one ends.
    text: Vec<u8>,
    starts: Vec<usize>,
    slots: Vec<Slot>,
    longest: usize,
    prefix: Vec<u8>,
}

impl Vocabulary {
    /// A vocabulary of one token a line, whose id is the number of the line.
    pub(super) fn new(lines: &str, prefix: &str) -> Vocabulary {
        let tokens = lines.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let mut vocabulary = Vocabulary {
            text: Vec::with_capacity(lines.len()),
            starts: Vec::with_capacity(tokens + 1),
            slots: vec![(0, 0); (2 * tokens).next_power_of_two()],
            longest: 0,
            prefix: prefix.into(),
        };
        vocabulary.starts.push(0);
        for (id, token) in (0..).zip(lines.lines()) {
            vocabulary.push(id, token.trim_end().as_bytes());
        }
        vocabulary
    }

    fn push(&mut self, id: u32, token: &[u8]) {
        let hash = token.iter().fold(SEED, extend);
        // The last of equal lines counts.
        let slot = self.find(hash, &[], token);
        self.slots[slot] = (hash, id + 1);
        self.longest = self.longest.max(token.len());
        self.text.extend(token);
        self.starts.push(self.text.len());
    }

    /// How many tokens there are, empty lines among them.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        let hash = token.as_bytes().iter().fold(SEED, extend);
        self.id_in(self.find(hash, &[], token.as_bytes()))
    }

    fn id_in(&self, slot: usize) -> Option<u32> {
        self.slots[slot].1.checked_sub(1)
    }

    /// The slot of the token that `head` and `tail` make, or the free slot where it belongs.
    fn find(&self, hash: u32, head: &[u8], tail: &[u8]) -> usize {
        let mut at = (hash ^ hash >> 15) as usize;
        loop {
            at &= self.slots.len() - 1;
            let (other, next) = self.slots[at];
            if next == 0 {
                return at;
            }
            if other == hash {
                let id = next as usize - 1;
                let token = &self.text[self.starts[id]..self.starts[id + 1]];
                if token.len() == head.len() + tail.len()
                    && token.starts_with(head)
                    && token.ends_with(tail)
                {
                    return at;
                }
            }
            at += 1;
        }
    }

    /// Appends the ids of a word's pieces, or nothing if it is not made of pieces.
    pub(super) fn split(&self, word: &[u8], hashes: &mut Vec<u32>, out: &mut Vec<u32>) -> bool {
        let before = out.len();
        let continuing = self.prefix.iter().fold(SEED, extend);
        let (mut prefix, mut seed): (&[u8], u32) = (&[], SEED);
        let mut rest = word;
        while !rest.is_empty() {
            hashes.clear();
            let mut hash = seed;
            hashes.extend(rest.iter().take(self.longest).map(|byte| {
                hash = extend(hash, byte);
                hash
            }));
            // No token ends within a character, so no piece does.
            let longest = (0..hashes.len()).rev().find_map(|last| {
                let slot = self.find(hashes[last], prefix, &rest[..=last]);
                Some((last + 1, self.id_in(slot)?))
            });
            let Some((length, id)) = longest else {
                out.truncate(before);
                return false;
            };
            out.push(id);
            rest = &rest[length..];
            (prefix, seed) = (&self.prefix, continuing);
        }
        true
    }
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>.
const SEED: u32 = 0x811c_9dc5;

fn extend(hash: u32, byte: &u8) -> u32 {
    (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
}
