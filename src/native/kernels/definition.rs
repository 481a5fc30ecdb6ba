//! What defines a kernel, and the kernel that comes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::source::{
    MAX_INPUTS, Problem, Source, collides, declared, is_keyword, is_word_of_wgsl, printed, read,
};
use crate::error::Error;
use crate::graph::{CallerFn, Elements, FnContent, FnForm, ParamType, Twin};

/// Passes that the loops of one element may make together, unless a definition says more.
const MAX_PASSES: u32 = 1 << 20;

/// The most params of a kernel.
const MAX_PARAMS: usize = 16;

/// A number that comes with a call of a kernel: of the type that its definition says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    F32(f32),
    /// A whole number with a sign.
    I32(i32),
    /// A whole number without a sign.
    U32(u32),
}

impl Number {
    fn of(kind: ParamType, bits: u32) -> Number {
        match kind {
            ParamType::F32 => Number::F32(f32::from_bits(bits)),
            ParamType::I32 => Number::I32(bits.cast_signed()),
            ParamType::U32 => Number::U32(bits),
        }
    }

    /// The number's type in WGSL.
    fn kind(self) -> ParamType {
        match self {
            Number::F32(_) => ParamType::F32,
            Number::I32(_) => ParamType::I32,
            Number::U32(_) => ParamType::U32,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Number::F32(number) => number.to_bits(),
            Number::I32(number) => number.cast_unsigned(),
            Number::U32(number) => number,
        }
    }
}

impl From<f32> for Number {
    fn from(number: f32) -> Number {
        Number::F32(number)
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Number {
        Number::I32(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Number {
        Number::U32(number)
    }
}

/// What a kernel computes: a function in WGSL, and the same in Rust for the CPU.
///
/// The code has one of two functions, and whatever functions, structs and constants that one
/// needs:
///
/// - `fn element(a: f32, b: f32) -> f32`, of 1 to 6 values that broadcasting brings together. It
///   fuses with what is computed element by element around it.
/// - `fn at(i: i32) -> f32`, of a place in the first [input](KernelDefinition::input), whose shape
///   the result has. Inputs are functions of a place: `height(i)`, `height_at(row, col)`,
///   `height_len()`, `height_rows()`, `height_cols()`, where rows run along the last axis. Places
///   are clamped to what there is.
///
/// The numbers that come with a call are the fields of `params`. The code is a body and no more:
/// attributes, bindings, barriers, atomics and variables outside of functions are refused.
///
/// ```
/// # use framebatch::{Blocking, Config, EngineChoice};
/// use framebatch::{KernelDefinition, Number};
///
/// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
/// let decay = KernelDefinition::new(
///     "decay",
///     "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
/// )
/// .param("dt", 0.0_f32)
/// .cpu(|values, params| match params {
///     [Number::F32(dt)] => values[0] * (-values[1] * dt).exp(),
///     _ => f32::NAN,
/// })
/// .build()?;
///
/// let mut batch = gpu.batch();
/// let height = batch.upload(&[1.0, 2.0]);
/// let speed = batch.upload(&[0.0, 0.0]);
/// let decayed = batch.apply(&decay, &[height, speed], &[0.5.into()])?;
/// batch.execute()?;
/// assert_eq!(batch.read(decayed)?, [1.0, 2.0]);
/// # Ok::<(), framebatch::Error>(())
/// ```
#[must_use = "a definition is nothing before `build`"]
#[derive(Clone)]
pub struct KernelDefinition {
    name: String,
    code: String,
    inputs: Vec<String>,
    params: Vec<(String, ParamType)>,
    max_passes: u32,
    cpu: Option<CpuFunction>,
}

type ElementFunction = dyn Fn(&[f32], &[Number]) -> f32 + Send + Sync;

type PlaceFunction = dyn Fn(i64, &[KernelInput<'_>], &[Number]) -> f32 + Send + Sync;

/// Computes an element on the CPU.
#[derive(Clone)]
enum CpuFunction {
    /// Of its values, and of the numbers that come with the call.
    Element(Arc<ElementFunction>),
    /// Of its place, the inputs, and the numbers.
    At(Arc<PlaceFunction>),
}

impl CpuFunction {
    fn form(&self) -> FnForm {
        match self {
            CpuFunction::Element(_) => FnForm::Element,
            CpuFunction::At(_) => FnForm::At,
        }
    }
}

/// What a kernel's function of a place looks at on the CPU. Places are clamped to what there is.
#[derive(Clone, Copy, Debug)]
pub struct KernelInput<'a> {
    values: &'a [f32],
    width: i64,
}

impl KernelInput<'_> {
    /// The element at a place, row by row.
    pub fn get(&self, place: i64) -> f32 {
        let last = self.values.len() - 1;
        let place = usize::try_from(place).unwrap_or(if place < 0 { 0 } else { last });
        self.values[place.min(last)]
    }

    /// The element of a row and a column.
    pub fn at(&self, row: i64, column: i64) -> f32 {
        let row = row.clamp(0, self.rows() - 1);
        self.get(row * self.width + column.clamp(0, self.width - 1))
    }

    /// How many elements there are; one or more.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> i64 {
        self.values.len() as i64
    }

    /// How many rows there are: of all axes but the last together.
    pub fn rows(&self) -> i64 {
        self.len() / self.width
    }

    /// How many elements there are along the last axis.
    pub fn columns(&self) -> i64 {
        self.width
    }
}

impl std::fmt::Debug for KernelDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (f.debug_struct("KernelDefinition").field("name", &self.name)).finish_non_exhaustive()
    }
}

