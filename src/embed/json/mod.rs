//! JSON of a model's files: read in slices as they arrive, and as values.
//!
//! [`Parser`] takes any slices of a file, tells its listener what it reads, and keeps nothing.
//! [`Builder`] is a listener that makes values of it. What fields mean is not known here. Texts
//! must be Unicode and numbers finite: what JavaScript and serde read differently is refused.

mod builder;
mod parser;
mod value;

pub use builder::Builder;
pub use parser::{Event, Parser, Problem};
pub use value::{Value, parse};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
