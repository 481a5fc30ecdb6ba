// Clips: their words, what is said of wrong ones, and what their calls carry. Where clips
// lie on the device is in clip-store.test.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { face, fake, manual, module, settled } from "./face.mjs";

await module("animation/index");
const { encode } = await module("animation/tracks");

test("clips have the words of both languages", () => {
  const times = [0, 0.5, 1.5];
  const values = [1, 2, 3, 4, 5, 6];
  const turn = {
    times: [0, 0.5],
    values: [0, 0, 0, 1, 1, 0, 0, 0],
    kind: "quaternion",
    easing: "ease",
  };
  const spline = {
    times,
    values: Array.from({ length: 45 }, (_, i) => i),
    interpolation: "cubicspline",
    easing: "steps(4, jump-none)",
  };
  const step = { times, values, interpolation: "step" };
  const clips = [
    encode("clip", [{ times, values }], undefined),
    encode("clip", [turn, spline, step], 2),
  ];
  const lines = clips.map(({ words }) => words.join(" ")).join("\n");
  // `tests/clips/words.rs` has the same clips.
  const file = new URL("../../tests/clips/words.txt", import.meta.url);
  assert.equal(lines, readFileSync(file, "utf8").trim());
});

const TRACK = { times: [0, 1], values: [0, 1] };

test("wrong clips are refused in a sentence", async () => {
  const { gpu } = await manual();
  const track = (change) => ({ tracks: [TRACK, { ...TRACK, ...change }] });
  const cases = [
    [undefined, "options must be an object, got undefined"],
    [{}, "tracks must be an array of at least 1 track"],
    [{ tracks: [] }, "tracks must be an array of at least 1 track"],
    [
      { tracks: [TRACK], speed: 2 },
      "there is no option 'speed'; the options are tracks, duration, label",
    ],
    [
      { tracks: [TRACK], duration: -1 },
      "duration must be a number from 0, got -1",
    ],
    [
      { tracks: [TRACK], duration: "1" },
      "duration must be a number from 0, got string",
    ],
    [{ tracks: [TRACK], label: 3 }, "label must be a string, got number"],
    [{ tracks: [null] }, "tracks[0] must be an object, got null"],
    [track({ times: [] }), "tracks[1].times is empty; give at least 1 key"],
    [
      track({ times: [0, NaN] }),
      "tracks[1].times[1] is NaN; give a finite number",
    ],
    [
      track({ times: [1, 0] }),
      "tracks[1].times[1] is before the one in front of it; sort the keys",
    ],
    [
      track({ times: new Float64Array(2) }),
      "tracks[1].times must be a Float32Array or an array of numbers, got Float64Array; give Float32Array.from(tracks[1].times)",
    ],
    [
      track({ values: [0, 1, 2] }),
      "tracks[1].values has 3 floats, which is not 1 value for each of 2 keys",
    ],
    [
      track({ interpolation: "cubicspline" }),
      "tracks[1].values has 2 floats, which is not 3 values for each of 2 keys",
    ],
    [
      track({ kind: "quaternion" }),
      "tracks[1] has 1 floats a value, but a quaternion has 4",
    ],
    [
      track({ kind: "color" }),
      "tracks[1].kind must be one of 'vector', 'quaternion', got 'color'",
    ],
    [
      track({ interpolation: "cubic" }),
      "tracks[1].interpolation must be one of 'step', 'linear', 'cubicspline', got 'cubic'",
    ],
    [
      track({ interpolation: "step", easing: "ease" }),
      "tracks[1].easing has no effect on steps from key to key; leave it out",
    ],
  ];
  const easings = [
    "bounce",
    "cubic-bezier(1.5, 0, 0, 0)",
    "cubic-bezier(0, 0, 0)",
    "cubic-bezier(0, 0, 0, )",
    "steps(0)",
    "steps(1, jump-none)",
    "steps(2, middle)",
    "toString",
  ];
  for (const easing of easings) {
    const rule =
      "give one of CSS: a keyword, cubic-bezier(x1, y1, x2, y2) with both x within 0 and 1, or steps(count, jump-end)";
    cases.push([
      track({ easing }),
      `tracks[1]: '${easing}' is no easing; ${rule}`,
    ]);
  }
  for (const [options, problem] of cases) {
    assert.throws(() => gpu.clip(options), {
      code: "invalid-input",
      message: `clip: ${problem}`,
    });
  }
  assert.throws(() => gpu.clip({ tracks: [], label: "x" }), {
    message: "clip (label 'x'): tracks must be an array of at least 1 track",
  });
});

