//! Every kernel ends, whatever words its buffers hold: operands, segment table and
//! params are filled with numbers that no plan has.
//!
//! What comes out is not looked at, but each thread counts the steps of its loops: there
//! are drivers that leave a loop after some steps, as llvmpipe does after 65,536, and a
//! loop that would go on for 2^32 ends there in good time. So no kernel may take more
//! than a few steps for each word that it is given.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "samples/mod.rs"]
mod samples;

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use framebatch::Preset;
use framebatch::batch::Millis;
use framebatch::device::Cpu;
use framebatch::graph::chain::{Chain, Heads, Home, Norm, Reduction};
use framebatch::graph::sampling::Sampling;
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, Term, UnaryFn};
use framebatch::kernel::searching::Scan;
use framebatch::kernel::{Kernel, PARAMS, RESULT, SEGMENTS, generated};
use framebatch::plan::Params;
use framebatch::plan::fuse::{Products, Tiles, fuse};
use framebatch::session::{Session, Submission};
use framebatch::tensor::{DType, Packing};
use pollster::block_on;
use samples::Samples;

/// Words of each buffer.
const WORDS: usize = 1 << 10;

/// Steps that a thread may take in all loops together, fewer than where drivers leave
/// one: enough for every kernel that goes through all words, or the 4096 values of a
/// row, a few times.
const STEPS: u32 = 1 << 15;

/// How long a dispatch may take where no driver leaves a loop: longer than any that
/// ends, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Words that are a strange count, address or float.
const STRANGE: [u32; 14] = [
    0,
    1,
    3,
    64,
    4096,
    0x3f80_0000, // The float 1.
    0x7149_f2ca, // The float 1e30.
    0x7f80_0000, // Infinity
    0x7fc0_0000, // and NaN.
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffc0, // A step further, counts begin again.
    0xffff_ffe0,
    u32::MAX,
];

/// The binding of the count of steps, behind all others.
const COUNT: u32 = PARAMS + 1;

/// A kernel to run.
struct Subject {
    name: String,
    text: String,
    operands: usize,
}

impl Subject {
    fn of(kernel: &Kernel) -> Subject {
        Subject {
            name: format!("{kernel:?}"),
            text: kernel.source(),
            operands: kernel.operands(),
        }
    }
}

/// The kernels of the stages of chains, each once.
fn fused(record: impl Fn(&mut Chain) -> Vec<NodeId>) -> Vec<Subject> {
    let mut chain = Chain::default();
    for value in record(&mut chain) {
        chain.output(value).unwrap();
    }
    let (program, _) = fuse(&chain);
    let mut known = HashSet::new();
    let mut subjects = Vec::new();
    for stage in &program.stages {
        let tiles: &[Tiles] = match Products::of(stage) {
            Some(_) => &[Tiles::Large, Tiles::Small],
            None => &[Tiles::Large],
        };
        for tiles in tiles {
            let text = generated::source(stage, *tiles);
            if known.insert(text.clone()) {
                subjects.push(Subject {
                    name: format!("{tiles:?} {:?}", stage.body),
                    text,
                    operands: stage.bindings(),
                });
            }
        }
    }
    subjects
}

/// The source of a kernel whose threads count the steps of their loops, and how many
/// loops it has. Whether a thread took too many is written to the first word of `counts`
/// as the number of the filling, which the second word holds.
fn counting(text: &str) -> (String, usize) {
    let mut counted = format!(
        "struct Counts {{ filling_of_most: atomic<u32>, filling: u32, most: atomic<u32> }}
        @group(0) @binding({COUNT}) var<storage, read_write> counts: Counts;
        var<private> steps_taken: u32;
        fn count_step() {{
            steps_taken += 1u;
            if steps_taken > {STEPS}u {{
                atomicStore(&counts.filling_of_most, counts.filling);
                atomicMax(&counts.most, steps_taken);
            }}
        }}\n"
    );
    let (mut rest, mut loops) = (text, 0);
    while let Some(at) = ["for", "while", "loop"]
        .iter()
        .filter_map(|keyword| find_word(rest, keyword))
        .min()
    {
        // No header of a loop has braces.
        let body = at + rest[at..].find('{').expect("a loop has a body") + 1;
        counted += &rest[..body];
        counted += "count_step();";
        rest = &rest[body..];
        loops += 1;
    }
    (counted + rest, loops)
}

