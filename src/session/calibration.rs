//! Calibration: measures a [`Model`] by probes that are computed on each device. The face
//! runs and times the probes while it is idle.
//!
//! A probe is best measured a few times; its shortest time counts. All probes together
//! take 20 to 50 ms, most of it waiting for the GPU.

use super::Session;
use super::cost_model::{CPU, CPU_CALL, DOWN, FLUSH, GPU, GPU_CALL, GPU_PRODUCT, Model, UP};
use crate::device::{Device, Engine, Flight, failed};
use crate::graph::BinaryFn;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::plan::{self, Call, Chunk, Kind, NamedTensors, NumbersId, Recipe, RecipeId, SetId};
use crate::program::{Named, RowOp, Settings};
use crate::tensor::{Arena, DType, Format, Span};

/// Probes on their way to a model.
#[derive(Debug)]
pub(super) struct Calibration {
    recipes: [Recipe; 6],
    values: Box<[u32]>,
    arena: Arena,
    /// How many probes were measured, round after round. A probe that is computed for the
    /// first time is compiled, and browsers compile it better while others run.
    measured: usize,
    /// The shortest time of each probe, in milliseconds.
    best: [f64; PROBES.len()],
}

/// A probe: calls of one structure on one device.
#[derive(Clone, Copy, Debug)]
struct Probe {
    engine: Engine,
    /// The structure's place in [`Calibration::recipes`].
    recipe: u32,
    calls: u32,
    rows: u32,
}

const LERP: u32 = 0;
const SLERP: u32 = 1;
const GRADIENTS: u32 = 2;
const LARGE_PRODUCT: u32 = 3;
const SMALL_PRODUCT: u32 = 4;
const TERMS: u32 = 5;

/// The operands of probes: floats between a quarter and a half, states of many layers.
/// Equal floats, and zeros, are computed faster than what callers have.
fn values() -> Box<[u32]> {
    let varied = (0..MOVED * 2).map(|i| 0x3e80_0000 | (i.wrapping_mul(0x9e37_79b9) >> 9));
    varied.collect()
}

/// Rows and columns of the products that probes compute.
const LARGE: u32 = 192;
const SMALL: u32 = 96;

/// How often each probe is measured, and how often the CPU computes it each time: a probe
/// takes less than a browser's clock can tell.
const ROUNDS: usize = 4;
const AT_ONCE: u32 = 4;

const PROBES: [Probe; 11] = [
    gpu(LERP, 1, 4),
    gpu(LERP, 1000, 4),
    gpu(LERP, 1, MOVED),
    gpu(GRADIENTS, 1, STATES),
    gpu(LARGE_PRODUCT, 1, 1),
    cpu(LERP, 2000, 4),
    cpu(TERMS, 1, MOVED),
    cpu(LERP, 1, MOVED),
    cpu(SLERP, 1, 8192),
    cpu(GRADIENTS, 1, STATES),
    cpu(SMALL_PRODUCT, 1, 1),
];

/// Floats of the larger probes, and their states.
const MOVED: u32 = 1 << 16;
const STATES: u32 = 1 << 12;

const fn gpu(recipe: u32, calls: u32, rows: u32) -> Probe {
    let engine = Engine::Gpu;
    Probe {
        engine,
        recipe,
        calls,
        rows,
    }
}

const fn cpu(recipe: u32, calls: u32, rows: u32) -> Probe {
    let engine = Engine::Cpu;
    Probe {
        engine,
        recipe,
        calls,
        rows,
    }
}

impl<D: Device> Session<D> {
    /// Begins to measure a model, if calls are routed by one.
    pub fn calibrate(&mut self) {
        if self.is_routing() {
            self.calibration = Some(Box::default());
        }
    }

    /// Launches the next probe; `None` when the model is known, or the device lost.
    /// Nothing else should be in flight meanwhile.
    pub fn next_probe(&mut self) -> Option<Flight> {
        let calibration = self.calibration.as_mut()?;
        if self.life.is_lost() {
            self.calibration = None;
            return None;
        }
        let probe = PROBES[calibration.measured % PROBES.len()];
        if calibration.measured == ROUNDS * PROBES.len() {
            let model = calibration.model();
            self.calibration = None;
            self.set_model(model);
            return None;
        }
        Some(match probe.engine {
            Engine::Gpu => calibration.run(probe, self.devices.primary_mut()),
            Engine::Cpu => {
                let cpu = self.devices.companion_mut();
                let cpu = cpu.expect("calls are routed to it");
                for _ in 1..AT_ONCE {
                    drop(calibration.run(probe, cpu)); // The CPU is done when the launch returns.
                }
                calibration.run(probe, cpu)
            }
        })
    }

    /// Notes how long a probe took, from before [`Session::next_probe`] on. A probe that
    /// failed takes for ever.
    pub fn note_probe(&mut self, ms: f64) {
        if let Some(calibration) = &mut self.calibration {
            calibration.note(ms);
        }
    }
}

/// Has a device compute a few floats: a device that answers works.
pub fn try_out(device: &mut impl Device) -> Flight {
    Calibration::default().run(PROBES[0], device)
}

impl Default for Calibration {
    fn default() -> Self {
        Calibration {
            recipes: [
                rows_of(Named::Lerp, FLOAT),
                rows_of(Named::Slerp, QUATERNION),
                gradients(),
                product(LARGE),
                product(SMALL),
                terms(),
            ],
            values: values(),
            arena: Arena::default(),
            measured: 0,
            best: [f64::INFINITY; PROBES.len()],
        }
    }
}

