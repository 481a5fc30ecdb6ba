//! Reads a formula byte by byte: names, numbers, and where something is wrong.
//!
//! What the parts of a formula mean is the parser's business.

/// A formula, and how far it has been read.
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// The number of the next byte.
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The start of a formula.
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Goes back to an earlier place, which a message is to name.
    pub(super) fn go_back(&mut self, at: usize) {
        self.at = at;
    }

    /// The number of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes behind the next byte.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// A name, of letters, digits and underscores, which begins here.
    pub(super) fn name(&mut self) -> &'a str {
        let start = self.at;
        while self
            .byte()
            .is_some_and(|byte| is_letter(byte) || byte.is_ascii_digit())
        {
            self.at += 1;
        }
        self.slice(start, self.at)
    }

    /// A number, of digits, a point and an exponent, which begins here. Digits are summed up in
    /// 64-bit floats, which have digits to spare: the standard library's parser would add too
    /// much to the package.
    pub(super) fn number(&mut self) -> Result<f32, String> {
        let start = self.at;
        let (mut value, mut digits, mut scale) = (0.0_f64, 0, 0_i32);
        let mut is_fraction = false;
        while let Some(byte) = self.byte() {
            match byte {
                b'0'..=b'9' => {
                    value = value * 10.0 + f64::from(byte - b'0');
                    digits += 1;
                    scale -= i32::from(is_fraction);
                }
                b'.' if !is_fraction => is_fraction = true,
                _ => break,
            }
            self.at += 1;
        }
        if digits == 0 {
            return Err(self.expected("a digit"));
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            scale = scale.saturating_add(self.exponent()?);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounded once, to the type of the expression"
        )]
        let value = scaled(value, scale) as f32;
        if value.is_finite() {
            return Ok(value);
        }
        self.at = start;
        Err(self.placed("the number is too large for 32 bits"))
    }

    /// The exponent of a number, whose `e` is the next byte.
    fn exponent(&mut self) -> Result<i32, String> {
        self.at += 1;
        let sign = self.byte();
        self.at += usize::from(matches!(sign, Some(b'+' | b'-')));
        if !self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.expected("a digit"));
        }
        let mut exponent = 0_i32;
        while let Some(byte @ b'0'..=b'9') = self.byte() {
            exponent = (exponent * 10 + i32::from(byte - b'0')).min(9999);
            self.at += 1;
        }
        Ok(if sign == Some(b'-') {
            -exponent
        } else {
            exponent
        })
    }

    /// The next byte that is not a space.
    pub(super) fn next(&mut self) -> Option<u8> {
        while self.byte().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.byte()
    }

    /// A part of the text. Both ends are between characters; an index expression would still add
    /// a panic that prints strings to the package.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The next byte.
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes behind the next byte that is not a space, if that is this one.
    pub(super) fn take(&mut self, byte: u8, name: &str) -> Result<(), String> {
        if self.next() != Some(byte) {
            return Err(self.expected(name));
        }
        self.at += 1;
        Ok(())
    }

    /// The message that something else was expected here.
    pub(super) fn expected(&self, what: &str) -> String {
        let mut end = self.at + usize::from(self.at < self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        let found = self.slice(self.at, end);
        self.placed(&if found.is_empty() {
            ["expected ", what, ", but it ends"].concat()
        } else {
            ["expected ", what, ", but found '", found, "'"].concat()
        })
    }

    /// A problem with its place.
    pub(super) fn placed(&self, problem: &str) -> String {
        // Only characters of one byte are ever passed over.
        format!("{problem} at character {}", self.at + 1)
    }
}

/// Whether a name may begin with this byte.
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// value·10^scale, rounded at most twice for any exponent that 32-bit floats need.
fn scaled(mut value: f64, scale: i32) -> f64 {
    let step = |exponent: u32| (0..exponent).fold(1.0_f64, |power, _| power * 10.0);
    let mut left = scale.unsigned_abs().min(400);
    while left > 0 {
        let exponent = left.min(22); // 64-bit floats hold these powers exactly.
        if scale < 0 {
            value /= step(exponent);
        } else {
            value *= step(exponent);
        }
        left -= exponent;
    }
    value
}