/// Where a keyword is that is no part of a name.
fn find_word(text: &str, keyword: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = text.match_indices(keyword).map(|(at, _)| at);
    places.find(|at| {
        let (before, behind) = (&text[..*at], &text[at + keyword.len()..]);
        !before.ends_with(is_name) && !behind.starts_with(is_name)
    })
}

fn input(chain: &mut Chain, dims: &[u32]) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, Home::Call).unwrap()
}

fn resident(chain: &mut Chain, dims: &[u32], packing: Option<Packing>) -> NodeId {
    let home = packing.map_or(Home::Resident, Home::Packed);
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, home).unwrap()
}

/// Every packing, and none.
fn packings() -> impl Iterator<Item = Option<Packing>> {
    [None].into_iter().chain(Packing::ALL.map(Some))
}

/// What the buffers of a dispatch hold.
struct Filling {
    /// Words of the table's only entry behind its first thread and their count.
    entry: Vec<u32>,
    /// Words of the operands, and of the table behind its entry.
    words: Vec<u32>,
    params: Params,
}

impl Filling {
    /// One entry that all threads work for, so that none is idle.
    fn of(entry: Vec<u32>, words: Vec<u32>) -> Filling {
        let params = Params {
            table: 0,
            shift: 31,
            blocks: 1,
            width: 1,
            each: 0,
            mode: 0,
        };
        Filling {
            entry,
            words,
            params,
        }
    }
}

/// Small numbers and strange ones.
fn mixed(samples: &mut Samples, count: usize) -> Vec<u32> {
    let word = || {
        let bits = samples.bits();
        match bits % 3 {
            0 => (bits >> 32) as u32 % 16,
            1 => STRANGE[(bits >> 32) as usize % STRANGE.len()],
            _ => (bits >> 32) as u32,
        }
    };
    std::iter::repeat_with(word).take(count).collect()
}

/// Words of an entry that differ: kernels have fewer.
const ENTRY: usize = 48;

fn fillings() -> Vec<Filling> {
    let samples = &mut Samples(17);
    let mut all = Vec::new();
    for strange in STRANGE {
        all.push(Filling::of(vec![strange; ENTRY], vec![strange; WORDS]));
        // Sizes are strange where data is small, and the other way around.
        all.push(Filling::of(vec![strange; ENTRY], vec![1; WORDS]));
        all.push(Filling::of(vec![1; ENTRY], vec![strange; WORDS]));
    }
    // One word of an entry is a count that is too large, and the others are sound.
    for word in 0..ENTRY {
        for (strange, other) in [(u32::MAX, 1), (0xffff_ffe0, 4), (0x7149_f2ca, 1)] {
            let mut entry = vec![other; ENTRY];
            entry[word] = strange;
            all.push(Filling::of(entry, mixed(samples, WORDS)));
        }
    }
    let falling = (0..WORDS as u32).rev();
    all.push(Filling::of(vec![0; ENTRY], falling.collect()));
    for _ in 0..60 {
        let mut filling = Filling::of(mixed(samples, ENTRY), mixed(samples, WORDS));
        let [width, each, mode] = std::array::from_fn(|_| samples.bits() as u32);
        filling.params.width = width;
        filling.params.each = each;
        filling.params.mode = mode % 3;
        all.push(filling);
    }
    // Params that no plan has find any entry, or none.
    for _ in 0..20 {
        let mut filling = Filling::of(mixed(samples, ENTRY), mixed(samples, WORDS));
        let params = mixed(samples, 6);
        filling.params = bytemuck::cast_slice::<u32, Params>(&params)[0];
        all.push(filling);
    }
    all
}

