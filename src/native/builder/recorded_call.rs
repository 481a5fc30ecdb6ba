//! A call that is made again and again: everything of it but the arrays that each time is given.
//!
//! A call is made of a part of a batch's chain; what the program makes of the results is not known here.

use super::record::Upload;
use super::selection::Selection;
use crate::error::Error;
use crate::native::request::{Chained, RecordedChain, Request, Structure, Written};
use crate::native::shared::Shared;
use crate::native::tensor::Tensor;

/// A call with its structure, tensors and numbers.
#[derive(Debug)]
pub(super) struct RecordedCall {
    chain: RecordedChain,
    uploads: Vec<Upload<'static>>,
    constants: Vec<f32>,
    /// The tensors that are read and written, and their numbers in the session that recorded.
    tensors: Vec<Tensor>,
    numbers: Vec<u32>,
    /// Tensors that are written, by their numbers in that session.
    written: Vec<Written>,
    /// The floats of the call's answer.
    pub(super) floats: usize,
}

/// The numbers of a call's tensors in the session that the call goes to.
pub(super) struct Numbers {
    pub(super) tensors: Vec<u32>,
    pub(super) written: Vec<Written>,
}

impl RecordedCall {
    /// A call of a part of a batch, all of whose tensors are among `tensors`. It has an answer of so
    /// many floats, or writes tensors.
    pub(super) fn new(
        selection: Selection<'_>,
        tensors: &[Tensor],
        floats: usize,
        written: Vec<Written>,
    ) -> RecordedCall {
        let tensor_of = |number: &u32| {
            let mut tensors = tensors.iter();
            let tensor = tensors.find(|tensor| tensor.number() == *number);
            tensor.expect("the batch named it").clone()
        };
        RecordedCall {
            tensors: selection.tensors.iter().map(tensor_of).collect(),
            uploads: selection.uploads.iter().map(|of| of.owned()).collect(),
            chain: RecordedChain::new(selection.chain),
            constants: selection.constants,
            numbers: selection.tensors,
            written,
            floats,
        }
    }

    /// The numbers in the session that recorded.
    pub(super) fn own_numbers(&self) -> Numbers {
        Numbers {
            tensors: self.numbers.clone(),
            written: self.written.clone(),
        }
    }

    /// The numbers in a session that explains calls, or compiles their kernels.
    pub(super) fn numbers_in(&self, shared: &Shared) -> Result<Numbers, Error> {
        let numbers = self.tensors.iter().map(|tensor| shared.admit(tensor));
        let tensors = numbers.collect::<Result<Vec<u32>, Error>>()?;
        let written = self.written.iter().map(|written| {
            let mut numbers = self.numbers.iter().zip(&tensors);
            let known = numbers.find(|(own, _)| **own == written.number);
            let (_, number) = known.expect("what is written is among the tensors");
            Written {
                number: *number,
                ..*written
            }
        });
        let written = written.collect();
        Ok(Numbers { tensors, written })
    }

    /// The call that is given these arrays.
    pub(super) fn request<'a>(&'a self, given: &[&'a [f32]], numbers: Numbers) -> Request<'a> {
        let uploads = self.uploads.iter().map(|upload| upload.bytes(given));
        let constants = bytemuck::cast_slice(&self.constants);
        let Numbers { tensors, written } = numbers;
        Request {
            structure: Structure::Recorded(self.chain.clone()),
            // The answer of a call without elements is known.
            rows: usize::from(self.floats > 0 || !self.written.is_empty()),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands: uploads.chain([constants]).collect(),
                tensors,
                // What is stored whole begins where its tensor does.
                offset: (!written.is_empty()).then_some(0),
                written,
            },
        }
    }
}
