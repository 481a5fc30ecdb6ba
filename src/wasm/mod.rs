//! The JavaScript face, as integers and typed arrays.
//!
//! TypeScript owns the promises and the frame clock; this side owns memory, queue and device. A
//! call costs one entry with integers only, a batch one settle table. In the browser only this
//! module starts asynchronous work. The feature `javascript` turns the module on, so that other
//! crates that link the library do not get its exports.

mod config;
mod fields;
mod header;
mod inner;
mod kernels;
mod notice;
mod recovery;
mod report;
mod structure;
mod table;
mod tensors;
mod timer;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use self::config::{Options, read_options};
use self::header::Header;
use self::inner::Inner;
use crate::batch::{Due, LowWork, Millis, Priority, Ticket};
use crate::device::{AnyDevice, Clock, Cpu, CpuReason, Device, Engine};
use crate::driver::{Driver, DriverConfig, usual_stall_ms};
use crate::embed::Activations;
use crate::error::Error;
use crate::graph::Timing;
use crate::graph::chain::Chain;
use crate::graph::insertion::Insertion;
use crate::graph::sampling::Sampling;
use crate::graph::searching::{DeviceBlocks, FEW_RESULTS, Mask, Scan, Searching};
use crate::ops;
use crate::plan::RecipeId;
use crate::session::{Fence, Model, Session, Submission};
use crate::tensor::Packing;

/// A session as JavaScript sees it. Every method takes `&self`, so that the callback `settle` may
/// call methods. A method on the hot path that fails returns a number below 0 and leaves the
/// reason to [`Core::failure`]: a `Result` would make the glue read three words back, and
/// throwing would run no destructor, so that the session stayed borrowed for good.
#[wasm_bindgen]
pub struct Core {
    inner: Rc<Inner>,
}

#[wasm_bindgen]
impl Core {
    /// Opens a device and a session on it. Rejects with `{ code, message }`.
    pub async fn open(
        options: JsValue,
        settle: Function,
        notify: Function,
    ) -> Result<Core, JsValue> {
        let Options {
            engine,
            batch,
            gpu,
            stall_ms,
        } = read_options(&options)?;
        let device = config::open_device(engine, &gpu).await?;
        let stall_ms = stall_ms.unwrap_or_else(|| usual_stall_ms(&device.info()));
        let routing = config::routing(engine, &batch);
        let session = Session::new(device, batch)?;
        let mut session = session.with_companion(AnyDevice::Cpu(Cpu::default()), routing);
        // Low work has tasks of its own: the page gets its turn in between.
        session.set_low_work(LowWork::Rests);
        let config = DriverConfig {
            stall_ms,
            pauses: &recovery::PAUSES,
            cpu: || AnyDevice::Cpu(Cpu::instead_of_gpu(CpuReason::DeviceLost)),
        };
        let inner = Inner {
            driver: RefCell::new(Driver::new(session, config)),
            header: Header::default(),
            opened: Cell::default(),
            table: RefCell::default(),
            settle: RefCell::new(Some(settle)),
            notify: RefCell::new(Some(notify)),
            failure: RefCell::default(),
            engine,
            gpu_options: gpu,
            stall_ms,
            calibrated: RefCell::default(),
            is_waiting: Cell::default(),
            alarm: Cell::new(f64::INFINITY),
        };
        let inner = Rc::new(inner);
        inner.watch();
        Ok(Core { inner })
    }

    /// The number of a structure: an op, elements in an item, and whether every
    /// item has its own t.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript says it")]
    pub fn structure(&self, op: &str, width: u32, each: bool) -> f64 {
        let timing = if each { Timing::Row } else { Timing::Call };
        let recipe = structure::op(op, width, timing).map(|op| self.inner.session().recipe(op));
        self.inner.number(recipe.map(|id| id.0))
    }

    /// The number of the structure of a field's gradients, by its formula.
    pub fn field_gradients(&self, formula: &str) -> f64 {
        let recipe = formula.parse().map(|field| {
            let op = ops::field_gradients(&field);
            self.inner.session().recipe(op)
        });
        self.inner.number(recipe.map(|id| id.0))
    }

    /// The number of a chain's structure, by its words.
    pub fn chain(&self, words: &[u32]) -> f64 {
        let chain = Chain::decode(words);
        let recipe = chain.map(|chain| self.inner.session().recipe(chain));
        self.inner.number(recipe.map(|id| id.0))
    }

    /// Defines a kernel of the page's own, which chains name by its number.
    #[expect(clippy::too_many_arguments, reason = "so JavaScript says it")]
    pub fn kernel(
        &self,
        number: u32,
        name: &str,
        code: &str,
        sizes: &[u32],
        twin: Option<Function>,
    ) {
        kernels::define(number, [name, code], sizes, twin);
    }

    /// Has errors in the code of kernels told by a function, for all sessions.
    pub fn explain_kernels(&self, explain: Function) {
        crate::device::explain_by(explain);
    }

