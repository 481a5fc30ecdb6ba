//! Texts at random, of scripts and of what is hard in them.
//!
//! `FUZZED_TEXTS` says how many, 2,000 of each kind unless set.

/// Texts of a kind in every run of the tests.
const USUAL: usize = 2_000;

pub(crate) fn amount() -> usize {
    let given = std::env::var("FUZZED_TEXTS");
    given.map_or(USUAL, |amount| amount.parse().unwrap())
}

/// Whether more texts are tried than in every run of the tests.
pub(crate) fn is_long() -> bool {
    amount() > USUAL
}

/// Words of scripts and of what is hard in them: final sigmas, marks in any order,
/// ideographs of every extension, emoji, controls, private use, what is unassigned.
const ALPHABETS: [&str; 15] = [
    "aAbBeEiI thing untokenizerly ",
    "ΑΒΣΟΔΥσςάΐΰ \u{345}\u{301}",
    "éÈüÅåñçßİıǅſﬁK\u{212b}Ñẞ ÀÉ",
    "a\u{301}\u{327}\u{302e}\u{1d165}\u{1d16e}\u{5b0}\u{5bc}\u{93c}\u{334}\u{b55}é\u{2dff}",
    "日本語のテキスト々ヴパ゛ 한국어각\u{1100}\u{1161}\u{11a8}",
    "㐀䶿一鿿豈舘\u{fa6c}𠀀𪛟𪜀𫜿𫝀𫠟𫠠𫤠𬺯𬺰𮯠\u{2f800}\u{2fa1d}\u{30000}",
    "👍🏽👨\u{200d}👩\u{200d}👧❤\u{fe0f}🇩🇪😀☃\u{e0067}\u{e007f}",
    "\0\u{1}\t\n\r\u{b}\u{c}\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{2028}\u{3000}\u{feff}\u{fffd} a",
    "\u{e000}\u{f8ff}\u{f0000}\u{10fffd}\u{378}\u{2fe0}\u{ffff}\u{10ffff}\u{1e922}x",
    "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~«»¿—’§¶·\u{2e52}\u{10fff}",
    "приветМИРёЁйї नमस्तेকোৌ తెలుగు ಕೀ \u{1d15e}\u{1d1bf} ᾳΏϔ",
    "[CLS][SEP][MASK][UNK][PAD][mask]##ing [unused0] <x>",
    "it's we'll I'VE you'RE 'D'm'ſ 't\r\n\n  \t x-ray _a_ ...!?",
    "0123456789 ٣٤½Ⅷ१२²㊿ 3.14 1,000 a1b2",
    "▁ ▁▁ <s></s><unk><mask><pad><|x|><0x41> \u{2581}a  b   c",
];

/// Texts of a few hundred characters at most.
pub(crate) fn texts(seed: u64, amount: usize) -> impl Iterator<Item = String> {
    let mut random = Random(seed);
    let alphabets = ALPHABETS.map(|letters| letters.chars().collect::<Vec<char>>());
    (0..amount).map(move |_| {
        let mut text = String::new();
        for _ in 0..random.next() % 12 {
            let letters = &alphabets[random.next() as usize % alphabets.len()];
            let length = if random.next().is_multiple_of(64) {
                130
            } else {
                12
            };
            for _ in 0..random.next() % length {
                let any = random.next();
                let among = letters[any as usize % letters.len()];
                // Now and then any character at all, low ones more often.
                let rare = any >> 26 == 0;
                let all = random.next() >> (11 + any % 8);
                text.push(char::from_u32(all).filter(|_| rare).unwrap_or(among));
            }
            if random.next().is_multiple_of(4) {
                let special = ["[MASK]", " ", "[SEP]", "<x>", "<mask>", "</s>", "  "];
                text.push_str(special[random.next() as usize % special.len()]);
            }
        }
        text
    })
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}
