//! A kernel that was defined.

use std::sync::Arc;

use super::number::Number;
use crate::error::Error;
use crate::graph::{CallerFn, ScalarType};

/// A kernel of the program's own, which [`Batch::apply`](crate::Batch::apply) applies. Copies are
/// the same kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(super) inputs: Vec<String>,
    pub(super) params: Vec<(String, ScalarType)>,
    /// The names of the results; one without a name where there is one alone.
    pub(super) results: Vec<String>,
    /// What computes each result.
    pub(super) functions: Vec<Arc<CallerFn>>,
}

impl Kernel {
    /// The name that the definition gave.
    pub fn name(&self) -> &str {
        &self.functions[0].content.name
    }

    /// The names of the fields that the kernel gives; one empty name where it gives no struct.
    pub fn results(&self) -> &[String] {
        &self.results
    }

    /// The names of the tensors that the kernel takes, in order; shared ones are the last.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    pub(in crate::native) fn functions(&self) -> &[Arc<CallerFn>] {
        &self.functions
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
