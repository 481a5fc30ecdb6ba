//! What calls of functions give: the results as the function returned them, once all of them are
//! there.

use std::marker::PhantomData;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::Value;
use crate::error::Error;
use crate::native::call::Call;
use crate::native::platform::block_on;

/// A call of a [`Function`](super::Function) under way. It resolves to what the function returns, or to its own
/// error.
///
/// A call that is dropped before its answer is given up, unless its function stores something.
#[derive(Debug)]
#[must_use = "dropping a call gives it up"]
pub struct FunctionCall<R> {
    /// Where the results lie, end to end.
    places: Arc<[Range<usize>]>,
    results: Call<f32>,
    /// The floats of all results, once they are there.
    floats: Option<Vec<f32>>,
    /// The call that stores.
    stored: Option<Call<f32>>,
    returned: PhantomData<fn() -> R>,
}

impl<R: FunctionResults> FunctionCall<R> {
    pub(super) fn new(
        places: &Arc<[Range<usize>]>,
        results: Call<f32>,
        stored: Option<Call<f32>>,
    ) -> FunctionCall<R> {
        FunctionCall {
            places: Arc::clone(places),
            results,
            floats: None,
            stored,
            returned: PhantomData,
        }
    }

    /// Blocks this thread until the answer is there. Not for async code: `await` the call instead.
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn wait(self) -> Result<R::Floats, Error> {
        block_on(self)
    }
}

impl<R: FunctionResults> Future for FunctionCall<R> {
    type Output = Result<R::Floats, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.floats.is_none() {
            let floats = ready!(Pin::new(&mut self.results).poll(context))?;
            self.floats = Some(floats);
        }
        if let Some(stored) = &mut self.stored {
            ready!(Pin::new(stored).poll(context))?;
            self.stored = None;
        }
        let floats = self
            .floats
            .take()
            .expect("a call is polled until its answer");
        let results = match &*self.places {
            // One result is all of the floats.
            [_] => vec![floats],
            ranges => {
                let results = ranges.iter().map(|range| floats[range.clone()].to_vec());
                results.collect()
            }
        };
        Poll::Ready(Ok(R::floats(results)))
    }
}

/// What a function may return: one value, several, or none where it stores.
pub trait FunctionResults: sealed::Returned {
    /// What a call resolves to.
    type Floats;

    #[doc(hidden)]
    fn floats(results: Vec<Vec<f32>>) -> Self::Floats;
}

mod sealed {
    pub trait Returned {
        fn values(&self) -> &[super::Value];
    }
}

impl sealed::Returned for Value {
    fn values(&self) -> &[Value] {
        std::slice::from_ref(self)
    }
}

impl FunctionResults for Value {
    type Floats = Vec<f32>;

    fn floats(mut results: Vec<Vec<f32>>) -> Vec<f32> {
        results.pop().unwrap_or_default()
    }
}

impl<const K: usize> sealed::Returned for [Value; K] {
    fn values(&self) -> &[Value] {
        self
    }
}

impl<const K: usize> FunctionResults for [Value; K] {
    type Floats = [Vec<f32>; K];

    fn floats(results: Vec<Vec<f32>>) -> [Vec<f32>; K] {
        results.try_into().expect("one for each value")
    }
}

impl sealed::Returned for Vec<Value> {
    fn values(&self) -> &[Value] {
        self
    }
}

impl FunctionResults for Vec<Value> {
    type Floats = Vec<Vec<f32>>;

    fn floats(results: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        results
    }
}

impl sealed::Returned for () {
    fn values(&self) -> &[Value] {
        &[]
    }
}

impl FunctionResults for () {
    type Floats = ();

    fn floats(_: Vec<Vec<f32>>) {}
}
