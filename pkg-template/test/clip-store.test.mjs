// Where clips lie: one tensor for all of a session, whose places are given again when no
// call needs them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, module, settled } from "./face.mjs";

await module("animation/index");
const { FreeList } = await module("animation/free-list");
const { encode } = await module("animation/tracks");

const TRACK = { times: [0, 1], values: [0, 1] };

/** Numbers from 0 to 1 that are the same each time. */
function samples(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("a place is given again when no pending call reads it", async () => {
  const { gpu, core } = await manual();
  const track = { times: [0], values: [1, 2] };
  const first = gpu.clip({ tracks: [track] });
  const pending = first.sample(3);
  first.dispose();
  await assert.rejects(first.sample(0), {
    code: "disposed",
    message: "sample: the clip is disposed; make it anew",
  });
  const second = gpu.clip({ tracks: [track] });
  const places = () => core.queued.map(({ at }) => core.view()[at + 8]);
  second.sample(0);
  assert.deepEqual(places(), [0, 16]);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await pending)], [3, 4]);
  gpu.clip({ tracks: [track] }).sample(0);
  assert.deepEqual(places(), [0]);
});

test("a place is not given again while a batch may still sample it", async () => {
  const tracks = [{ times: [0], values: [1, 2] }];
  /** Where the only call that is queued looks for its clip. */
  const placeOf = (core, at) => core.view()[core.queued.at(-1).at + at];
  const ways = {
    async signal({ gpu, first, core }) {
      const stop = new AbortController();
      const call = first.sample(3, { signal: stop.signal });
      gpu.flush();
      stop.abort();
      await assert.rejects(call, { name: "AbortError" });
      return () => core.answer();
    },
    async deadline({ gpu, first, core }) {
      const call = first.sample(3, { deadlineMs: 1 });
      gpu.flush();
      await assert.rejects(call, { code: "timeout" });
      return () => core.answer();
    },
    async chunk({ gpu, first, core, meanwhile }) {
      const call = first.sample(Float32Array.of(1, 2, 3, 4));
      gpu.flush();
      const failure = { code: "out-of-memory", message: "full" };
      // Four chunks, of which the second fails, and with it the call.
      const behind = (chunk) => chunk === 1 && meanwhile();
      core.answerInChunks(2, { failing: 1, failure, behind });
      await assert.rejects(call, { code: "out-of-memory" });
    },
  };
  for (const [name, giveUp] of Object.entries(ways)) {
    const { gpu, core } = await manual();
    const first = gpu.clip({ tracks });
    const meanwhile = () => {
      first.dispose();
      void gpu.clip({ tracks }).sample(0);
      assert.equal(placeOf(core, 8), 16, name);
    };
    const land = await giveUp({ gpu, first, core, meanwhile });
    if (land !== undefined) {
      meanwhile();
      land();
    }
    void gpu.clip({ tracks }).sample(0);
    assert.equal(placeOf(core, 8), 0, `${name}: when the batch has ended`);
  }
});

test("a clip dropped while the session opens keeps its place for its calls", async () => {
  const gpu = face.shared({ flush: "manual" });
  const clip = (value) =>
    gpu.clip({ tracks: [{ times: [0], values: [value] }] });
  const first = clip(1);
  const call = first.sample(0);
  first.dispose();
  void clip(2).sample(0);
  await gpu.ready;
  await settled();
  const { core } = fake;
  void clip(3).sample(0);
  const places = () => core.queued.map(({ at }) => core.view()[at + 8]);
  assert.deepEqual(places(), [0, 16, 32]);
  gpu.flush();
  core.answer();
  await call;
  const last = clip(4).sample(0);
  assert.deepEqual(places(), [0]);
  gpu.flush();
  core.answer();
  await last;
  await gpu.dispose();
});

test("the store is one tensor, written in parts and filled when it grows", async () => {
  const { gpu, core } = await manual();
  const small = { tracks: [TRACK] };
  gpu.clip(small);
  gpu.clip(small);
  assert.deepEqual([core.counts.fills, core.counts.patches], [1, 1]);
  const long = Float32Array.from({ length: 20_000 }, (_, i) => i);
  gpu.clip({ tracks: [{ times: long, values: long }] });
  assert.deepEqual([core.counts.fills, core.counts.patches], [2, 1]);
  assert.equal(core.tensors.size, 1);
  core.lose();
  gpu.clip(small);
  core.restore();
  assert.deepEqual([core.counts.fills, core.counts.patches], [3, 1]);
});

