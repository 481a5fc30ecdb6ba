//! The code of a kernel: what may stand in it, and how it is made part of other code.
//!
//! Each name that the code gives is marked, so that the code can name nothing of a kernel that
//! it becomes part of. Each pass of a loop is counted, so that every loop ends. TypeScript has
//! the same rules; `tests/data/kernels.json` holds both to one table.

use super::scanner::{Kind, Token, tokens, without_comments};
use super::words::{KEYWORDS, REFUSED, WGSL};
use crate::graph::{ADDED, BESIDE, CallerFn, FnForm, MARK, ParamType};

/// Code that may become part of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The code with its names marked and its loops counted.
    pub(super) code: String,
    /// Whether the function is `element` or `at`.
    pub(super) form: FnForm,
    /// The names of the values that `element` takes.
    pub(super) inputs: Vec<String>,
    /// Whether there are loops.
    pub(super) has_loops: bool,
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

/// Checks code; `params` are the names of the numbers that come with a call.
pub(super) fn read(code: &str, params: &[&str]) -> Result<Source, Problem> {
    let code = &without_comments(code);
    let tokens = tokens(code);
    let mut reader = Reader {
        code,
        tokens: &tokens,
        params,
        next: 0,
        written: 0,
        made: String::with_capacity(code.len() + 64),
        depth: 0,
        is_struct: false,
        result: None,
        awaits_body: false,
        has_loops: false,
        is_looping: false,
        found: None,
    };
    while reader.next < tokens.len() {
        reader.step().map_err(|problem| Problem {
            at: code[..problem.at].encode_utf16().count(),
            ..problem
        })?;
    }
    reader.copy_to(code.len());
    let Some((form, inputs)) = reader.found else {
        return Err(Problem {
            at: 0,
            message: "there is no function `element`; write `fn element(x: f32) -> f32 { … }`, \
                      or `fn at(i: i32) -> f32 { … }`"
                .into(),
        });
    };
    Ok(Source {
        code: reader.made,
        form,
        inputs,
        has_loops: reader.has_loops,
    })
}

