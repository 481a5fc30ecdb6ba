//! Kernels of a page's own: their definitions, and the functions that compute them on the CPU.

#![expect(
    clippy::cast_possible_truncation,
    reason = "the memory of WebAssembly has 32-bit addresses"
)]

use std::cell::RefCell;
use std::sync::Arc;

use js_sys::{Array, Function, Uint32Array};
use wasm_bindgen::JsValue;

use crate::error::Error;
use crate::graph::{CallerFn, FnContent, FnForm, FnInput, ScalarType, Twin, ValueType};

thread_local! {
    /// The functions of JavaScript that compute on the CPU. They stay, as definitions do.
    static TWINS: RefCell<Vec<Function>> = const { RefCell::new(Vec::new()) };
}

/// Defines a kernel; `sizes` are 1 if it is of a place, the most passes of its loops or 0 where it
/// has none, the operations of one run or `u32::MAX` where these are unknown, the number of the kernel that says whether these were stopped and 1 more or 0, the
/// type of the result, how many inputs there are and the type of each, with [`WHOLE`] where it does
/// not broadcast, and the type of each param.
pub(super) fn define(number: u32, [name, code]: [&str; 2], sizes: &[u32], twin: Option<Function>) {
    let [form, max_passes, flops, told_by, result, inputs, rest @ ..] = sizes else {
        return;
    };
    let (inputs, params) = rest.split_at(*inputs as usize);
    let inputs = inputs.iter().map(|code| FnInput {
        of: ValueType::from_code(*code),
        is_whole: code & WHOLE != 0,
    });
    let params = params.iter().map(|code| ScalarType::ALL[*code as usize]);
    let content = FnContent {
        name: name.into(),
        code: code.into(),
        form: [FnForm::Element, FnForm::At][*form as usize],
        inputs: inputs.collect(),
        result: ValueType::from_code(*result),
        max_passes: (*max_passes > 0).then_some(*max_passes),
        flops: (*flops < u32::MAX).then_some(*flops),
        params: params.collect(),
        told_by: told_by.checked_sub(1),
    };
    CallerFn::define_numbered(number, content, twin.map(of_javascript));
}

/// Set in the type of an input that does not broadcast.
const WHOLE: u32 = 32;

/// A twin that a function of JavaScript computes; `Twin` in `pkg-template/src/core/core.ts` says
/// what it is given.
fn of_javascript(function: Function) -> Twin {
    let place = TWINS.with_borrow_mut(|twins| {
        twins.push(function);
        twins.len() - 1
    });
    Arc::new(move |of, to| {
        let function = TWINS.with_borrow(|twins| twins[place].clone());
        let mut columns = Vec::new();
        for (at, column) in of.columns.iter().enumerate() {
            let width = of.widths.get(at).copied().unwrap_or_default();
            columns.extend([column.as_ptr() as u32, column.len() as u32, width]);
        }
        let columns = Uint32Array::from(&columns[..]);
        let [first, count, to] = [of.first as u32, to.len() as u32, to.as_mut_ptr() as u32];
        let numbers = [first, count, to].map(JsValue::from);
        let given = Array::of4(&columns, &numbers[0], &numbers[1], &numbers[2]);
        let thrown = function.apply(&JsValue::NULL, &given);
        match thrown.unwrap_or_else(|thrown| thrown).as_string() {
            None => Ok(()),
            Some(message) => Err(Error::InvalidInput(message)),
        }
    })
}
