//! Kernels of a page's own: their definitions, and the functions that compute them on the CPU.

use std::cell::RefCell;
use std::sync::Arc;

use js_sys::{Function, Uint32Array};
use wasm_bindgen::JsValue;

use crate::error::Error;
use crate::graph::{CallerFn, FnContent, ParamType, Twin};

thread_local! {
    /// The functions of JavaScript that compute on the CPU. They stay, as definitions do.
    static TWINS: RefCell<Vec<Function>> = const { RefCell::new(Vec::new()) };
}

/// Defines a kernel; `sizes` are its inputs, the most passes of its loops or 0 where it has none,
/// and the type of each param.
pub(super) fn define(number: u32, [name, code]: [&str; 2], sizes: &[u32], twin: Option<Function>) {
    let [inputs, max_passes, kinds @ ..] = sizes else {
        return;
    };
    let kinds = kinds.iter().map(|kind| ParamType::ALL[*kind as usize]);
    let content = FnContent {
        name: name.into(),
        code: code.into(),
        inputs: *inputs as usize,
        max_passes: (*max_passes > 0).then_some(*max_passes),
        params: kinds.collect(),
    };
    CallerFn::define_numbered(number, content, twin.map(of_javascript));
}

/// A twin that a function of JavaScript computes: of where the columns lie, how many elements
/// these have, and where the results belong. It returns what was thrown, if anything was.
fn of_javascript(function: Function) -> Twin {
    let place = TWINS.with_borrow_mut(|twins| {
        twins.push(function);
        twins.len() - 1
    });
    Arc::new(move |operands, to| {
        let function = TWINS.with_borrow(|twins| twins[place].clone());
        let columns: Vec<u32> = operands
            .iter()
            .map(|column| column.as_ptr() as u32)
            .collect();
        let columns = Uint32Array::from(&columns[..]);
        let (elements, to) = (to.len() as u32, to.as_mut_ptr() as u32);
        let thrown = function.call3(&JsValue::NULL, &columns, &elements.into(), &to.into());
        match thrown.unwrap_or_else(|thrown| thrown).as_string() {
            None => Ok(()),
            Some(message) => Err(Error::InvalidInput(message)),
        }
    })
}
