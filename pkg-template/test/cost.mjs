// What a call costs on the main thread, without the core: 10,000 calls a batch, and
// 1,000 readings of a chain of three ops, its recording included, of the same as a function that
// was traced, and of a kernel; and what of that is left where the session is in a worker.
//
// The core under it takes tickets and answers from one kept buffer, so the number
// is the face's: checks, promise, copy in, copy out, settlement.

import { AnsweringWorker, deliver } from "./answering-worker.mjs";
import { manual, module } from "./face.mjs";

await module("kernels/index");

const CALLS = 10_000;
const READS = 1_000;
const ROUNDS = 60;

for (const floats of [4, 16, 64, 200]) {
  const { gpu, core } = await manual();
  answerFrom(core, new ArrayBuffer(CALLS * floats * 4), floats);
  const a = new Float32Array(floats).fill(1);
  const b = new Float32Array(floats).fill(2);
  const into = Array.from({ length: CALLS }, () => ({
    into: new Float32Array(floats),
  }));
  const fresh = await measure(gpu, () => gpu.lerp(a, b, 0.5));
  const kept = await measure(gpu, (i) => gpu.lerp(a, b, 0.5, into[i]));
  console.log(`${floats} floats: ${fresh}, with into ${kept}`);
  await gpu.dispose();
}

for (const floats of [4, 16, 64, 200]) {
  const { gpu, core } = await manual();
  answerFrom(core, new ArrayBuffer(READS * floats * 4), floats);
  const data = new Float32Array(floats).fill(1);
  const shared = gpu.tensor(new Float32Array(floats).fill(2));
  const into = Array.from({ length: READS }, () => ({
    into: new Float32Array(floats),
  }));
  const chain = (tensor) => tensor.relu().scale(2).add(shared);
  const fresh = await measure(gpu, () => chain(gpu.tensor(data)).read(), READS);
  const kept = await measure(
    gpu,
    (i) => chain(gpu.tensor(data)).read(into[i]),
    READS,
  );
  const held = gpu.tensor(data);
  const resident = await measure(gpu, () => chain(held).read(), READS);
  console.log(
    `chain of 3, ${floats} floats: ${fresh}, with into ${kept}, resident ${resident}`,
  );
  await gpu.dispose();
}

for (const floats of [4, 64]) {
  const { gpu, core } = await manual();
  answerFrom(core, new ArrayBuffer(READS * floats * 4), floats);
  const data = new Float32Array(floats).fill(1);
  const held = gpu.tensor(data);
  const shared = gpu.tensor(new Float32Array(floats).fill(2));
  const traced = gpu.fn((x, y) => x.relu().scale(2).add(y));
  const kernel = gpu.kernel({
    name: "decay",
    inputs: { height: "f32", speed: "f32" },
    params: { dt: "f32" },
    output: "f32",
    code: "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
  });
  const rows = [
    ["lerp", () => gpu.lerp(data, data, 0.5)],
    ["traced, of data", () => traced(data, shared).read()],
    ["traced, resident", () => traced(held, shared).read()],
    [
      "kernel, of data",
      () => kernel({ height: data, speed: data }, { dt: 1 }).read(),
    ],
    [
      "kernel, resident",
      () => kernel({ height: held, speed: shared }, { dt: 1 }).read(),
    ],
  ];
  for (const [name, call] of rows) {
    console.log(
      `${name}, ${floats} floats: ${await measure(gpu, call, READS)}`,
    );
  }
  await gpu.dispose();
}

const { open: openInWorker } = await module("worker/index");
const { MessageChannel } = globalThis;
for (const floats of [4, 16, 64, 200]) {
  const worker = new AnsweringWorker(floats, CALLS);
  // The session's own channel is its first.
  globalThis.MessageChannel = function () {
    globalThis.MessageChannel = MessageChannel;
    return AnsweringWorker.channel();
  };
  const gpu = await openInWorker({ flush: "manual", worker });
  const a = new Float32Array(floats).fill(1);
  const b = new Float32Array(floats).fill(2);
  const into = Array.from({ length: CALLS }, () => ({
    into: new Float32Array(floats),
  }));
  const fresh = await measure(gpu, () => gpu.lerp(a, b, 0.5));
  const kept = await measure(gpu, (i) => gpu.lerp(a, b, 0.5, into[i]));
  const shared = gpu.tensor(b);
  const chain = () => gpu.tensor(a).relu().scale(2).add(shared).read();
  const read = await measure(gpu, chain, READS);
  console.log(
    `in a worker, ${floats} floats: ${fresh}, with into ${kept}, chain of 3 ${read}`,
  );
  await gpu.dispose();
}

async function measure(gpu, call, calls = CALLS) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const promises = new Array(calls);
    const start = performance.now();
    for (let i = 0; i < calls; i += 1) promises[i] = call(i);
    gpu.flush();
    deliver();
    times.push(performance.now() - start);
    await promises[calls - 1];
  }
  times.sort((x, y) => x - y);
  const [best, median] = [times[0], times[ROUNDS >> 1]].map((ms) =>
    ((ms / calls) * 1000).toFixed(2),
  );
  return `${median} µs a call (best ${best})`;
}

function answerFrom(core, source, words) {
  let first = core.nextTicket;
  let next = first;
  const table = 16;
  core.submit = () => next++;
  core.flush = () => {
    const view = core.view();
    for (let i = 0; i < next - first; i += 1) {
      const at = table + i * 4;
      view[at] = first + i;
      view[at + 1] = i * words;
      view[at + 2] = words;
      view[at + 3] = 0;
    }
    core.send(table, next - first, source, "");
    first = next;
  };
}
