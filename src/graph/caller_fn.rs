//! Functions of a caller's own, as the expressions of stages apply them.
//!
//! What may stand in a function's text is checked by the faces, in front of this. How the text is
//! printed is known to `kernel`, and who computes without a GPU to `device/cpu`.

use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::shape::Shape;
use crate::error::Error;
use crate::tensor::DType;

/// A function of elements, written by a caller in WGSL.
///
/// Invariant: there is one for each content, so that equal functions are one by their numbers.
pub struct CallerFn {
    number: u32,
    /// What the caller wrote.
    pub content: FnContent,
    /// The WGSL of [`FnContent::code`] as it stands in kernels: the caller's names begin with
    /// [`CallerFn::own`], and those beside them, which the caller's text cannot say, with
    /// [`CallerFn::beside`]. Among these is the function `result`, which gives one component of
    /// the result: of single values where the function [is fused](FnContent::is_fused), and of a
    /// place among all components elsewhere.
    pub text: String,
    /// What computes without a GPU, if anything does.
    twin: Mutex<Option<Twin>>,
}

/// What makes two functions one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnContent {
    /// The name in messages and plans.
    pub name: String,
    /// The WGSL, as the face keeps it that has checked it.
    pub code: String,
    /// What the function is of.
    pub form: FnForm,
    /// The tensors that the function takes: the first operands.
    pub inputs: Vec<FnInput>,
    /// The type of one value of the result.
    pub result: ValueType,
    /// Passes that the loops of one value may make together; `None` where there are no loops.
    pub max_passes: Option<u32>,
    /// Floating-point operations of one run of the function, which gives all numbers of a vector;
    /// `None` where the definition does not say.
    pub flops: Option<u32>,
    /// The types of the numbers that come with a call: the operands behind the inputs.
    pub params: Vec<ScalarType>,
    /// The number of the function that says whether loops were stopped, where the result holds
    /// whole numbers: these have no bits to spare that could say so. That function takes the same
    /// operands and gives 0.
    pub told_by: Option<u32>,
}

impl FnContent {
    /// Whether the function is applied to single values within a larger expression. All other
    /// functions are stages of their own, which are called with a place and read their inputs
    /// themselves.
    pub fn is_fused(&self) -> bool {
        let is_single = |input: &FnInput| input.of.lanes == 1 && !input.is_whole;
        self.form == FnForm::Element && self.result.lanes == 1 && self.inputs.iter().all(is_single)
    }
}

/// What a caller's function is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FnForm {
    /// `element`, of values that broadcasting brings together.
    Element,
    /// `at`, of a place in the first input, which looks at any place of all inputs.
    At,
}

/// A tensor that a caller's function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FnInput {
    /// The type of one value.
    pub of: ValueType,
    /// Whether the function looks at any place of the tensor, which then does not broadcast.
    pub is_whole: bool,
}

/// The type of a value: a scalar, or a vector along a tensor's last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// The type of each component.
    pub scalar: ScalarType,
    /// How many components there are, 1 to 4.
    pub lanes: u32,
}

impl ValueType {
    /// A single float.
    pub const F32: ValueType = ValueType {
        scalar: ScalarType::F32,
        lanes: 1,
    };

    /// The name in WGSL.
    pub fn name(self) -> String {
        let scalar = self.scalar.name();
        match self.lanes {
            1 => scalar.into(),
            lanes => format!("vec{lanes}{}", &scalar[..1]),
        }
    }

    /// The type of this number on the wire: its scalar, and its components times 4.
    pub fn from_code(code: u32) -> ValueType {
        ValueType {
            scalar: ScalarType::ALL[(code & 3) as usize % 3],
            lanes: code >> 2 & 7,
        }
    }

    /// The shape of as many values as a tensor of this shape holds; `None` where the last axis is
    /// not as long as a value.
    pub fn places(self, shape: Shape) -> Option<Shape> {
        match (self.lanes, shape.dims()) {
            (1, _) => Some(shape),
            (lanes, [places @ .., last]) if *last == lanes => Shape::new(places).ok(),
            _ => None,
        }
    }
}

/// A scalar type of WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarType {
    /// A float.
    F32,
    /// A whole number with a sign.
    I32,
    /// A whole number without a sign.
    U32,
}