impl KernelDefinition {
    /// The definition of a kernel with this name, which messages, plans and profilers say, and
    /// this code.
    pub fn new(name: impl Into<String>, code: impl Into<String>) -> KernelDefinition {
        KernelDefinition {
            name: name.into(),
            code: code.into(),
            inputs: Vec::new(),
            params: Vec::new(),
            max_passes: MAX_PASSES,
            cpu: None,
        }
    }

    /// Adds a tensor that `at` looks at, by this name; 1 to 6 of them. The values that `element`
    /// takes are named by its parameters.
    pub fn input(mut self, name: impl Into<String>) -> KernelDefinition {
        self.inputs.push(name.into());
        self
    }

    /// Adds a number that comes with each call, of the type of `like`. Another number of a later
    /// call compiles nothing. A kernel has at most 16.
    pub fn param(mut self, name: impl Into<String>, like: impl Into<Number>) -> KernelDefinition {
        self.params.push((name.into(), like.into().kind()));
        self
    }

    /// Sets how many passes the loops of one element may make together: 2²⁰ unless said. A call of
    /// which an element's loops would make more fails with [`Error::Endless`]; what is stored in
    /// a tensor is NaN there.
    pub fn max_passes(mut self, passes: u32) -> KernelDefinition {
        self.max_passes = passes;
        self
    }

    /// Says how the CPU computes an element of its values and params: the same as the code does.
    /// It runs on any thread, and on several at once. Without it calls fail on the CPU, with
    /// [`Error::NoCpuFunction`]. Of equal kernels the function that was given first computes.
    pub fn cpu(
        mut self,
        function: impl Fn(&[f32], &[Number]) -> f32 + Send + Sync + 'static,
    ) -> KernelDefinition {
        self.cpu = Some(CpuFunction::Element(Arc::new(function)));
        self
    }