/// A device on which kernels are run one by one.
struct Harness {
    device: wgpu::Device,
    queue: wgpu::Queue,
    layout: wgpu::BindGroupLayout,
    /// By their bindings.
    buffers: Vec<wgpu::Buffer>,
}

impl Harness {
    fn open() -> Harness {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .expect("a Vulkan adapter, at least a software one");
        let desc = wgpu::DeviceDescriptor {
            required_limits: wgpu::Limits {
                max_storage_buffers_per_shader_stage: COUNT,
                ..wgpu::Limits::default()
            },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = block_on(adapter.request_device(&desc)).unwrap();
        let kind = |binding: u32| match binding {
            PARAMS => wgpu::BufferBindingType::Uniform,
            _ => wgpu::BufferBindingType::Storage {
                read_only: ![RESULT, COUNT].contains(&binding),
            },
        };
        let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..=COUNT)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: kind(binding),
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let buffers = (0..=COUNT).map(|binding| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: WORDS as u64 * 4,
                usage: wgpu::BufferUsages::COPY_DST
                    | wgpu::BufferUsages::COPY_SRC
                    | match binding {
                        PARAMS => wgpu::BufferUsages::UNIFORM,
                        _ => wgpu::BufferUsages::STORAGE,
                    },
                mapped_at_creation: false,
            })
        });
        Harness {
            buffers: buffers.collect(),
            device,
            queue,
            layout,
        }
    }

    fn pipeline(&self, text: &str) -> wgpu::ComputePipeline {
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
        let layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&self.layout)],
                immediate_size: 0,
            });
        let desc = wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        };
        self.device.create_compute_pipeline(&desc)
    }

    fn write(&self, binding: u32, words: &[u32]) {
        let buffer = &self.buffers[binding as usize];
        self.queue
            .write_buffer(buffer, 0, bytemuck::cast_slice(words));
    }

    /// Runs a kernel over each filling. What does not end ends the process: nothing
    /// takes a dispatch back, and a device that is dropped waits for it.
    fn run(&self, subjects: &[Subject], fillings: &[Filling]) {
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0_u32..)
            .zip(&self.buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &entries,
        });
        let mut wrong = Vec::new();
        for subject in subjects {
            let (text, loops) = counting(&subject.text);
            if loops == 0 {
                continue; // It ends.
            }
            let pipeline = self.pipeline(&text);
            self.write(COUNT, &[u32::MAX, 0, 0]);
            for (number, filling) in fillings.iter().enumerate() {
                for operand in 0..subject.operands as u32 {
                    self.write(operand, &filling.words);
                }
                let mut table = filling.words.clone();
                table[..2].copy_from_slice(&[0, u32::MAX]);
                table[2..2 + filling.entry.len()].copy_from_slice(&filling.entry);
                self.write(SEGMENTS, &table);
                self.write(PARAMS, bytemuck::cast_slice(&[filling.params]));
                let buffer = &self.buffers[COUNT as usize];
                let filling = (number as u32).to_ne_bytes();
                self.queue.write_buffer(buffer, 4, &filling);
                let mut encoder = self
                    .device
                    .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(2, 1, 1);
                drop(pass);
                let submission = self.queue.submit([encoder.finish()]);
                let waited = self.device.poll(wgpu::PollType::Wait {
                    submission_index: Some(submission),
                    timeout: Some(PATIENCE),
                });
                if waited.is_err() {
                    let said = format!("filling {number} does not end in {}\n", subject.name);
                    let _ = std::io::stderr().write_all(said.as_bytes());
                    std::process::abort();
                }
            }
            let [filling, _, most] = self.counts();
            if most > 0 {
                wrong.push(format!(
                    "{most} steps of filling {filling} in {}",
                    subject.name
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What threads have counted.
    fn counts(&self) -> [u32; 3] {
        let size = 12;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.buffers[COUNT as usize], 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging
            .slice(..)
            .map_async(wgpu::MapMode::Read, Result::unwrap);
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .unwrap();
        let view = staging.slice(..).get_mapped_range().unwrap();
        bytemuck::cast_slice(&view).try_into().unwrap()
    }
}

/// Runs kernels over everything strange.
fn check(subjects: &[Subject]) {
    assert!(!subjects.is_empty());
    Harness::open().run(subjects, &fillings());
}

#[test]
fn kernels_of_calls_end() {
    let mut subjects: Vec<Subject> = Kernel::ALL.iter().map(Subject::of).collect();
    let mut field = framebatch::graph::ExprBuilder::default();
    let rho = field.push(Term::Variable(0));
    let sine = field.push(Term::Unary(UnaryFn::Sin, rho));
    subjects.push(Subject::of(&Kernel::StateField(field.finish(sine))));
    check(&subjects);
}

/// A call of one layer of a clip of one lane, at whose beginning everything lies.
fn sampled(entry: [u32; 3], header: &[u32], clip: &[u32], rest: &[u32]) -> Filling {
    let mut words = rest.to_vec();
    words[..header.len()].copy_from_slice(header);
    words[64..64 + clip.len()].copy_from_slice(clip);
    Filling::of(entry.into(), words)
}

#[test]
fn samplings_of_clips_end() {
    let samples = &mut Samples(3);
    let weight = 1.0_f32.to_bits();
    // Lanes, layers, target, width; clip, wrap, additive, weight.
    let header = [1, 1, 0, 1, 64, 0, 0, weight];
    // Duration, lanes; times, keys, values, stride, flags, easing, floats, width.
    let clip = [0, 1, 0, 0, 12, 2, 14, 1, 0, 0, 1, 1];
    let entry = [0, 32, 0]; // The result, the rows, the header.
    let mut all = Vec::new();
    for strange in STRANGE {
        let rests = [vec![strange; WORDS], mixed(samples, WORDS)];
        for rest in rests {
            for word in 0..header.len() {
                let mut header = header;
                header[word] = strange;
                all.push(sampled(entry, &header, &clip, &rest));
            }
            for word in 0..clip.len() {
                for flags in [0, 1, 2, 4, 8, 16] {
                    let mut clip = clip;
                    clip[8] = flags;
                    clip[word] = strange;
                    all.push(sampled(entry, &header, &clip, &rest));
                }
            }
        }
    }
    Harness::open().run(&[Subject::of(&Kernel::Clip)], &all);
}

#[test]
fn the_processor_samples_whatever_a_store_holds() {
    let samples = &mut Samples(5);
    let mut session = Session::new(Cpu::default(), Preset::Eager.config()).unwrap();
    let store = session.hold();
    let target = session.hold();
    for is_stored in [false, true] {
        let sampling = Sampling {
            layers: 2,
            lanes: 1,
            width: 1,
            row: 6,
            is_stored,
        };
        let recipe = session.sampling(sampling);
        for round in 0..3000 {
            let words = match STRANGE.get(round) {
                Some(strange) => vec![*strange; 64],
                None => mixed(samples, 64),
            };
            session.fill(store, &words).unwrap();
            session.fill(target, &[0; 4]).unwrap();
            // Four rows, their header, the store and the target.
            let mut operands = mixed(samples, 24 + 12);
            for time in &mut operands[..24] {
                // A time that is no number is refused before.
                *time = if f32::from_bits(*time).is_nan() {
                    1
                } else {
                    *time
                };
            }
            let flags = [0, 1 << 16, 1 << 17, 3 << 16][round % 4];
            if round % 2 == 0 {
                operands[24..28].copy_from_slice(&[1, 2 | flags, 0, 1]);
            }
            operands.extend([store, target]);
            let room = session.room(40).unwrap();
            room[..operands.len()].copy_from_slice(&operands);
            let submission = Submission {
                recipe,
                rows: 4,
                scalar: 0,
                key: None,
            };
            let now = Millis(round as f64);
            session.submit(&submission, now).unwrap();
            session.flush();
            let mut sent = session.launch(now).unwrap();
            let outcome = block_on(sent.flights.remove(0));
            let settlement = session.settle(sent.batch, sent.generation, outcome);
            assert!(settlement.unwrap().outcome.is_ok());
        }
    }
}

#[test]
fn searches_end() {
    let mut subjects = Vec::new();
    for packing in packings() {
        for (is_distance, is_short) in [(false, true), (true, false)] {
            subjects.push(Subject::of(&Kernel::Scan(Scan {
                packing,
                is_distance,
                is_short,
            })));
        }
    }
    check(&subjects);
}

#[test]
fn maps_end() {
    check(&fused(|chain| {
        let a = input(chain, &[64, 4]);
        let flat = chain.unary(UnaryFn::Relu, a).unwrap();
        let turned = chain.transpose(a, &[1, 0]).unwrap();
        let b = input(chain, &[4, 64]);
        let strided = chain.binary(BinaryFn::Add, turned, b).unwrap();
        let joined = chain.concat(&[b, strided], 0).unwrap();
        let shape = Shape::new(&[9]).unwrap();
        let at = chain.input(shape, DType::U32, Home::Call).unwrap();
        let gathered = chain.gather(a, at, 0).unwrap();
        vec![flat, strided, joined, gathered]
    }));
}

#[test]
fn rows_end() {
    let mut subjects = Vec::new();
    for dims in [[8, 20], [8, 1000], [3, 10_000]] {
        for packing in packings() {
            subjects.extend(fused(|chain| {
                let x = resident(chain, &dims, packing);
                let sum = chain.reduce(Reduction::Sum, x, (&[1], false)).unwrap();
                let most = chain.reduce(Reduction::Argmax, x, (&[0], false)).unwrap();
                let soft = chain.norm(Norm::Softmax, (x, -1), None).unwrap();
                let tall = chain.norm(Norm::Softmax, (x, 0), None).unwrap();
                let all = chain.reduce(Reduction::Min, x, (&[], false)).unwrap();
                vec![sum, most, soft, tall, all]
            }));
        }
    }
    check(&subjects);
}

#[test]
fn products_end() {
    let mut subjects = Vec::new();
    for (packing, is_turned) in packings().zip([false, true, true, false]) {
        subjects.extend(fused(|chain| {
            let a = input(chain, &[2, 70, 40]);
            let dims = if is_turned { [50, 40] } else { [40, 50] };
            let b = resident(chain, &dims, packing);
            let b = match is_turned {
                true => chain.transpose(b, &[1, 0]).unwrap(),
                false => b,
            };
            let bias = input(chain, &[50]);
            let product = chain.matmul(a, b).unwrap();
            let sum = chain.binary(BinaryFn::Add, product, bias).unwrap();
            vec![chain.unary(UnaryFn::Relu, sum).unwrap()]
        }));
    }
    check(&subjects);
}

#[test]
fn attention_ends() {
    let mut subjects = Vec::new();
    // Heads that lie in quads, those that do not, and those longer than a part.
    for (count, size) in [(2, 8), (3, 5), (1, 68)] {
        for (packing, is_causal) in [(None, true), (Some(Packing::Int8), false)] {
            subjects.extend(fused(|chain| {
                let q = input(chain, &[40, count * size]);
                let [k, v] = [0; 2].map(|_| resident(chain, &[50, count * size], packing));
                let scale = chain.constant().unwrap();
                let heads = Heads { count, is_causal };
                vec![chain.attention(heads, [q, k, v], scale).unwrap()]
            }));
        }
    }
    check(&subjects);
}
