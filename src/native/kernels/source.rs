//! The code of a kernel: what may stand in it, and how it is made part of other code.
//!
//! Each name that the code gives is marked, so that the code can name nothing of a kernel that
//! it becomes part of. Each pass of a loop is counted, so that every loop ends. TypeScript has
//! the same rules; `tests/data/kernels.json` holds both to one table.

use super::scanner::{Kind, Token, tokens, without_comments};
use super::words::{KEYWORDS, REFUSED, WGSL};
use crate::graph::{ADDED, FnForm, MARK, ScalarType, ValueType};

/// Code that may become part of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The code with its names marked and its loops counted.
    pub(super) code: String,
    /// Whether the function is `element` or `at`.
    pub(super) form: FnForm,
    /// The names and types of the values that `element` takes.
    pub(super) inputs: Vec<(String, ValueType)>,
    /// What the function gives: the fields of a struct, or one value without a name.
    pub(super) results: Vec<(String, ValueType)>,
    /// Whether there are loops.
    pub(super) has_loops: bool,
}

/// What a definition has beside its code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given<'a> {
    /// The names of the numbers that come with a call.
    pub(super) params: &'a [&'a str],
    /// Values of the code's overrides.
    pub(super) constants: &'a [(String, f64)],
}

/// Why code cannot become part of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where in the code the problem is, counted in UTF-16 as editors and JavaScript count.
    pub(super) at: usize,
    pub(super) message: String,
}

/// Counts a pass of a loop. What is left of the passes is a variable of the kernel.
const COUNT: &str = "if ($passes == 0u) { $stopped = true; return ";
const COUNTED: &str = "; } $passes -= 1u;";

/// Signs that WGSL has, but for the one of attributes.
const SIGNS: &str = "!%&()*+,-./:;<=>[]^{|}~";

/// Checks code.
pub(super) fn read(code: &str, given: Given<'_>) -> Result<Source, Problem> {
    let code = &without_comments(code);
    let tokens = tokens(code);
    let mut reader = Reader {
        code,
        tokens: &tokens,
        given,
        next: 0,
        written: 0,
        made: String::with_capacity(code.len() + 64),
        depth: 0,
        is_struct: false,
        structs: Vec::new(),
        result: None,
        awaits_body: false,
        has_loops: false,
        is_looping: false,
        found: None,
        overrides: Vec::new(),
        continuing: None,
    };
    let placed = |problem: Problem| Problem {
        at: code[..problem.at].encode_utf16().count(),
        ..problem
    };
    while reader.next < tokens.len() {
        reader.step().map_err(placed)?;
    }
    reader.copy_to(code.len());
    let Some(found) = reader.found.take() else {
        return Err(Problem {
            at: 0,
            message: "there is no function `element`; write `fn element(x: f32) -> f32 { … }`, \
                      or `fn at(i: i32) -> f32 { … }`"
                .into(),
        });
    };
    if reader.depth > 0 {
        return Err(Problem {
            at: 0,
            message: BRACES.into(),
        });
    }
    reader.check_constants()?;
    let results = reader.results(&found).map_err(placed)?;
    Ok(Source {
        code: reader.made,
        form: found.form,
        inputs: found.inputs,
        results,
        has_loops: reader.has_loops,
    })
}

struct Reader<'a> {
    code: &'a str,
    tokens: &'a [Token<'a>],
    given: Given<'a>,
    /// The token that is read next.
    next: usize,
    /// Bytes of the code that are in `made`.
    written: usize,
    made: String,
    /// Open braces.
    depth: u32,
    /// Whether the open braces are those of a struct.
    is_struct: bool,
    /// The structs so far: names, and the names and types of fields.
    structs: Vec<(&'a str, Vec<(&'a str, String)>)>,
    /// What `made` has of the type that the function gives, from here on to its body.
    result: Option<String>,
    /// Whether the next brace opens the body of a loop.
    awaits_body: bool,
    has_loops: bool,
    /// Whether there are loops in the function that is open.
    is_looping: bool,
    /// The function that was asked for.
    found: Option<Found<'a>>,
    /// The names of the overrides so far.
    overrides: Vec<&'a str>,
    /// The braces around the block `continuing` that is open.
    continuing: Option<u32>,
}