test("wrong samplings reject in a sentence", async () => {
  const { gpu } = await manual();
  const other = await manual();
  const clip = gpu.clip({ tracks: [TRACK] });
  const pair = gpu.clip({ tracks: [TRACK, TRACK] });
  const foreign = other.gpu.clip({ tracks: [TRACK] });
  const tensor = gpu.tensor(new Float32Array(4));
  const two = new Float32Array(2);
  const layer = { clip, times: 0 };
  const gone = new Float32Array(2);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  const detached =
    "is detached (its buffer was transferred); give an array that still has its memory";
  const cases = [
    [
      () => clip.sample("now"),
      "sample: times must be a number or a Float32Array, got string",
    ],
    [() => clip.sample(NaN), "sample: times is NaN; give a number"],
    [() => clip.sample(gone), `sample: times ${detached}`],
    [
      () => clip.sampleTo(tensor, gone, { label: "x" }),
      `sampleTo (label 'x'): times ${detached}`,
    ],
    [
      () => gpu.blend([{ ...layer, times: two, weight: gone }]),
      `blend: layers[0]: weight ${detached}`,
    ],
    [
      () => gpu.blend([{ clip, times: new Float32Array(0), weight: gone }]),
      `blend: layers[0]: weight ${detached}`,
    ],
    [
      () => clip.sample(0, { wrap: "bounce" }),
      "sample: wrap must be 'clamp', 'loop' or 'ping-pong', got 'bounce'",
    ],
    [
      () => clip.sample(two, { wrap: ["loop"] }),
      "sample: there are 1 wrap modes, but 2 times; give one for all, or as many",
    ],
    [
      () => clip.sample(two, { into: new Float32Array(3) }),
      "sample: into has 3 elements, but the result has 2; give an array of that length",
    ],
    [
      () => clip.sample(two, { into: new Uint8Array(8), label: "x" }),
      "sample (label 'x'): into must be a Float32Array, got Uint8Array",
    ],
    [
      () => clip.sample(0, { width: 2 }),
      "sample: there is no option 'width'; the options are signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
    ],
    [
      () => clip.sampleTo({}, 0),
      "sampleTo: an operand must be a tensor, got Object",
    ],
    [
      () => clip.sampleTo(tensor.relu(), 0),
      "sampleTo: a recorded tensor has no memory to write to; await its compute() first, and write to that tensor",
    ],
    [
      () => clip.sampleTo(gpu.tensor(two, [2], { dtype: "f16" }), 0),
      "sampleTo: a tensor in fewer bits cannot be written; make it with dtype 'f32'",
    ],
    [
      () => clip.sampleTo(gpu.tensor(new Uint32Array(4)), 0),
      "sampleTo: only a tensor of 32-bit floats can be written to",
    ],
    [
      () => clip.sampleTo(tensor, two, { offset: 3 }),
      "sampleTo: the tensor has 4 floats, but the result ends at 5",
    ],
    [
      () => clip.sampleTo(tensor, two, { offset: 0.5 }),
      "sampleTo: offset must be a whole number from 0, got 0.5",
    ],
    [
      () => clip.sampleTo(tensor, two, { into: two }),
      "sampleTo: there is no option 'into'; the tensor takes the result",
    ],
    [() => gpu.blend([]), "blend: layers must be an array of at least 1 layer"],
    [
      () => gpu.blend(Array(64).fill(layer)),
      "blend: 64 layers are more than 63",
    ],
    [
      () => gpu.blend([layer, 3]),
      "blend: layers[1]: a layer must be an object, got number",
    ],
    [
      () => gpu.blend([layer, { ...layer, times: two }]),
      "blend: layers[1]: there are 2 times, but the first layer has 1; give all as many",
    ],
    [
      () => gpu.blend([layer, { clip: pair, times: 0 }]),
      "blend: layers[1]: the clip has other tracks than the first; blend clips of equal tracks",
    ],
    [
      () => gpu.blend([{ clip: foreign, times: 0 }]),
      "blend: layers[0]: the clip is of another session; make it with the one that samples it",
    ],
    [
      () => gpu.blend([{ clip: {}, times: 0 }]),
      "blend: layers[0]: clip must be a clip, got Object",
    ],
    [
      () => gpu.blend([{ ...layer, weight: two }]),
      "blend: layers[0]: there are 2 weights, but 1 times; give one for all, or as many",
    ],
    [
      () => gpu.blend([{ ...layer, weight: NaN }]),
      "blend: layers[0]: weight is NaN; give a number",
    ],
    [
      () => gpu.blend([{ ...layer, additive: true }, layer]),
      "blend: layers[1]: it follows an additive one; additive layers come last",
    ],
    [
      () => gpu.blendTo(tensor, [{ ...layer, additive: 1 }]),
      "blendTo: layers[0]: additive must be true or false, got number",
    ],
  ];
  for (const [make, message] of cases) {
    await assert.rejects(make(), { code: "invalid-input", message });
  }
});

