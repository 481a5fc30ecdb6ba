//! Kernels of the program's own: functions of elements, written in WGSL.
//!
//! A definition is checked here, and from then on one more function that chains apply. How such
//! functions become part of kernels is known to `kernel`.

mod definition;
mod scanner;
mod source;
mod words;

pub use definition::{Kernel, KernelDefinition, KernelInput, Number};

#[cfg(test)]
mod tests;
