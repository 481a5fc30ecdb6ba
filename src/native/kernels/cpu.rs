//! Functions of the program's own that compute kernels on the CPU, as the core calls them.
//!
//! What a kernel computes on a GPU is not known here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::number::Number;
use super::text::Input;
use crate::error::Error;
use crate::graph::{Elements, FnForm, ScalarType, Twin, ValueType};

/// A function for the CPU, as it was given.
#[derive(Clone)]
pub(super) enum CpuFunction {
    /// Of floats: the components of the values, which it gives one of.
    Float(Arc<FloatFunction>),
    /// Of floats, all of which it fills in.
    Floats(Arc<FloatsFunction>),
    /// Of a place, of floats.
    At(Arc<PlaceFunction>),
    /// Of anything.
    Numbers(Arc<NumbersFunction>),
}

type FloatFunction = dyn Fn(&[f32], &[Number]) -> f32 + Send + Sync;

type FloatsFunction = dyn Fn(&[f32], &[Number], &mut [f32]) + Send + Sync;

type PlaceFunction = dyn Fn(i64, &[KernelInput<'_>], &[Number]) -> f32 + Send + Sync;

type NumbersFunction = dyn Fn(&KernelElement<'_>, &mut [Number]) + Send + Sync;

/// What a function for the CPU computes of: see [`KernelDefinition::cpu_numbers`].
///
/// [`KernelDefinition::cpu_numbers`]: crate::KernelDefinition::cpu_numbers
#[derive(Clone, Copy, Debug)]
pub struct KernelElement<'a> {
    /// The place among the values of the result.
    pub place: i64,
    /// The components of the values that `element` takes, one value behind the other.
    pub values: &'a [Number],
    /// The tensors that the code looks at: the inputs of `at`, and shared ones.
    pub inputs: &'a [KernelInput<'a>],
    /// The numbers that come with the call.
    pub params: &'a [Number],
}

/// A tensor that a kernel's function looks at on the CPU. Places are clamped to what there is.
#[derive(Clone, Copy, Debug)]
pub struct KernelInput<'a> {
    words: &'a [f32],
    width: i64,
    of: ValueType,
}

impl<'a> KernelInput<'a> {
    /// The first component of the value at a place, as a float.
    pub fn get(&self, place: i64) -> f32 {
        self.components(place)[0]
    }

    /// The same of a row and a column, each clamped by itself.
    pub fn at(&self, row: i64, column: i64) -> f32 {
        self.get(self.place(row, column))
    }

    /// The place of a row and a column, each clamped by itself.
    pub fn place(&self, row: i64, column: i64) -> i64 {
        row.clamp(0, self.rows() - 1) * self.width + column.clamp(0, self.width - 1)
    }

    /// The components of the value at a place, as floats.
    pub fn components(&self, place: i64) -> &'a [f32] {
        let lanes = self.of.lanes as usize;
        let last = self.words.len() / lanes - 1;
        let place = usize::try_from(place).unwrap_or(if place < 0 { 0 } else { last });
        &self.words[place.min(last) * lanes..][..lanes]
    }

    /// The components of the value at a place, of the type that the definition says.
    pub fn numbers(&self, place: i64) -> impl Iterator<Item = Number> + use<'a> {
        let scalar = self.of.scalar;
        let words = self.components(place).iter();
        words.map(move |word| Number::of(scalar, word.to_bits()))
    }

    /// How many values there are; one or more.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> i64 {
        (self.words.len() / self.of.lanes as usize) as i64
    }

    /// How many rows there are: of all axes of values but the last together.
    pub fn rows(&self) -> i64 {
        self.len() / self.width
    }

    /// How many values there are along the last axis.
    pub fn columns(&self) -> i64 {
        self.width
    }
}

/// What the core asks a function for: one of the results, of which it takes components in order.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) form: FnForm,
    pub(super) inputs: Vec<Input>,
    pub(super) params: Vec<ScalarType>,
    /// The types of all results.
    pub(super) results: Vec<ValueType>,
    /// The result that is taken, or none where the core wants zeros.
    pub(super) result: Option<usize>,
    /// The components of that result.
    pub(super) lanes: usize,
    /// Whether inputs come as columns, and not whole.
    pub(super) is_fused: bool,
}

/// What the CPU computes columns with.
pub(super) fn twin(function: CpuFunction, asked: Asked) -> Twin {
    Arc::new(move |elements, to| {
        if asked.result.is_none() {
            to.fill(0.0); // No function for the CPU is stopped.
            return Ok(());
        }
        let each = || fill(&function, &asked, elements, to);
        catch_unwind(AssertUnwindSafe(each)).unwrap_or_else(|_| {
            Err(Error::InvalidInput(format!(
                "{}: the kernel's function for the CPU panicked",
                asked.name
            )))
        })
    })
}