impl ScalarType {
    /// Every type, in the order of their numbers on the wire.
    pub const ALL: [ScalarType; 3] = [ScalarType::F32, ScalarType::I32, ScalarType::U32];

    /// The name in WGSL.
    pub const fn name(self) -> &'static str {
        ["f32", "i32", "u32"][self as usize]
    }

    /// The type of the elements of such a tensor.
    pub const fn dtype(self) -> DType {
        [DType::F32, DType::I32, DType::U32][self as usize]
    }
}

/// Stands in code in front of each name that a caller gave; no character of WGSL.
pub const MARK: char = '#';

/// Stands in code in front of each name beside these; no character of WGSL.
pub const BESIDE: char = '$';

/// What stands in code before and behind what is not the caller's; no characters of WGSL.
pub const ADDED: [char; 2] = ['\u{2}', '\u{3}'];

/// Computes without a GPU: consecutive elements.
pub type Twin = Arc<dyn Fn(&Elements<'_>, &mut [f32]) -> Result<(), Error> + Send + Sync>;

/// What a twin computes elements of.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The place of the first element.
    pub first: usize,
    /// Inputs, and then params. A column has a value for each element. An input of a function
    /// that is not [fused](FnContent::is_fused) is whole.
    pub columns: &'a [&'a [f32]],
    /// For each whole input how many values there are along the last axis.
    pub widths: &'a [u32],
}

/// Every function that was defined. They are few, and are compiled once as long as the program
/// lives.
static DEFINED: Mutex<Vec<Arc<CallerFn>>> = Mutex::new(Vec::new());

impl CallerFn {
    /// The function of this content, whose text a function of its number gives. The first twin
    /// that is given for it computes.
    pub fn define(
        content: FnContent,
        text: impl FnOnce(u32) -> String,
        twin: Option<Twin>,
    ) -> Arc<CallerFn> {
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = defined.iter().find(|known| known.content == content) {
            known.adopt(twin);
            return Arc::clone(known);
        }
        let number = u32::try_from(defined.len()).expect("fewer than 2^32 functions");
        let made = Arc::new(CallerFn {
            number,
            content,
            text: text(number),
            twin: Mutex::new(twin),
        });
        defined.push(Arc::clone(&made));
        made
    }

    /// Defines a function that has a number already, which stands for this content alone, and whose
    /// code is text as it stands in kernels.
    pub fn define_numbered(number: u32, mut content: FnContent, twin: Option<Twin>) {
        if let Some(known) = CallerFn::numbered(number) {
            return known.adopt(twin);
        }
        let text = std::mem::take(&mut content.code);
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        defined.push(Arc::new(CallerFn {
            number,
            content,
            text,
            twin: Mutex::new(twin),
        }));
    }

    /// The function of this number.
    pub fn numbered(number: u32) -> Option<Arc<CallerFn>> {
        let defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        defined.iter().find(|known| known.number == number).cloned()
    }

    fn adopt(&self, twin: Option<Twin>) {
        let mut own = self.twin.lock().unwrap_or_else(PoisonError::into_inner);
        if own.is_none() {
            *own = twin;
        }
    }

    /// The number, by which TypeScript names the function.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What stands in front of the names that a caller gave to the function of this number.
    pub fn own(number: u32) -> String {
        format!("k{number}_")
    }

    /// What stands in front of the names beside these, which the caller's text cannot say.
    pub fn beside(number: u32) -> String {
        format!("c{number}_")
    }

    /// Operands: inputs, and then params.
    pub fn operands(&self) -> usize {
        self.content.inputs.len() + self.content.params.len()
    }

    /// Floating-point operations for one number of the result; NaN where the definition does not
    /// say.
    pub fn flops(&self) -> f64 {
        let lanes = self.content.result.lanes;
        self.content.flops.map_or(f64::NAN, f64::from) / f64::from(lanes)
    }

    /// What computes without a GPU, if anything does.
    pub fn twin(&self) -> Option<Twin> {
        let twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner);
        twin.clone()
    }
}

impl PartialEq for CallerFn {
    fn eq(&self, other: &CallerFn) -> bool {
        self.number == other.number
    }
}

impl Eq for CallerFn {}

impl Hash for CallerFn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl Debug for CallerFn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.content.name)
    }
}