struct Reader<'a> {
    code: &'a str,
    tokens: &'a [Token<'a>],
    params: &'a [&'a str],
    /// The token that is read next.
    next: usize,
    /// Bytes of the code that are in `made`.
    written: usize,
    made: String,
    /// Open braces.
    depth: u32,
    /// Whether the open braces are those of a struct.
    is_struct: bool,
    /// What `made` has of the type that the function gives, from here on to its body.
    result: Option<String>,
    /// Whether the next brace opens the body of a loop.
    awaits_body: bool,
    has_loops: bool,
    /// Whether there are loops in the function that is open.
    is_looping: bool,
    /// The function that was asked for, and the names of the values that it takes.
    found: Option<(FnForm, Vec<String>)>,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Result<(), Problem> {
        let token = self.tokens[self.next];
        self.next += 1;
        match (token.kind, token.text) {
            (Kind::Word, word) => self.word(token, word)?,
            (Kind::Sign, "{") => self.open(token),
            (Kind::Sign, "}") => self.close(token),
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
            "for" | "while" | "loop" => self.awaits_body = true,
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
            return Err(problem(
                *name,
                &format!("`{}` is a word of WGSL; choose another name", name.text),
            ));
        }
        self.is_struct = what == "struct";
        if what == "fn" {
            self.result = None;
            self.signature(name.text)?;
        }
        Ok(())
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
        if self.result.as_deref() != Some("f32") {
            return Err(problem(
                tokens[0],
                &format!("`{name}` must give an f32: `-> f32`"),
            ));
        }
        let mut inputs = Vec::new();
        let taken = tokens.get(2..end.saturating_sub(1)).unwrap_or_default();
        if form == FnForm::At {
            let taken = match taken {
                [taken @ .., comma] if comma.is(",") => taken,
                all => all,
            };
            if !matches!(taken, [_, colon, of] if colon.is(":") && of.text == "i32") {
                return Err(problem(
                    tokens[0],
                    "`at` takes a place: `fn at(i: i32) -> f32`",
                ));
            }
            self.found = Some((form, inputs));
            return Ok(());
        }
        for input in taken
            .split(|token| token.is(","))
            .filter(|input| !input.is_empty())
        {
            match input {
                [name, colon, of] if colon.is(":") && of.text == "f32" => {
                    inputs.push(name.text.to_owned());
                }
                _ => {
                    return Err(problem(
                        input[0],
                        "`element` takes values of type f32: `x: f32`",
                    ));
                }
            }
        }
        if inputs.is_empty() || inputs.len() > MAX_INPUTS {
            return Err(problem(tokens[0], "`element` takes 1 to 6 values"));
        }
        self.found = Some((form, inputs));
        Ok(())
    }

    /// Checks the name behind `params.`.
    fn check_param(&self, word: &str) -> Result<(), Problem> {
        if word != "params" || !self.is_sign(0, ".") {
            return Ok(());
        }
        match self.tokens.get(self.next + 1) {
            Some(name) if !self.params.contains(&name.text) => {
                let known = match self.params {
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
        self.copy_to(token.at + 1);
        let nothing = match &self.result {
            Some(result) => format!("{result}()"),
            None => String::new(),
        };
        let [from, to] = ADDED;
        self.made += &format!("{from}{COUNT}{nothing}{COUNTED}{to}");
    }

    /// Closes braces. Behind a last loop some compilers look for a `return` that none can reach.
    fn close(&mut self, token: Token<'a>) {
        self.depth = self.depth.saturating_sub(1);
        self.is_struct &= self.depth > 0;
        if self.depth > 0 || !std::mem::take(&mut self.is_looping) {
            return;
        }
        let is_behind_block = self.next >= 2 && self.tokens[self.next - 2].is("}");
        if let (Some(result), true) = (&self.result, is_behind_block) {
            let [from, to] = ADDED;
            let added = format!("{from}return {result}();{to}");
            self.copy_to(token.at);
            self.made += &added;
        }
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

/// What stands behind code: what `at` looks at, the type and the variable of params, and the
/// variables of loops.
pub(super) fn declared(source: &Source, params: &[(String, ParamType)]) -> String {
    let mut text = String::from("\n");
    if source.form == FnForm::At {
        for (input, name) in source.inputs.iter().enumerate() {
            text += &looking(input, name);
        }
    }
    if !params.is_empty() {
        let fields = params
            .iter()
            .map(|(name, kind)| format!("{name}: {}, ", kind.name()));
        let fields: String = fields.collect();
        text += &format!("struct $Params {{ {fields}}}\nvar<private> #params: $Params;\n");
    }
    if source.has_loops {
        text += "var<private> $passes: u32;\nvar<private> $stopped: bool;\n";
    }
    text
}

/// The functions by which `at` looks at an input: at a place, and at a row and a column, clamped to
/// what there is.
fn looking(input: usize, name: &str) -> String {
    format!(
        "fn #{name}_len() -> i32 {{ return $count{input}(); }}
fn #{name}_cols() -> i32 {{ return $width{input}(); }}
fn #{name}_rows() -> i32 {{ return $count{input}() / $width{input}(); }}
fn #{name}(i: i32) -> f32 {{ return $read{input}(clamp(i, 0, $count{input}() - 1)); }}
fn #{name}_at(row: i32, col: i32) -> f32 {{
return $read{input}(clamp(row, 0, #{name}_rows() - 1) * $width{input}() + clamp(col, 0, $width{input}() - 1));
}}\n"
    )
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
    ["at", "params"].contains(&name) || others.iter().any(is_other)
}

/// Code as it stands in kernels, where the function has a number.
pub(super) fn printed(code: &str) -> impl FnOnce(u32) -> String + use<> {
    let code = code.replace(ADDED, "");
    move |number| {
        let code = code.replace(MARK, &CallerFn::own(number));
        code.replace(BESIDE, &CallerFn::beside(number))
    }
}

/// The most values that `element` takes.
pub(super) const MAX_INPUTS: usize = 6;

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
        "override" => "overrides are not allowed; declare a `const`, or a param".into(),
        _ => format!("`{word}` is not at hand in a kernel"),
    }
}

fn problem(token: Token<'_>, message: &str) -> Problem {
    Problem {
        at: token.at,
        message: message.to_owned(),
    }
}