    /// The number of the structure of a sampling of clips.
    pub fn sampling(&self, sizes: &[u32]) -> f64 {
        let [layers, lanes, width, row, is_stored] = std::array::from_fn(|k| sizes[k]);
        let sampling = Sampling {
            layers,
            lanes,
            width,
            row,
            is_stored: is_stored != 0,
        };
        f64::from(self.inner.session().recipe(sampling).0)
    }

    /// The number of the structure of a search of an index.
    pub fn searching(&self, sizes: &[u32]) -> f64 {
        let [
            packing,
            is_distance,
            count,
            quads,
            blocks,
            page,
            mask,
            device,
            first,
        ] = std::array::from_fn(|k| sizes.get(k).copied().unwrap_or(0));
        let searching = Searching {
            scan: Scan {
                packing: packing_of(packing),
                is_distance: is_distance != 0,
                is_short: count <= FEW_RESULTS,
            },
            quads,
            count,
            blocks,
            page,
            device: DeviceBlocks {
                count: device,
                first,
            },
            mask: Mask::decode(mask),
        };
        f64::from(self.inner.session().recipe(searching).0)
    }

    /// The number of the structure of insertions in an index: the packing, whether vectors are
    /// scaled, floats of a vector, and whether calls have a source.
    pub fn insertion(&self, sizes: &[u32]) -> f64 {
        let [packing, is_scaled, dim, has_source] = std::array::from_fn(|k| sizes[k]);
        let insertion = Insertion {
            packing: packing_of(packing),
            is_scaled: is_scaled != 0,
            dim,
            has_source: has_source != 0,
        };
        f64::from(self.inner.session().recipe(insertion).0)
    }

    /// Gives up structures. Calls that were made before are still computed.
    pub fn forget(&self, structures: &[u32]) {
        let ids = structures.iter().copied().map(RecipeId);
        self.inner.session().forget(ids);
    }

    /// A fence behind every call taken so far.
    pub fn fence(&self) -> u32 {
        self.inner.session().fence().0
    }

    /// Whether every batch with a call from before the fence has ended.
    pub fn has_passed(&self, fence: u32) -> bool {
        self.inner.session().has_passed(Fence(fence))
    }

    /// The word index of the header.
    pub fn header(&self) -> u32 {
        self.inner.header.address()
    }

    /// Makes room for a call with this many words of operands.
    pub fn reserve(&self, words: f64) -> f64 {
        self.inner.number(self.inner.reserve(words).map(|()| 0))
    }