test("calls made while the session opens keep their times", async () => {
  const gpu = face.shared({ flush: "manual", engine: "cpu" });
  const clip = gpu.clip({ tracks: [TRACK] });
  const times = new Float32Array([5, 6]);
  const weight = new Float32Array([1, 1]);
  const sampled = clip.sample(times);
  const blended = gpu.blend([{ clip, times, weight }]);
  const nothing = clip.sample(new Float32Array(0));
  times.fill(0);
  gpu.flush();
  await gpu.ready;
  await settled();
  fake.core.answer();
  assert.deepEqual([...(await sampled)], [5, 6]);
  assert.deepEqual([...(await blended)], [5, 6]);
  assert.deepEqual([...(await nothing)], []);
  const late = clip.sample(0);
  await gpu.dispose();
  await assert.rejects(late, { code: "disposed" });
  assert.throws(() => gpu.clip({ tracks: [TRACK] }), { code: "disposed" });
});

test("tensors that clips wrote are lost with the device until all of them is written", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip({ tracks: [TRACK] });
  const sent = async (...calls) => {
    gpu.flush();
    while (core.flights.length > 0) core.answer();
    return Promise.all(calls);
  };
  const two = new Float32Array([5, 6]);
  const layers = [{ clip, times: two }];
  const WRITES = [
    (tensor, options) => clip.sampleTo(tensor, two, options),
    (tensor, options) => gpu.blendTo(tensor, layers, options),
  ];
  for (const write of WRITES) {
    const pose = gpu.tensor([1, 2, 3], [3], { label: "pose" });
    const pair = gpu.tensor([1, 2]);
    const made = [
      write(pose, { offset: 1 }),
      write(pair),
      pair.neg().compute(),
    ];
    const [nothing, , negated] = await sent(...made, pose.read());
    assert.equal(nothing, undefined);
    const lost = [];
    const off = gpu.on("restored", (news) => lost.push(...news.lostTensors));
    core.lose();
    core.restore();
    off();
    assert.deepEqual(
      lost.map(({ label, elements }) => [label, elements]),
      [
        ["pose", 3],
        [undefined, 2],
        [undefined, 2],
      ],
    );
    const error = lost[0].error;
    const GONE = (reason) => reason === error;
    await assert.rejects(pose.read(), GONE);
    await assert.rejects(write(pose), GONE, "not all of it");
    await assert.rejects(write(pair, { deadlineMs: 0 }), { code: "timeout" });
    await assert.rejects(pair.read(), { code: "device-lost" });
    await assert.rejects(negated.read(), { code: "device-lost" });
    assert.throws(() => pair.gpuBuffer(), { code: "device-lost" });
    // A call that fails takes nothing from one before that writes all of it.
    const whole = write(pair);
    await assert.rejects(write(pair, { deadlineMs: 0 }), { code: "timeout" });
    const [, values] = await sent(whole, pair.read());
    assert.deepEqual([...values], [5, 6]);
    const again = await sent(pose.write([0, 0, 0]), write(pose), pose.read());
    assert.deepEqual([...again[2]], [5, 6, 0]);
    for (const tensor of [pose, pair, negated]) tensor.dispose();
  }
});

test("calls of one clip keep their own times, with options or without", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip({ tracks: [TRACK], duration: 4 });
  const asking = [];
  const asked = [
    clip.sample(1),
    clip.sample(5, { wrap: "loop" }),
    clip.sample(7, { wrap: "ping-pong", label: "to and fro" }),
    clip.sample(2, {
      get wrap() {
        asking.push(clip.sample(3));
        return "clamp";
      },
    }),
    clip.sample(6, { wrap: ["loop"] }),
  ];
  gpu.flush();
  core.answer();
  const rows = await Promise.all([...asked, ...asking]);
  assert.deepEqual(
    rows.flatMap((row) => [...row]),
    [1, 1, 1, 2, 2, 3],
  );
});

test("a clip's calls are aborted and timed like any", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip({ tracks: [TRACK] });
  const control = new AbortController();
  const given = clip.sample(0, { signal: control.signal });
  control.abort("enough");
  await assert.rejects(given, (reason) => reason === "enough");
  const into = new Float32Array(2);
  const kept = clip.sample(new Float32Array([1, 2]), { into });
  gpu.flush();
  core.answer();
  assert.equal(await kept, into);
  assert.deepEqual([...into], [1, 2]);
});
