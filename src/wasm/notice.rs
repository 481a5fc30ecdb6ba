//! What TypeScript is told: answers, as one settle table a chunk, and what became of the device.
//! No borrow is held while a callback runs, because it may call methods of the core.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use super::inner::Inner;
use super::report;
use super::table::Table;
use crate::batch::Ticket;
use crate::driver::News;
use crate::error::Error;
use crate::session::Settlement;

impl Inner {
    /// Answers the calls of a chunk.
    pub(super) fn answer(&self, settlement: &Settlement) {
        // While TypeScript is told, it reads how many batches a GPU still works on.
        self.header.count_owed(self.session().owed());
        let mut table = self.table.take();
        let (source, message) = table.fill(&settlement.answers, &settlement.outcome);
        self.settle(table, &source, &message, settlement.is_last);
    }

    /// Rejects calls.
    pub(super) fn refuse(&self, tickets: &[Ticket], error: &Error) {
        let mut table = self.table.take();
        let message = table.fail(tickets, error);
        self.settle(table, &JsValue::NULL, &message, false);
    }

    /// Answers tickets that have no result.
    pub(super) fn accept(&self, tickets: &[Ticket]) {
        let mut table = self.table.take();
        table.accept(tickets);
        self.settle(table, &JsValue::NULL, &JsValue::UNDEFINED, false);
    }

    /// Hands one settle table to TypeScript. No borrow is held meanwhile.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript hears it")]
    fn settle(&self, table: Table, source: &JsValue, message: &JsValue, is_last: bool) {
        let settle = self.settle.borrow().clone();
        // Without a callback the session was disposed of, and all calls are answered. Without an
        // entry all calls of the chunk were given up.
        if let Some(settle) = settle.filter(|_| is_last || table.entries() > 0) {
            let arguments = js_sys::Array::of5(
                &table.address().into(),
                &table.entries().into(),
                source,
                message,
                &is_last.into(),
            );
            // TypeScript's callback never throws. If it did, later batches would still settle.
            if let Err(thrown) = settle.apply(&JsValue::UNDEFINED, &arguments) {
                report::complain(&thrown);
            }
        }
        self.table.replace(table);
    }

    /// Tells TypeScript what became of the device.
    pub(super) fn tell(self: &Rc<Self>, news: News) {
        let (event, message) = match news {
            News::Restored => ("restored", "a new GPU device is in use"),
            News::FellBack => (
                "fallback",
                "no GPU device could be kept; calls run on the CPU until there is one",
            ),
            News::Relieved => (
                "relieved",
                "the GPU had no memory for a batch; the CPU answers it",
            ),
            News::Regained => ("regained", "a GPU device is in use again"),
        };
        if matches!(news, News::Restored | News::Regained) {
            self.watch();
        }
        self.notify(event, message);
    }

    pub(super) fn tell_calibrated(&self) {
        // No borrow is held while the callback runs.
        let done = self
            .calibrated
            .take()
            .map(|done| done.call0(&JsValue::UNDEFINED));
        if let Some(Err(thrown)) = done {
            report::complain(&thrown);
        }
    }

    /// Tells TypeScript something. No borrow is held meanwhile.
    pub(super) fn notify(&self, event: &str, message: &str) {
        let notify = self.notify.borrow().clone();
        let told =
            notify.map(|notify| notify.call2(&JsValue::UNDEFINED, &event.into(), &message.into()));
        if let Some(Err(thrown)) = told {
            report::complain(&thrown);
        }
    }
}