test("a clip that finds no room leaves the others, and the next ones, as they were", async () => {
  const { gpu, core } = await manual();
  const clip = (value) => ({ tracks: [{ times: [0], values: [value] }] });
  const times = Float32Array.from({ length: 20_000 }, (_, i) => i);
  const long = { tracks: [{ times, values: times }] };
  const tensor = () => [...core.tensors.values()][0];
  /** Whether the device has the words of a clip where its calls look for them. */
  const has = (made, value) => {
    void made.sample(0);
    const place = core.view()[core.queued.at(-1).at + 8];
    const { words } = encode("clip", clip(value).tracks, undefined);
    assert.deepEqual(tensor().subarray(place, place + words.length), words);
  };
  const first = gpu.clip(clip(1));
  const { length } = tensor();
  const refuse = (method) => {
    core.failures = { [method]: { code: "limit-exceeded", message: "full" } };
  };
  refuse("fill");
  assert.throws(() => gpu.clip(long), { code: "limit-exceeded" });
  refuse("patch");
  assert.throws(() => gpu.clip(clip(3)), { code: "limit-exceeded" });
  const second = gpu.clip(clip(2));
  assert.deepEqual([core.counts.fills, core.counts.patches], [1, 1]);
  has(first, 1);
  has(second, 2);
  // Another device is asked for no more than there is.
  core.lose();
  core.restore();
  assert.equal(tensor().length, length);
  gpu.clip(long);
  assert.ok(tensor().length > 40_000);
  has(first, 1);
  has(second, 2);
});

test("a device that had no room for the store has it with the next clip", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip({ tracks: [TRACK] });
  core.lose();
  core.failures = { fill: { code: "limit-exceeded", message: "too large" } };
  core.restore();
  gpu.clip({ tracks: [TRACK] });
  assert.deepEqual([core.counts.fills, core.counts.patches], [2, 0]);
  const sampled = clip.sample(0.5);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await sampled)], [0.5]);
});

test("places that are given back join", () => {
  // How many there are at a time, and how many times the largest they may take.
  for (const [alive, most] of [
    [1, 1],
    [2, 4],
  ]) {
    const places = new FreeList();
    const taken = [];
    for (let words = 1; words < 5000; words += 1) {
      if (taken.length === alive) places.give(...taken.shift());
      taken.push([places.take(words), words]);
      assert.ok(places.end <= most * words, `${places.end} for ${words}`);
    }
  }
  const orders = ["012", "021", "102", "120", "201", "210"];
  for (const order of orders) {
    const places = new FreeList();
    const taken = [3, 5, 7].map((words) => [places.take(words), words]);
    assert.deepEqual(taken, [
      [0, 3],
      [3, 5],
      [8, 7],
    ]);
    for (const index of order) places.give(...taken[index]);
    assert.equal(places.end, 0, order);
    assert.equal(places.take(15), 0, order);
  }
});

test("no word is in two places, and no free one is forgotten", () => {
  const random = samples(5);
  const places = new FreeList();
  const taken = [];
  const used = [];
  const endOf = () => used.lastIndexOf(true) + 1;
  for (let round = 0; round < 5000; round += 1) {
    if (taken.length > 0 && random() < 0.5) {
      const index = Math.floor(random() * taken.length);
      const [[at, words]] = taken.splice(index, 1);
      places.give(at, words);
      used.fill(false, at, at + words);
    } else {
      const words = 1 + Math.floor(random() * 40);
      // The first gap that is long enough, or the end.
      let expected = 0;
      for (let at = 0; at < expected + words; at += 1) {
        if (used[at] === true) expected = at + 1;
      }
      const at = places.take(words);
      assert.equal(at, expected);
      for (let word = at; word < at + words; word += 1) used[word] = true;
      taken.push([at, words]);
    }
    assert.equal(places.end, endOf());
  }
});

test("clips of growing length take no more than the largest", async () => {
  const { gpu, core } = await manual();
  const long = Float32Array.from({ length: 2000 }, (_, i) => i);
  for (let keys = 2; keys < 2000; keys += 2) {
    const part = long.subarray(0, keys);
    gpu.clip({ tracks: [{ times: part, values: part }] }).dispose();
  }
  assert.deepEqual([core.counts.fills, core.counts.patches], [1, 998]);
});

test("a store without clips is filled with the next one after a loss", async () => {
  const { gpu, core } = await manual();
  gpu.clip({ tracks: [TRACK] }).dispose();
  core.lose();
  core.restore();
  assert.deepEqual([core.counts.fills, core.counts.patches], [1, 0]);
  gpu.clip({ tracks: [TRACK] });
  assert.deepEqual([core.counts.fills, core.counts.patches], [2, 0]);
});

test("a store that finds no room is said of every call", async () => {
  const { gpu, core } = await manual();
  const clip = gpu.clip({ tracks: [TRACK] });
  core.lose();
  core.failures = { fill: { code: "limit-exceeded", message: "too large" } };
  core.restore();
  await assert.rejects(clip.sample(0), {
    code: "limit-exceeded",
    message: "clip: too large",
  });
  core.lose();
  core.restore();
  const again = clip.sample(0.5);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await again)], [0.5]);
});