/// The function `element`, or `at`.
struct Found<'a> {
    form: FnForm,
    name: Token<'a>,
    /// The values that it takes.
    inputs: Vec<(String, ValueType)>,
    /// The type that it gives, as it stands in what was made.
    result: String,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Result<(), Problem> {
        let token = self.tokens[self.next];
        self.next += 1;
        match (token.kind, token.text) {
            (Kind::Word, word) => self.word(token, word)?,
            (Kind::Sign, "{") => self.open(token),
            (Kind::Sign, "}") => self.close(token)?,
            (Kind::Sign, "@") => {
                return Err(problem(
                    token,
                    "attributes are not allowed: the code is a body, which gets entry points and bindings of ours",
                ));
            }
            (Kind::Sign, sign) if !SIGNS.contains(sign) => {
                return Err(problem(token, "no character of WGSL"));
            }
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, token: Token<'a>, word: &str) -> Result<(), Problem> {
        let before = self.next.checked_sub(2).map(|at| self.tokens[at]);
        let is_member =
            before.is_some_and(|before| before.is(".")) || self.is_struct && self.is_sign(0, ":");
        if is_member || word == "_" {
            return Ok(());
        }
        if word == "override" && self.depth == 0 {
            return self.overrides(token);
        }
        if has(REFUSED, word) {
            return Err(problem(token, &refusal(word)));
        }
        if !has(WGSL, word) {
            self.check_param(word)?;
            self.copy_to(token.at);
            self.made.push(MARK);
            return Ok(());
        }
        match word {
            "fn" | "struct" | "alias" | "const" if self.depth == 0 => self.declares(word)?,
            "var" if self.depth == 0 => {
                return Err(problem(
                    token,
                    "variables outside of functions are not allowed; declare a `const`, or a `var` in a function",
                ));
            }
            "var" | "ptr" if self.is_sign(0, "<") && !self.is_word(1, "function") => {
                return Err(problem(
                    token,
                    "only memory of the function itself is at hand: leave the address space out, or write `function`",
                ));
            }
            "for" | "while" | "loop" if self.continuing.is_some() => {
                return Err(problem(
                    token,
                    "loops inside of `continuing` are not allowed; put the loop in a function of its own",
                ));
            }
            "for" | "while" | "loop" => self.awaits_body = true,
            "continuing" => self.continuing = Some(self.depth),
            _ => {}
        }
        Ok(())
    }

    /// Checks what is declared outside of functions: its name must not be one of WGSL's.
    fn declares(&mut self, what: &str) -> Result<(), Problem> {
        let Some(name) = self
            .tokens
            .get(self.next)
            .filter(|name| name.kind == Kind::Word)
        else {
            return Ok(()); // A compiler says what is wrong.
        };
        if has(WGSL, name.text) {
            return Err(word_of_wgsl(*name));
        }
        self.is_struct = what == "struct";
        if self.is_struct {
            let fields = self.fields();
            self.structs.push((name.text, fields));
        }
        if what == "fn" {
            self.result = None;
            self.signature(name.text)?;
        }
        Ok(())
    }

    /// Makes an override a constant: of the value that the definition gives, or else of its own.
    fn overrides(&mut self, token: Token<'a>) -> Result<(), Problem> {
        let rest = &self.tokens[self.next..];
        let (name, of, behind) = match rest {
            [name, colon, of, behind, ..] if name.kind == Kind::Word && colon.is(":") => {
                (*name, *of, *behind)
            }
            _ => return Err(problem(token, OVERRIDE)),
        };
        if has(WGSL, name.text) || has(REFUSED, name.text) {
            return Err(word_of_wgsl(name));
        }
        if !matches!(of.text, "f32" | "i32" | "u32" | "bool") {
            return Err(problem(of, OVERRIDE));
        }
        self.overrides.push(name.text);
        let constants = self.given.constants.iter();
        let given = constants.rev().find(|(own, _)| own == name.text);
        let is_valued = behind.is("=");
        let value = match given {
            Some((_, value)) => Some(literal(of.text, *value).ok_or_else(|| {
                problem(
                    name,
                    &format!("the constant `{}` is no {}", name.text, of.text),
                )
            })?),
            None if is_valued => None,
            None => {
                return Err(problem(
                    name,
                    &format!(
                        "the override `{}` has no value; give it one in the code, or as a constant",
                        name.text
                    ),
                ));
            }
        };
        self.add(token.at, "const/*");
        self.add(token.at + token.text.len(), "*/");
        self.copy_to(name.at);
        self.made.push(MARK);
        self.next += 3;
        let end = of.at + of.text.len();
        let Some(value) = value else {
            return Ok(());
        };
        let semicolon = (self.next..self.tokens.len()).find(|at| self.tokens[*at].is(";"));
        let semicolon = semicolon.ok_or_else(|| problem(token, OVERRIDE))?;
        self.add(end, &format!(" = {value}"));
        // Invariant: a compiler sees nothing that this reader has not read. The code's own value is
        // read by neither.
        let behind_value = self.tokens[semicolon].at;
        let blank = |unit: char| if unit == '\n' { '\n' } else { ' ' };
        let hidden = self.code[self.written..behind_value].chars().map(blank);
        self.made.extend(hidden);
        self.written = behind_value;
        self.next = semicolon;
        Ok(())
    }

    /// Refuses constants that are of no override.
    fn check_constants(&self) -> Result<(), Problem> {
        let is_unknown = |(name, _): &&(String, f64)| !self.overrides.contains(&&**name);
        let Some((name, _)) = self.given.constants.iter().find(is_unknown) else {
            return Ok(());
        };
        let known = match &self.overrides[..] {
            [] => "the code has none".to_owned(),
            known => format!("the code has {}", known.join(", ")),
        };
        Err(Problem {
            at: 0,
            message: format!("there is no override `{name}`: {known}"),
        })
    }

    /// Reads ahead the names and types of a struct's fields.
    fn fields(&self) -> Vec<(&'a str, String)> {
        let tokens = self.tokens.get(self.next + 2..).unwrap_or_default();
        let body = tokens
            .split(|token| token.is("}"))
            .next()
            .unwrap_or_default();
        let fields = body
            .split(|token| token.is(","))
            .filter_map(|field| match field {
                [name, colon, of @ ..] if colon.is(":") => Some((name.text, joined(of))),
                _ => None,
            });
        fields.collect()
    }

    /// What the function gives, once all structs are known.
    fn results(&self, found: &Found<'_>) -> Result<Vec<(String, ValueType)>, Problem> {
        if let Some(of) = type_of(&found.result) {
            return Ok(vec![(String::new(), of)]);
        }
        let named = found.result.strip_prefix(MARK);
        let known = self.structs.iter().find(|(name, _)| Some(*name) == named);
        let fields = known.map_or(&[][..], |(_, fields)| fields);
        let results = fields
            .iter()
            .map(|(name, of)| Some(((*name).to_owned(), type_of(of)?)));
        match results.collect::<Option<Vec<_>>>() {
            Some(results) if (1..=MAX_RESULTS).contains(&results.len()) => Ok(results),
            _ => Err(problem(
                found.name,
                &format!(
                    "`{}` must give a number such as f32, a vector such as vec3f, or a struct of 1 to 8 of these: `-> f32`",
                    found.name.text
                ),
            )),
        }
    }

    /// Reads ahead what a function takes and gives.
    fn signature(&mut self, name: &str) -> Result<(), Problem> {
        let tokens = &self.tokens[self.next..];
        let body = tokens.iter().position(|token| token.is("{"));
        let tokens = &tokens[..body.unwrap_or(tokens.len())];
        let mut end = tokens.len();
        for (at, pair) in tokens.windows(2).enumerate() {
            if pair[0].is("-") && pair[1].is(">") {
                end = at;
                let given: Vec<String> = tokens[at + 2..].iter().map(marked).collect();
                self.result = Some(given.concat());
            }
        }
        let form = match name {
            "element" => FnForm::Element,
            "at" => FnForm::At,
            _ => return Ok(()),
        };
        if self.found.is_some() {
            return Err(problem(
                tokens[0],
                "there is one function `element`, or one `at`, and not both",
            ));
        }
        let result = self.result.clone().unwrap_or_default();
        let taken = tokens.get(2..end.saturating_sub(1)).unwrap_or_default();
        let inputs = match form {
            FnForm::Element => inputs_of(tokens[0], taken)?,
            FnForm::At => place_of(tokens[0], taken)?,
        };
        let name = tokens[0];
        self.found = Some(Found {
            form,
            name,
            inputs,
            result,
        });
        Ok(())
    }

    /// Checks the name behind `params.`.
    fn check_param(&self, word: &str) -> Result<(), Problem> {
        if word != "params" || !self.is_sign(0, ".") {
            return Ok(());
        }
        match self.tokens.get(self.next + 1) {
            Some(name) if !self.given.params.contains(&name.text) => {
                let known = match self.given.params {
                    [] => "the definition has none".to_owned(),
                    known => format!("the definition has {}", known.join(", ")),
                };
                Err(problem(
                    *name,
                    &format!("there is no param `{}`: {known}", name.text),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Opens braces; counts passes where they are those of a loop.
    fn open(&mut self, token: Token<'a>) {
        self.depth += 1;
        if !std::mem::take(&mut self.awaits_body) {
            return;
        }
        self.has_loops = true;
        self.is_looping = true;
        let nothing = match &self.result {
            Some(result) => format!("{result}()"),
            None => String::new(),
        };
        self.add(token.at + 1, &format!("{COUNT}{nothing}{COUNTED}"));
    }

    /// Closes braces. Behind a last loop some compilers look for a `return` that none can reach.
    fn close(&mut self, token: Token<'a>) -> Result<(), Problem> {
        self.depth = (self.depth.checked_sub(1)).ok_or_else(|| problem(token, BRACES))?;
        self.is_struct &= self.depth > 0;
        self.continuing = self.continuing.filter(|around| *around < self.depth);
        if self.depth > 0 || !std::mem::take(&mut self.is_looping) {
            return Ok(());
        }
        let is_behind_block = self.next >= 2 && self.tokens[self.next - 2].is("}");
        if let (Some(result), true) = (&self.result, is_behind_block) {
            let added = format!("return {result}();");
            self.add(token.at, &added);
        }
        Ok(())
    }

    /// Adds a text at a byte of the code.
    fn add(&mut self, at: usize, text: &str) {
        let [from, to] = ADDED;
        self.copy_to(at);
        self.made.push(from);
        self.made += text;
        self.made.push(to);
    }

    /// Copies the code up to a byte.
    fn copy_to(&mut self, at: usize) {
        self.made += &self.code[self.written..at];
        self.written = at;
    }

    fn is_sign(&self, ahead: usize, sign: &str) -> bool {
        (self.tokens.get(self.next + ahead)).is_some_and(|token| token.is(sign))
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        (self.tokens.get(self.next + ahead)).is_some_and(|token| token.text == word)
    }
}

/// The values that `element` takes.
fn inputs_of(name: Token<'_>, taken: &[Token<'_>]) -> Result<Vec<(String, ValueType)>, Problem> {
    let inputs = taken.split(|token| token.is(","));
    let inputs = inputs.filter(|input| !input.is_empty()).map(|input| {
        match input {
            [name, colon, of @ ..] if colon.is(":") => {
                type_of(&joined(of)).map(|of| (name.text.to_owned(), of))
            }
            _ => None,
        }
        .ok_or_else(|| {
            problem(
                input[0],
                "`element` takes numbers such as f32 and vectors such as vec3f: `x: f32`",
            )
        })
    });
    let inputs = inputs.collect::<Result<Vec<_>, Problem>>()?;
    match (1..=MAX_INPUTS).contains(&inputs.len()) {
        true => Ok(inputs),
        false => Err(problem(name, "`element` takes 1 to 6 values")),
    }
}

/// Checks what `at` takes, which is no input.
fn place_of(name: Token<'_>, taken: &[Token<'_>]) -> Result<Vec<(String, ValueType)>, Problem> {
    let taken = match taken {
        [taken @ .., comma] if comma.is(",") => taken,
        all => all,
    };
    match taken {
        [_, colon, of] if colon.is(":") && of.text == "i32" => Ok(Vec::new()),
        _ => Err(problem(name, "`at` takes a place: `fn at(i: i32) -> f32`")),
    }
}

/// The type of this name; `None` where it is neither a number nor a vector of numbers.
pub(super) fn type_of(name: &str) -> Option<ValueType> {
    let (lanes, scalar) = match name.as_bytes() {
        [b'v', b'e', b'c', lanes @ b'2'..=b'4', scalar @ ..] => (u32::from(lanes - b'0'), scalar),
        scalar => (1, scalar),
    };
    let scalar = match (lanes, scalar) {
        (1, b"f32") | (2.., b"f" | b"<f32>") => ScalarType::F32,
        (1, b"i32") | (2.., b"i" | b"<i32>") => ScalarType::I32,
        (1, b"u32") | (2.., b"u" | b"<u32>") => ScalarType::U32,
        _ => return None,
    };
    Some(ValueType { scalar, lanes })
}

/// A type as it stands in the code that was made.
fn joined(tokens: &[Token<'_>]) -> String {
    tokens.iter().map(marked).collect()
}

/// The value of a constant in WGSL; `None` where it is no value of the type.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer saturates, and to a float rounds"
)]
fn literal(of: &str, value: f64) -> Option<String> {
    let whole = value as i64;
    #[expect(clippy::cast_precision_loss, reason = "no 32-bit number is rounded")]
    let is_whole = whole as f64 == value;
    match of {
        "f32" if (value as f32).is_finite() => Some(float(value as f32)),
        "i32" if is_whole && i32::try_from(whole).is_ok() => Some(format!("i32({whole})")),
        "u32" if is_whole && u32::try_from(whole).is_ok() => Some(format!("{whole}u")),
        "bool" if whole == 0 && is_whole => Some("false".into()),
        "bool" if whole == 1 && is_whole => Some("true".into()),
        _ => None,
    }
}

/// A float in WGSL, exactly: a whole number times a power of two.
fn float(value: f32) -> String {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
    let hidden = u32::from(exponent > 0) << 23;
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let power = i64::from(exponent.max(1)) - 150;
    format!("{sign}0x{:x}p{power}f", fraction | hidden)
}

/// Whether a name means something in all code.
pub(super) fn is_word_of_wgsl(name: &str) -> bool {
    has(WGSL, name) || has(REFUSED, name)
}

/// Whether no param can have a name.
pub(super) fn is_keyword(name: &str) -> bool {
    has(KEYWORDS, name) || has(REFUSED, name)
}

/// Whether what looks at inputs of these names would have one name twice, or that of another thing.
pub(super) fn collides(name: &str, others: &[String]) -> bool {
    let is_other = |other: &String| {
        let behind = other.strip_prefix(name);
        behind.is_some_and(|behind| ["", "_at", "_len", "_rows", "_cols"].contains(&behind))
    };
    ["at", "element", "params"].contains(&name) || others.iter().any(is_other)
}

const BRACES: &str = "braces do not match";

const OVERRIDE: &str = "an override has a name, a type and a value: `override taps: i32 = 3;`, of type f32, i32, u32 or bool";

/// The most tensors that a kernel takes.
pub(super) const MAX_INPUTS: usize = 6;

/// The most fields of what `element` gives.
const MAX_RESULTS: usize = 8;

/// A token as it stands in the code that was made.
fn marked(token: &Token<'_>) -> String {
    let is_own = token.kind == Kind::Word && !has(WGSL, token.text);
    match is_own {
        true => format!("{MARK}{}", token.text),
        false => token.text.to_owned(),
    }
}

/// Whether a list has a word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

fn refusal(word: &str) -> String {
    match word {
        "enable" | "requires" | "diagnostic" => "directives are not allowed".into(),
        "override" => "overrides are declared outside of functions".into(),
        _ => format!("`{word}` is not at hand in a kernel"),
    }
}

fn word_of_wgsl(name: Token<'_>) -> Problem {
    let message = format!("`{}` is a word of WGSL; choose another name", name.text);
    problem(name, &message)
}

fn problem(token: Token<'_>, message: &str) -> Problem {
    Problem {
        at: token.at,
        message: message.to_owned(),
    }
}
