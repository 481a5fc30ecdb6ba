//! Words that no plan has.

use framebatch::plan::Params;

use crate::samples::{Samples, times};

/// Words of each buffer.
pub(crate) const WORDS: usize = 1 << 10;

/// Words that are a strange count, address or float.
pub(crate) const STRANGE: [u32; 14] = [
    0,
    1,
    3,
    64,
    4096,
    0x3f80_0000, // The float 1.
    0x7149_f2ca, // The float 1e30.
    0x7f80_0000, // Infinity
    0x7fc0_0000, // and NaN.
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffc0, // A step further, counts begin again.
    0xffff_ffe0,
    u32::MAX,
];

/// What the buffers of a dispatch hold.
pub(crate) struct Filling {
    /// Words of the table's only entry behind its first thread and their count.
    pub(crate) entry: Vec<u32>,
    /// Words of the operands, and of the table behind its entry.
    pub(crate) words: Vec<u32>,
    pub(crate) params: Params,
}

impl Filling {
    /// One entry that all threads work for, so that none is idle.
    pub(crate) fn of(entry: Vec<u32>, words: Vec<u32>) -> Filling {
        let params = Params {
            table: 0,
            shift: 31,
            blocks: 1,
            width: 1,
            each: 0,
            mode: 0,
        };
        Filling {
            entry,
            words,
            params,
        }
    }
}

/// Small numbers and strange ones.
pub(crate) fn mixed(samples: &mut Samples, count: usize) -> Vec<u32> {
    let word = || {
        let bits = samples.bits();
        match bits % 3 {
            0 => (bits >> 32) as u32 % 16,
            1 => STRANGE[(bits >> 32) as usize % STRANGE.len()],
            _ => (bits >> 32) as u32,
        }
    };
    std::iter::repeat_with(word).take(count).collect()
}

/// Words of an entry that differ: kernels have fewer.
const ENTRY: usize = 48;

pub(crate) fn fillings() -> Vec<Filling> {
    let samples = &mut Samples(17);
    let mut all = Vec::new();
    for strange in STRANGE {
        all.push(Filling::of(vec![strange; ENTRY], vec![strange; WORDS]));
        // Sizes are strange where data is small, and the other way around.
        all.push(Filling::of(vec![strange; ENTRY], vec![1; WORDS]));
        all.push(Filling::of(vec![1; ENTRY], vec![strange; WORDS]));
    }
    // One word of an entry is a count that is too large, and the others are sound.
    for word in 0..ENTRY {
        let counts = [(u32::MAX, 1), (0xffff_ffe0, 4), (0x7149_f2ca, 1)];
        for (strange, other) in counts.into_iter().take(times(1, 3)) {
            let mut entry = vec![other; ENTRY];
            entry[word] = strange;
            all.push(Filling::of(entry, mixed(samples, WORDS)));
        }
    }
    let falling = (0..WORDS as u32).rev();
    all.push(Filling::of(vec![0; ENTRY], falling.collect()));
    for _ in 0..times(20, 60) {
        let mut filling = Filling::of(mixed(samples, ENTRY), mixed(samples, WORDS));
        let [width, each, mode] = std::array::from_fn(|_| samples.bits() as u32);
        filling.params.width = width;
        filling.params.each = each;
        filling.params.mode = mode % 3;
        all.push(filling);
    }
    // Params that no plan has find any entry, or none.
    for _ in 0..times(10, 20) {
        let mut filling = Filling::of(mixed(samples, ENTRY), mixed(samples, WORDS));
        let params = mixed(samples, 6);
        filling.params = bytemuck::cast_slice::<u32, Params>(&params)[0];
        all.push(filling);
    }
    all
}
