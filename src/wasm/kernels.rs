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
use crate::graph::{CallerFn, FnContent, FnForm, ParamType, Twin};

thread_local! {
    /// The functions of JavaScript that compute on the CPU. They stay, as definitions do.
    static TWINS: RefCell<Vec<Function>> = const { RefCell::new(Vec::new()) };
}

/// Defines a kernel; `sizes` are 1 if it is of a place, its inputs, the most passes of its loops or 0 where it has none,
/// and the type of each param.
pub(super) fn define(number: u32, [name, code]: [&str; 2], sizes: &[u32], twin: Option<Function>) {
    let [form, inputs, max_passes, kinds @ ..] = sizes else {
        return;
    };
    let kinds = kinds.iter().map(|kind| ParamType::ALL[*kind as usize]);
    let content = FnContent {
        name: name.into(),
        code: code.into(),
        form: [FnForm::Element, FnForm::At][*form as usize],
        inputs: *inputs as usize,
        max_passes: (*max_passes > 0).then_some(*max_passes),
        params: kinds.collect(),
    };
    CallerFn::define_numbered(number, content, twin.map(of_javascript));
}

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
