//! What defines a kernel, and the kernel that comes of it.

use std::sync::Arc;

use super::cpu::{Asked, CpuFunction, KernelElement, KernelInput, twin};
use super::kernel::Kernel;
use super::number::Number;
use super::source::{
    Given, MAX_INPUTS, Problem, Source, collides, is_keyword, is_word_of_wgsl, read, type_of,
};
use super::text::{Gives, Input, declared, printed};
use crate::error::Error;
use crate::graph::{CallerFn, FnContent, FnForm, FnInput, ScalarType, ValueType};

/// Passes that the loops of one element may make together, unless a definition says more.
const MAX_PASSES: u32 = 1 << 20;

/// The most params of a kernel.
const MAX_PARAMS: usize = 16;

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
/// Values are `f32`, `i32` and `u32`, and vectors of these such as `vec3f`: of tensors whose last
/// axis is as long; what is in front of that broadcasts. What a function gives may also be a struct
/// of 1 to 8 values, each of which is a result: see
/// [`Batch::apply_fields`](crate::Batch::apply_fields). Kernels with vectors are passes of their
/// own, and so are kernels with [shared](KernelDefinition::shared) tensors.
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
    inputs: Vec<(String, String)>,
    shared: Vec<(String, String)>,
    params: Vec<(String, ScalarType)>,
    constants: Vec<(String, f64)>,
    max_passes: u32,
    flops: Option<u32>,
    cpu: Option<CpuFunction>,
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
            shared: Vec::new(),
            params: Vec::new(),
            constants: Vec::new(),
            max_passes: MAX_PASSES,
            flops: None,
            cpu: None,
        }
    }

    /// Adds a tensor of floats that `at` looks at, by this name; 1 to 6 of them. The values that
    /// `element` takes are named by its parameters.
    pub fn input(self, name: impl Into<String>) -> KernelDefinition {
        self.input_of(name, "f32")
    }

    /// The same for a tensor of values of a type of WGSL, such as `u32` or `vec3f`.
    pub fn input_of(mut self, name: impl Into<String>, of: impl Into<String>) -> KernelDefinition {
        self.inputs.push((name.into(), of.into()));
        self
    }

    /// Adds a tensor, of values of a type of WGSL, that the code looks at as a whole: a table, or
    /// weights. It is a function of a place in the code, as the inputs of `at` are, and comes behind
    /// the other values of a call; with these, a kernel has at most 6. Where many calls give the
    /// same [tensor](crate::Gpu::tensor), it lies on the device once.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// use framebatch::{KernelDefinition, Number};
    ///
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let paint = KernelDefinition::new("paint", "fn element(i: u32) -> f32 { return palette(i32(i)); }")
    ///     .shared("palette", "f32")
    ///     .cpu_numbers(|of, to| match of.values {
    ///         [Number::U32(i)] => to[0] = of.inputs[0].get(i64::from(*i)).into(),
    ///         _ => unreachable!("one value, of type u32"),
    ///     })
    ///     .build()?;
    ///
    /// let palette = gpu.tensor(&[0.5, 0.25, 0.125], &[3])?;
    /// let mut batch = gpu.batch();
    /// let colors = batch.upload_indexes(&[2, 0, 9], &[3])?;
    /// let table = batch.tensor(&palette)?;
    /// let painted = batch.apply(&paint, &[colors, table], &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(painted)?, [0.125, 0.5, 0.125]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn shared(mut self, name: impl Into<String>, of: impl Into<String>) -> KernelDefinition {
        self.shared.push((name.into(), of.into()));
        self
    }

    /// Gives an `override` of the code its value, which compiles the kernel anew: 1 and 0 for true
    /// and false. The code declares it as `override taps: i32 = 3;`, where the value is the default.
    pub fn constant(mut self, name: impl Into<String>, value: impl Into<f64>) -> KernelDefinition {
        self.constants.push((name.into(), value.into()));
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
    /// a tensor is NaN there, and 0 where it holds whole numbers.
    pub fn max_passes(mut self, passes: u32) -> KernelDefinition {
        self.max_passes = passes;
        self
    }

    /// Says how many floating-point operations one run of the function has, for
    /// [`Facts::flops`](crate::Facts::flops): these are unknown of a batch with a kernel that does
    /// not say. Of a struct each field that is computed is a run of its own. Equal definitions with
    /// other numbers are kernels of their own.
    pub fn flops(mut self, operations: u32) -> KernelDefinition {
        self.flops = Some(operations);
        self
    }

    /// Says how the CPU computes an element of its values and params: the same as the code does.
    /// It runs on any thread, and on several at once. Without it calls fail on the CPU, with
    /// [`Error::NoCpuFunction`]. Of equal kernels the function that was given first computes.
    /// The numbers of vectors stand one behind the other.
    pub fn cpu(
        mut self,
        function: impl Fn(&[f32], &[Number]) -> f32 + Send + Sync + 'static,
    ) -> KernelDefinition {
        self.cpu = Some(CpuFunction::Float(Arc::new(function)));
        self
    }

    /// The same for a kernel that gives a vector or a struct, whose numbers the function fills in,
    /// one behind the other.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// use framebatch::KernelDefinition;
    ///
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let turn = KernelDefinition::new("turn", "fn element(p: vec2f) -> vec2f { return vec2f(-p.y, p.x); }")
    ///     .cpu_into(|p, _, to| to.copy_from_slice(&[-p[1], p[0]]))
    ///     .build()?;
    ///
    /// let mut batch = gpu.batch();
    /// let points = batch.upload_shaped(&[1.0, 0.0, 3.0, 4.0], &[2, 2])?;
    /// let turned = batch.apply(&turn, &[points], &[])?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(turned)?, [0.0, 1.0, -4.0, 3.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn cpu_into(
        mut self,
        function: impl Fn(&[f32], &[Number], &mut [f32]) + Send + Sync + 'static,
    ) -> KernelDefinition {
        self.cpu = Some(CpuFunction::Floats(Arc::new(function)));
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

    /// The same for a kernel of either function whose values are not floats alone, that looks at
    /// [shared](KernelDefinition::shared) tensors, or whose function `at` gives a vector or a struct.
    /// The function fills in the components of what it gives, which are zeros of the right types
    /// before. [`KernelDefinition::shared`] has an example.
    pub fn cpu_numbers(
        mut self,
        function: impl Fn(&KernelElement<'_>, &mut [Number]) + Send + Sync + 'static,
    ) -> KernelDefinition {
        self.cpu = Some(CpuFunction::Numbers(Arc::new(function)));
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
        let given = Given {
            params: &params,
            constants: &self.constants,
        };
        let source = read(&self.code, given).map_err(|problem| self.refuse(&problem))?;
        let inputs = self.taken(&source)?;
        self.check_cpu(&source, &inputs)?;
        let functions = (0..source.results.len()).map(|result| {
            let of = source.results[result].1;
            // Floats alone can say that loops were stopped.
            let is_telling = of.scalar == ScalarType::F32;
            let told_by = (source.has_loops && !is_telling).then(|| {
                let of = ValueType {
                    scalar: ScalarType::F32,
                    ..of
                };
                let told_by = self.function(&source, &inputs, (of, None), None);
                told_by.number()
            });
            self.function(&source, &inputs, (of, Some(result)), told_by)
        });
        Ok(Kernel {
            functions: functions.collect(),
            results: (source.results.iter())
                .map(|(field, _)| field.clone())
                .collect(),
            inputs: inputs.into_iter().map(|input| input.name).collect(),
            params: self.params,
        })
    }

    /// What the core knows as a function: what computes one of the results, or where there is none
    /// of this number, what says whether loops were stopped.
    fn function(
        &self,
        source: &Source,
        inputs: &[Input],
        (of, result): (ValueType, Option<usize>),
        told_by: Option<u32>,
    ) -> Arc<CallerFn> {
        let taken = inputs.iter().map(|input| FnInput {
            of: input.of,
            is_whole: input.is_whole,
        });
        let mut content = FnContent {
            name: self.name.clone(),
            code: source.code.clone(),
            form: source.form,
            inputs: taken.collect(),
            result: of,
            max_passes: source.has_loops.then_some(self.max_passes),
            flops: self.flops,
            params: self.params.iter().map(|(_, kind)| *kind).collect(),
            told_by,
        };
        let gives = match result {
            Some(result) => Gives::Result(&source.results[result].0),
            None => Gives::Nothing,
        };
        content.code += &declared(source, &content, inputs, &self.params, gives);
        let asked = || Asked {
            name: self.name.clone(),
            form: source.form,
            inputs: inputs.to_vec(),
            params: content.params.clone(),
            results: source.results.iter().map(|(_, of)| *of).collect(),
            result,
            lanes: of.lanes as usize,
            is_fused: content.is_fused(),
        };
        let cpu = self.cpu.clone().map(|cpu| twin(cpu, asked()));
        let text = printed(&content.code);
        CallerFn::define(content, text, cpu)
    }

    /// The tensors that the kernel takes.
    fn taken(&self, source: &Source) -> Result<Vec<Input>, Error> {
        let refuse =
            |problem: String| Err(Error::InvalidInput(format!("{}: {problem}", self.name)));
        let mut inputs = Vec::new();
        match source.form {
            FnForm::Element if !self.inputs.is_empty() => {
                return refuse(
                    "the values that `element` takes are named by its parameters; leave `input` out"
                        .into(),
                );
            }
            FnForm::At if self.inputs.is_empty() => {
                return refuse(format!("`at` looks at 1 to {MAX_INPUTS} inputs, got 0"));
            }
            _ => inputs.extend(source.inputs.iter().map(|(name, of)| Input {
                name: name.clone(),
                of: *of,
                is_whole: false,
            })),
        }
        let looked: Vec<&(String, String)> = self.inputs.iter().chain(&self.shared).collect();
        for (at, (name, of)) in looked.iter().enumerate() {
            let others = looked.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<String> = others.map(|(_, (other, _))| other.clone()).collect();
            let is_value = source.inputs.iter().any(|(value, _)| value == name);
            if !is_name(name) || is_word_of_wgsl(name) || is_value || collides(name, &others) {
                return refuse(format!(
                    "an input has a name of its own that is no word of WGSL, got '{name}'"
                ));
            }
            let Some(of) = type_of(of) else {
                return refuse(format!(
                    "input {name} must be a number such as f32 or a vector such as vec3f, got '{of}'"
                ));
            };
            inputs.push(Input {
                name: name.clone(),
                of,
                is_whole: true,
            });
        }
        match inputs.len() {
            0..=MAX_INPUTS => Ok(inputs),
            count => refuse(format!(
                "a kernel takes at most {MAX_INPUTS} tensors, shared ones included, got {count}"
            )),
        }
    }

    /// Refuses a function for the CPU that is for kernels of another kind.
    fn check_cpu(&self, source: &Source, inputs: &[Input]) -> Result<(), Error> {
        let Some(cpu) = &self.cpu else {
            return Ok(());
        };
        let are_floats = inputs
            .iter()
            .all(|input| input.of.scalar == ScalarType::F32)
            && source
                .results
                .iter()
                .all(|(_, of)| of.scalar == ScalarType::F32);
        let is_single = matches!(&*source.results, [(_, of)] if of.lanes == 1);
        let problem = match (cpu, source.form) {
            (CpuFunction::Numbers(_), _) => return Ok(()),
            (CpuFunction::At(_), FnForm::Element)
            | (CpuFunction::Float(_) | CpuFunction::Floats(_), FnForm::At) => {
                "`cpu` is for the function `element`, and `cpu_at` for `at`"
            }
            _ if !are_floats || source.form == FnForm::Element && !self.shared.is_empty() => {
                "`cpu`, `cpu_into` and `cpu_at` know floats alone and no shared tensors; give `cpu_numbers`"
            }
            (CpuFunction::Float(_), _) if !is_single => {
                "`cpu` gives one number; give `cpu_into`, which fills all of them in"
            }
            (CpuFunction::At(_), _) if !is_single => {
                "`cpu_at` gives one number; give `cpu_numbers`, which fills all of them in"
            }
            _ => return Ok(()),
        };
        Err(Error::InvalidInput(format!("{}: {problem}", self.name)))
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