    /// The same for a kernel whose function is `at`: of a place, the inputs in the order of their
    /// definition, and the params.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// use framebatch::KernelDefinition;
    ///
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let smooth = KernelDefinition::new(
    ///     "smooth",
    ///     "fn at(i: i32) -> f32 { return (x(i - 1) + x(i + 1)) * 0.5; }",
    /// )
    /// .input("x")
    /// .cpu_at(|i, inputs, _| (inputs[0].get(i - 1) + inputs[0].get(i + 1)) * 0.5)
    /// .build()?;
    ///
    /// let mut batch = gpu.batch();
    /// let x = batch.upload(&[0.0, 2.0, 8.0]);
    /// let smoothed = batch.apply(&smooth, &[x], &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(smoothed)?, [1.0, 4.0, 5.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn cpu_at(
        mut self,
        function: impl Fn(i64, &[KernelInput<'_>], &[Number]) -> f32 + Send + Sync + 'static,
    ) -> KernelDefinition {
        self.cpu = Some(CpuFunction::At(Arc::new(function)));
        self
    }

    /// Checks the definition. Equal definitions are one kernel, which is compiled once. A kernel
    /// is of no session, and stays as long as the program runs.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] with the kernel's name and the line and column of the code, where
    /// the code has what a kernel must not have, and for names of params that WGSL does not
    /// allow. What a compiler refuses fails the calls, with [`Error::Shader`].
    pub fn build(self) -> Result<Kernel, Error> {
        self.check_names()?;
        let params: Vec<&str> = self.params.iter().map(|(name, _)| &**name).collect();
        let mut source = read(&self.code, &params).map_err(|problem| self.refuse(&problem))?;
        self.check_form(&source)?;
        if source.form == FnForm::At {
            source.inputs.clone_from(&self.inputs);
        }
        let cpu = self
            .cpu
            .map(|function| twin(&self.name, &self.params, function));
        let declared = declared(&source, &self.params);
        let content = FnContent {
            name: self.name,
            code: source.code + &declared,
            form: source.form,
            inputs: source.inputs.len(),
            max_passes: source.has_loops.then_some(self.max_passes),
            params: self.params.iter().map(|(_, kind)| *kind).collect(),
        };
        let text = printed(&content.code);
        Ok(Kernel {
            inputs: source.inputs,
            params: self.params,
            function: CallerFn::define(content, text, cpu),
        })
    }

    /// Refuses what is of the other of the two functions than the code has.
    fn check_form(&self, source: &Source) -> Result<(), Error> {
        let problem = match source.form {
            _ if self
                .cpu
                .as_ref()
                .is_some_and(|cpu| cpu.form() != source.form) =>
            {
                "`cpu` is for the function `element`, and `cpu_at` for `at`".into()
            }
            FnForm::Element if !self.inputs.is_empty() => {
                "the values that `element` takes are named by its parameters; leave `input` out"
                    .into()
            }
            FnForm::At if !(1..=MAX_INPUTS).contains(&self.inputs.len()) => {
                format!(
                    "`at` looks at 1 to {MAX_INPUTS} inputs, got {}",
                    self.inputs.len()
                )
            }
            _ => match (0..self.inputs.len()).find(|at| !self.is_input(*at)) {
                Some(at) => format!(
                    "an input has a name of its own that is no word of WGSL, got '{}'",
                    self.inputs[at]
                ),
                None => return Ok(()),
            },
        };
        Err(Error::InvalidInput(format!("{}: {problem}", self.name)))
    }

    /// Whether an input can have its name.
    fn is_input(&self, at: usize) -> bool {
        let name = &self.inputs[at];
        let others = [&self.inputs[..at], &self.inputs[at + 1..]].concat();
        is_name(name) && !is_word_of_wgsl(name) && !collides(name, &others)
    }

    fn check_names(&self) -> Result<(), Error> {
        if !is_name(&self.name) {
            return Err(Error::InvalidInput(format!(
                "kernel: a name is letters, digits and underscores and begins with a letter, got '{}'",
                self.name
            )));
        }
        for (at, (name, _)) in self.params.iter().enumerate() {
            let is_repeated = self.params[..at].iter().any(|(other, _)| other == name);
            if !is_name(name) || is_keyword(name) || is_repeated || at >= MAX_PARAMS {
                return Err(Error::InvalidInput(format!(
                    "{}: a kernel has at most {MAX_PARAMS} params, each with a name of its own \
                     of letters, digits and underscores that is no keyword of WGSL, got '{name}'",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// The error of a problem, with the line in question.
    fn refuse(&self, Problem { at, message }: &Problem) -> Error {
        let before: Vec<u16> = self.code.encode_utf16().take(*at).collect();
        let is_break = |unit: &u16| *unit == u16::from(b'\n');
        let line = before.iter().filter(|unit| is_break(unit)).count();
        let column = before.rsplit(is_break).next().map_or(0, <[u16]>::len);
        let text = self.code.lines().nth(line).unwrap_or_default();
        Error::InvalidInput(format!(
            "{}:{}:{}: {message}\n  {}",
            self.name,
            line + 1,
            column + 1,
            text.trim()
        ))
    }
}

/// Whether a name is letters, digits and underscores, and begins with a letter.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}

/// What the CPU computes columns with: a function of single elements.
fn twin(name: &str, params: &[(String, ParamType)], function: CpuFunction) -> Twin {
    let name = name.to_owned();
    let kinds: Vec<ParamType> = params.iter().map(|(_, kind)| *kind).collect();
    Arc::new(move |of, to| {
        let (inputs, params) = of.columns.split_at(of.columns.len() - kinds.len());
        // A number is the same for all elements of a call.
        let numbers: Vec<Number> = (kinds.iter().zip(params))
            .map(|(kind, column)| Number::of(*kind, column[0].to_bits()))
            .collect();
        let each = || match &function {
            CpuFunction::Element(function) => {
                let mut values = vec![0.0; inputs.len()];
                for (at, to) in to.iter_mut().enumerate() {
                    for (value, column) in values.iter_mut().zip(inputs) {
                        *value = column[at];
                    }
                    *to = function(&values, &numbers);
                }
            }
            CpuFunction::At(function) => {
                let inputs = looked_at(of, inputs);
                for (at, to) in (of.first as i64..).zip(to) {
                    *to = function(at, &inputs, &numbers);
                }
            }
        };
        catch_unwind(AssertUnwindSafe(each)).map_err(|_| {
            Error::InvalidInput(format!(
                "{name}: the kernel's function for the CPU panicked"
            ))
        })
    })
}

/// The inputs of a function of a place.
fn looked_at<'a>(of: &Elements<'_>, inputs: &[&'a [f32]]) -> Vec<KernelInput<'a>> {
    let inputs = inputs.iter().zip(of.widths);
    let inputs = inputs.map(|(values, width)| KernelInput {
        values,
        width: i64::from(*width),
    });
    inputs.collect()
}

/// A kernel of the program's own, which [`Batch::apply`](crate::Batch::apply) applies. Copies are
/// the same kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    inputs: Vec<String>,
    params: Vec<(String, ParamType)>,
    function: Arc<CallerFn>,
}

impl Kernel {
    /// The name that the definition gave.
    pub fn name(&self) -> &str {
        &self.function.content.name
    }

    /// The names of the values that the kernel takes, in order.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    pub(in crate::native) fn function(&self) -> &Arc<CallerFn> {
        &self.function
    }

    /// The bits of the numbers of a call.
    pub(in crate::native) fn params(&self, numbers: &[Number]) -> Result<Vec<f32>, Error> {
        let wanted = &self.params;
        let fits = wanted.len() == numbers.len()
            && (wanted.iter().zip(numbers)).all(|((_, kind), number)| *kind == number.kind());
        if !fits {
            let wanted = wanted
                .iter()
                .map(|(name, kind)| format!("{name}: {}", kind.name()));
            return Err(Error::InvalidInput(format!(
                "{}: the params must be ({}), got {numbers:?}",
                self.name(),
                wanted.collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(numbers
            .iter()
            .map(|number| f32::from_bits(number.bits()))
            .collect())
    }
}