impl Calibration {
    fn run(&mut self, probe: Probe, device: &mut impl Device) -> Flight {
        let recipe = &self.recipes[probe.recipe as usize];
        let rows = recipe.rows().unwrap_or(probe.rows);
        let words = u32::try_from(recipe.input_words(rows)).expect("probes are small");
        let calls: Vec<Call> = (0..probe.calls)
            .map(|number| {
                assert!(self.arena.reserve(words), "probes are small");
                let words_of = &self.values[..words as usize];
                self.arena.free()[..words as usize].copy_from_slice(words_of);
                Call {
                    recipe: RecipeId(probe.recipe),
                    rows,
                    inputs: self.arena.take(words),
                    scalar: 0,
                    set: SetId::default(),
                    tensors: Span::default(),
                    stored: Span::default(),
                    numbers: NumbersId(number),
                }
            })
            .collect();
        let plan = plan::assemble(
            &self.recipes,
            &calls,
            NamedTensors::default(),
            &Chunk::all(&calls),
        );
        let launched = device.launch(&plan, &mut self.arena);
        self.arena.truncate(0);
        launched.unwrap_or_else(failed)
    }

    fn note(&mut self, ms: f64) {
        let best = &mut self.best[self.measured % PROBES.len()];
        *best = best.min(ms);
        self.measured += 1;
    }

    /// The model that the times come to. Each number stays within what a device can be,
    /// whatever the clock says.
    fn model(&self) -> Model {
        let [idle, many, lerp, gradients, product, cpu @ ..] = self.best;
        let usual = Model::default();
        let mut model = usual;
        let mut set = |fact: usize, ms: f64, count: f64| {
            let measured = ms / count * if fact == FLUSH { 1.0 } else { 1e6 };
            let (least, most) = (usual.0[fact] / FARTHEST, usual.0[fact] * FARTHEST);
            // The time is not finite where a probe never came back.
            if measured.is_finite() {
                model.0[fact] = measured.clamp(least, most);
            }
            model.0[fact] / 1e6
        };
        set(FLUSH, idle, 1.0);
        set(GPU_CALL, many - idle, 1000.0);
        // Two equations: a lerp's operands are twice its results, and the gradients of
        // states come down eight times.
        let (floats, states) = (f64::from(MOVED * 4), f64::from(STATES * 16));
        let (a, b) = ((lerp - idle) / floats, (gradients - idle) / states);
        let up = set(UP, 8.0 * a - b, 15.0);
        let down = set(DOWN, 2.0 * b - a, 15.0);
        let side = f64::from(LARGE * LARGE * 4);
        let moved = side * (2.0 * up + down);
        set(
            GPU_PRODUCT,
            product - idle - moved,
            f64::from(LARGE).powi(3),
        );
        let times = cpu.map(|ms| ms / f64::from(AT_ONCE));
        set(CPU_CALL, times[0], 2000.0);
        let counts = [
            (Kind::Term, f64::from(MOVED * 4)),
            (Kind::Blend, f64::from(MOVED)),
            (Kind::Turn, 8192.0),
            (Kind::Layer, f64::from(STATES * 16)),
            (Kind::Product, f64::from(SMALL).powi(3)),
        ];
        for ((kind, count), ms) in counts.into_iter().zip(&times[1..]) {
            set(CPU + kind as usize, *ms, count);
        }
        // A GPU that is slow at products is slow at the rest. A fast GPU computes the
        // product in less time than can be told from none.
        let slower = (model.0[GPU_PRODUCT] / usual.0[GPU_PRODUCT]).max(1.0);
        for fact in GPU..=GPU_PRODUCT {
            model.0[fact] = usual.0[fact] * slower;
        }
        model
    }
}

/// How many times a number may be larger or smaller than the usual one.
const FARTHEST: f64 = 50.0;

const FLOAT: Format = Format {
    dtype: DType::F32,
    width: 1,
};
const PARAMETER: Format = Format {
    dtype: DType::Parameter,
    width: 1,
};

const QUATERNION: Format = Format { width: 4, ..FLOAT };
const STATE: Format = Format {
    dtype: DType::State,
    width: 1,
};
const SLOPES: Format = Format { width: 32, ..FLOAT };

/// A kernel of two operands and a parameter, whose result has the operands' format.
fn rows_of(kernel: Named, format: Format) -> Recipe {
    Recipe::new(&RowOp {
        kernel,
        settings: Settings {
            width: format.width,
            ..Settings::default()
        },
        operands: [format; 2].as_slice().into(),
        scalar: Some(PARAMETER),
        result: format,
    })
}

/// The gradients of states.
fn gradients() -> Recipe {
    Recipe::new(&RowOp {
        kernel: Named::StateGradients,
        settings: Settings {
            width: STATE.width,
            ..Settings::default()
        },
        operands: [STATE].as_slice().into(),
        scalar: None,
        result: SLOPES,
    })
}

/// The product of two square matrices.
fn product(side: u32) -> Recipe {
    let mut chain = Chain::default();
    let made = Shape::new(&[side, side]).and_then(|shape| {
        let a = chain.input(shape, DType::F32, Home::Call)?;
        let b = chain.input(shape, DType::F32, Home::Call)?;
        let result = chain.matmul(a, b)?;
        chain.output(result)
    });
    made.expect("the shapes suit the op");
    Recipe::fuse(&chain, &[])
}

/// A sum and a product of each element: two reads, two functions.
fn terms() -> Recipe {
    let mut chain = Chain::default();
    let made = Shape::new(&[MOVED]).and_then(|shape| {
        let a = chain.input(shape, DType::F32, Home::Call)?;
        let b = chain.input(shape, DType::F32, Home::Call)?;
        let sum = chain.binary(BinaryFn::Add, a, b)?;
        let result = chain.binary(BinaryFn::Mul, sum, a)?;
        chain.output(result)
    });
    made.expect("the shapes suit the op");
    Recipe::fuse(&chain, &[])
}