fn fill(
    function: &CpuFunction,
    asked: &Asked,
    elements: &Elements<'_>,
    to: &mut [f32],
) -> Result<(), Error> {
    let (columns, numbers) = elements.columns.split_at(asked.inputs.len());
    // A number is the same for all elements of a call.
    let params: Vec<Number> = (asked.params.iter().zip(numbers))
        .map(|(kind, column)| Number::of(*kind, column[0].to_bits()))
        .collect();
    let whole = |at: usize, input: &Input| KernelInput {
        words: columns[at],
        width: elements.widths.get(at).map_or(1, |width| i64::from(*width)),
        of: input.of,
    };
    let looked = asked.inputs.iter().enumerate();
    let looked: Vec<KernelInput<'_>> = looked
        .filter(|(_, input)| input.is_whole)
        .map(|(at, input)| whole(at, input))
        .collect();
    let is_kept = asked.form == FnForm::Element;
    let values: Vec<(&[f32], ValueType)> = (columns.iter().zip(&asked.inputs))
        .filter(|(_, input)| is_kept && !input.is_whole)
        .map(|(column, input)| (*column, input.of))
        .collect();
    let first = if asked.is_fused { 0 } else { elements.first };
    let mut given = Given::new(function, asked);
    let (mut floats, mut numbers) = (Vec::new(), Vec::new());
    let mut computed = None;
    for (at, to) in (first..).zip(to.iter_mut()) {
        let place = at / asked.lanes;
        if computed.replace(place) != Some(place) {
            given.clear();
            floats.clear();
            for (column, of) in &values {
                floats.extend(vector(column, place, of.lanes as usize));
            }
            match function {
                CpuFunction::Float(function) => given.floats[0] = function(&floats, &params),
                CpuFunction::Floats(function) => function(&floats, &params, &mut given.floats),
                CpuFunction::At(function) => {
                    given.floats[0] = function(place as i64, &looked, &params);
                }
                CpuFunction::Numbers(function) => {
                    numbers.clear();
                    let kinds = values
                        .iter()
                        .flat_map(|(_, of)| std::iter::repeat_n(of.scalar, of.lanes as usize));
                    let typed = kinds.zip(&floats);
                    numbers.extend(typed.map(|(kind, word)| Number::of(kind, word.to_bits())));
                    let element = KernelElement {
                        place: place as i64,
                        values: &numbers,
                        inputs: &looked,
                        params: &params,
                    };
                    function(&element, &mut given.numbers);
                    given.take_numbers(asked)?;
                }
            }
        }
        *to = given.floats[given.place + at % asked.lanes];
    }
    Ok(())
}

/// What a function for the CPU fills in: the components of all results.
struct Given {
    floats: Vec<f32>,
    numbers: Vec<Number>,
    /// Where the result begins that is asked for.
    place: usize,
}

impl Given {
    fn new(function: &CpuFunction, asked: &Asked) -> Given {
        let lanes = |results: &[ValueType]| results.iter().map(|of| of.lanes as usize).sum();
        let kinds = asked.results.iter();
        let kinds = kinds.flat_map(|of| std::iter::repeat_n(of.scalar, of.lanes as usize));
        Given {
            floats: vec![0.0; lanes(&asked.results)],
            numbers: match function {
                CpuFunction::Numbers(_) => kinds.map(|kind| Number::of(kind, 0)).collect(),
                _ => Vec::new(),
            },
            place: lanes(&asked.results[..asked.result.unwrap_or_default()]),
        }
    }

    /// Forgets what was filled in for the value before.
    fn clear(&mut self) {
        self.floats.fill(0.0);
        for number in &mut self.numbers {
            *number = Number::of(number.kind(), 0);
        }
    }

    /// Takes the bits of what was filled in, which must be of the types that the definition says.
    fn take_numbers(&mut self, asked: &Asked) -> Result<(), Error> {
        let kinds = asked.results.iter();
        let kinds = kinds.flat_map(|of| std::iter::repeat_n(of.scalar, of.lanes as usize));
        for ((kind, number), float) in kinds.zip(&self.numbers).zip(&mut self.floats) {
            if number.kind() != kind {
                return Err(Error::InvalidInput(format!(
                    "{}: the kernel's function for the CPU must give a number of type {}, got {number:?}",
                    asked.name,
                    kind.name()
                )));
            }
            *float = f32::from_bits(number.bits());
        }
        Ok(())
    }
}

/// The components of the value at a place, in a column that begins anew as often as it has to.
fn vector(column: &[f32], place: usize, lanes: usize) -> &[f32] {
    let at = place % (column.len() / lanes) * lanes;
    &column[at..at + lanes]
}
