//! Kernels of the program's own: functions of elements, written in WGSL.
//!
//! A definition is checked here, and from then on one more function that chains apply. How such
//! functions become part of kernels is known to `kernel`.

mod cpu;
mod definition;
mod expected;
mod kernel;
mod number;
mod scanner;
mod source;
mod text;
mod words;

pub use cpu::{KernelElement, KernelInput};
pub use definition::KernelDefinition;
pub(super) use expected::{Array, expected, twin_of};
pub use kernel::Kernel;
pub use number::Number;

#[cfg(test)]
mod tests;
