//! Functions of a caller's own, as the expressions of stages apply them.
//!
//! What may stand in a function's text is checked by the faces, in front of this. How the text is
//! printed is known to `kernel`, and who computes without a GPU to `device/cpu`.

use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// A function of elements, written by a caller in WGSL.
///
/// Invariant: there is one for each content, so that equal functions are one by their numbers.
pub struct CallerFn {
    number: u32,
    /// What the caller wrote.
    pub content: FnContent,
    /// The WGSL of [`FnContent::code`] as it stands in kernels: the caller's names begin with
    /// [`CallerFn::own`], and those beside them, which the caller's text cannot say, with
    /// [`CallerFn::beside`]. There are the function `element`, and the variables and types
    /// that `kernel` names.
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
    /// How many values or tensors it takes: the first operands.
    pub inputs: usize,
    /// Passes that the loops of one element may make together; `None` where there are no loops.
    pub max_passes: Option<u32>,
    /// The types of the numbers that come with a call: the operands behind the inputs.
    pub params: Vec<ParamType>,
}

/// What a caller's function is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FnForm {
    /// `element`, of values that broadcasting brings together.
    Element,
    /// `at`, of a place in the first operand, which looks at any place of all operands.
    At,
}

/// The type of a number that comes with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A float.
    F32,
    /// A whole number with a sign.
    I32,
    /// A whole number without a sign.
    U32,
}

impl ParamType {
    /// Every type, in the order of their numbers on the wire.
    pub const ALL: [ParamType; 3] = [ParamType::F32, ParamType::I32, ParamType::U32];

    /// The name in WGSL.
    pub const fn name(self) -> &'static str {
        ["f32", "i32", "u32"][self as usize]
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
    /// Inputs, and then params. A column has a value for each element. An input of
    /// [`FnForm::At`] is whole.
    pub columns: &'a [&'a [f32]],
    /// For each input of [`FnForm::At`] the length of its last axis.
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
        self.content.inputs + self.content.params.len()
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