    /// Takes the call whose operands lie at the cursor; the call's ticket. `engine` is 0 for
    /// any, 1 for the GPU, 2 for the CPU; `priority` 0 for normal, 1 for high, 2 for low.
    #[expect(
        clippy::too_many_arguments,
        reason = "integers only: anything else costs as much as the call"
    )]
    pub fn submit(
        &self,
        structure: u32,
        rows: u32,
        scalar: f32,
        key: u32,
        engine: u32,
        priority: u32,
    ) -> f64 {
        let engine = match engine {
            0 => None,
            1 => Some(Engine::Gpu),
            _ => Some(Engine::Cpu),
        };
        let submission = Submission {
            recipe: RecipeId(structure),
            rows,
            scalar: scalar.to_bits(),
            key: (key != 0).then_some(key),
        };
        let priority = match priority {
            0 => Priority::Normal,
            1 => Priority::High,
            _ => Priority::Low,
        };
        let ticket = self.inner.submit(priority, engine, &submission);
        self.inner.number(ticket.map(|ticket| ticket.0))
    }

    /// Why the last method that returned a number below 0 did so: `{ code, message }`.
    pub fn failure(&self) -> JsValue {
        self.inner.failure.take()
    }

    /// Sends what is queued, as soon as the limit of batches in flight allows, or
    /// `at_once`, whatever is in flight.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript says it")]
    pub fn flush(&self, at_once: bool) {
        let mut driver = self.inner.driver.borrow_mut();
        match at_once {
            true => driver.session.flush_at_once(),
            false => driver.session.flush(),
        }
        drop(driver);
        self.inner.pump();
    }

    /// Sends what waits of high priority, and low work if it `goes`, which nothing else sends.
    /// Whether low work waits that needs no flush.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript says it")]
    pub fn turn(&self, goes: bool) -> bool {
        let session = || self.inner.session();
        if goes {
            session().let_low_work_go();
        }
        session().flush_joined();
        self.inner.pump();
        session().set_low_work(LowWork::Rests);
        session().has_low()
    }

    /// When `flush` should be called; NaN: nothing to schedule.
    pub fn due(&self, now: f64) -> f64 {
        moment_of(self.inner.session().flush_due(Millis(now)), now)
    }

    /// The same while `flush` is called at the end of each frame anyway.
    pub fn due_in_frames(&self, now: f64) -> f64 {
        moment_of(self.inner.session().due_in_frames(Millis(now)), now)
    }

    /// Gives up a call; `true` if it was pending.
    pub fn abort(&self, ticket: u32) -> bool {
        self.inner.abort(Ticket(ticket))
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> f64 {
        self.inner.session().desired_size() as f64
    }

    /// Items of a batch for which the memory budget has room beside a model.
    pub fn optimal_batch_size(&self, model_bytes: f64, bytes_per_item: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a saturated number is too large"
        )]
        let [model, item] = [model_bytes as u64, bytes_per_item as u64];
        let session = self.inner.session();
        session.optimal_batch_size(model, item) as f64
    }

    /// The same for texts of so many tokens, by the sizes of their encoder.
    pub fn optimal_text_batch_size(
        &self,
        model_bytes: f64,
        tokens: f64,
        hidden: f64,
        intermediate: f64,
    ) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a saturated number is too large"
        )]
        let [model, tokens, hidden, intermediate] =
            [model_bytes, tokens, hidden, intermediate].map(|size| size as u64);
        let text = Activations {
            tokens,
            hidden,
            intermediate,
        };
        let session = self.inner.session();
        session.optimal_text_batch_size(model, text.bytes(), tokens) as f64
    }

    /// From now on calls are planned and never sent.
    pub fn begin_explain(&self) {
        self.inner.session().begin_explain();
        self.inner.follow_room();
    }

    /// The plan of the calls made since [`Core::begin_explain`], as text.
    pub fn end_explain(&self) -> String {
        let text = self.inner.session().end_explain();
        self.inner.follow_room();
        text
    }

    /// Compiles the kernels of the calls made since [`Core::begin_explain`]; a ticket that is
    /// answered, without a result, after this has returned.
    pub fn end_warmup(&self) -> u32 {
        let mut driver = self.inner.driver.borrow_mut();
        let kernels = driver.session.end_kernels();
        let ticket = driver.session.warm_up(kernels);
        drop(driver);
        // The planned calls gave their memory back, so the cursor is elsewhere.
        self.inner.follow_room();
        self.inner.pump_soon();
        ticket.0
    }

    /// Frees memory that is only kept for the next batch.
    pub fn trim(&self) {
        self.inner.session().trim();
    }

    /// Submits nothing, so that the browser notices sooner which batches are done.
    pub fn nudge(&self) {
        self.inner.nudge();
    }

    /// Counts, as a plain object.
    pub fn stats(&self) -> JsValue {
        report::stats(&self.inner.session().stats())
    }

    /// Measures batches from now on, or no more.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript says it")]
    pub fn measure(&self, on: bool) {
        let clock: Option<Clock> = on.then_some(|| report::now().0);
        self.inner.session().measure_batches(clock);
    }

    /// The facts of the batch that was settled last, as a plain object, once; undefined if the
    /// batch was not measured.
    pub fn facts(&self) -> JsValue {
        let facts = self.inner.session().take_facts();
        facts.map_or(JsValue::UNDEFINED, |facts| report::facts(&facts))
    }

    /// What the device is, as a plain object.
    pub fn info(&self) -> JsValue {
        let session = self.inner.session();
        report::info(&session.info(), session.model(), &session.tuning())
    }

    /// The numbers of the cost model, in a session with one, and behind them what is kept of
    /// tuned values.
    pub fn model(&self) -> Box<[f64]> {
        let session = self.inner.session();
        let mut kept = session
            .model()
            .map_or_else(Vec::new, |(model, _)| model.0.into());
        kept.extend(session.kept_tuning());
        kept.into()
    }

    /// Goes by numbers that [`Core::model`] returned before.
    pub fn set_model(&self, kept: &[f64]) {
        let mut session = self.inner.session();
        let mut tuning = kept;
        if let Some((facts, rest)) = kept.split_first_chunk() {
            session.set_model(Model(*facts));
            tuning = rest;
        }
        session.restore_tuning(tuning);
    }

    /// Measures the cost model in the background, and calls `done` at the end.
    pub fn calibrate(&self, done: Function) {
        self.inner.calibrated.replace(Some(done));
        self.inner.driver.borrow_mut().calibrate();
        self.inner.pump_soon();
    }

    /// The `GPUDevice`, or undefined on the CPU.
    pub fn raw_device(&self) -> JsValue {
        match self.inner.session().device() {
            AnyDevice::Gpu(gpu) => gpu.raw_device(),
            AnyDevice::Cpu(_) => JsValue::UNDEFINED,
        }
    }

    /// Rejects everything pending and frees the device.
    pub fn dispose(&self) {
        let mut driver = self.inner.driver.borrow_mut();
        driver.close();
        let tickets = driver.session.dispose();
        driver.session.trim();
        drop(driver);
        self.inner.follow_room();
        self.inner.refuse(&tickets, &Error::Disposed);
        // The callbacks hold TypeScript's session, which holds this core: the cycle would keep
        // all of them for good.
        self.inner.settle.take();
        self.inner.notify.take();
    }
}

/// The packing of vectors of this number; none for 0.
fn packing_of(number: u32) -> Option<Packing> {
    Packing::OF_VECTORS
        .get(number.wrapping_sub(1) as usize)
        .copied()
}

fn moment_of(due: Due, now: f64) -> f64 {
    match due {
        Due::Idle => f64::NAN,
        Due::Now | Due::TaskEnd => now,
        Due::At(Millis(moment)) => moment,
    }
}
