// The stores for Svelte, by its contract of stores: on a server, and in what looks like a
// page. Components of Svelte are in tests/e2e/svelte.test.mjs.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { derived, get } from "svelte/store";
import { frame, frames, near } from "./animation-frames.mjs";
import { face, fake, manual, module } from "./face.mjs";

const before = Object.keys(globalThis);
const { clip, gpu: gpuStore, spring, tween } = await module("svelte/index");
const imported = Object.keys(globalThis);
const { stepperOf } = await module("animation/motion");
const { callsOf } = await module("session/session");

const RISE = { tracks: [{ times: [0, 1], values: [0, 10] }] };

/** What stores see of a page: that there is one. */
function page() {
  globalThis.document = {
    hidden: false,
    addEventListener() {},
    removeEventListener() {},
  };
}
after(() => delete globalThis.document);

test("a server has values where they were set, and opens no session", async () => {
  assert.deepEqual(imported, before);
  const opacity = tween(0.25);
  const place = spring([3, 4]);
  const seen = [];
  const leave = opacity.subscribe((x) => seen.push(x));
  assert.equal(await opacity.set(1), true);
  await place.update(([x, y]) => [x + 1, y]);
  leave();
  assert.deepEqual(seen, [0.25, 1]);
  assert.deepEqual([...get(place)], [4, 4]);
  assert.deepEqual([get(gpuStore()), get(clip(RISE))], [undefined, undefined]);
  assert.equal(fake.core, undefined);
});

test("stores go to what is set while somebody subscribes, and leave nothing", async () => {
  page();
  const { gpu: session } = await manual();
  const heard = [];
  const onUpdate = (x) => heard.push(x);
  const linear = { session, duration: 0.1, easing: "linear" };
  const x = tween(1, linear);
  const pulled = spring(10, { session, stiffness: 500 });
  const several = tween([3, 3], linear);
  const quiet = tween(1, { ...linear, onUpdate });
  const doubled = derived([x, quiet], ([x, quiet]) => [2 * x, quiet]);
  const seen = {};
  const leaves = Object.entries({ x, pulled, several, doubled }).map(
    ([name, store]) =>
      store.subscribe((value) => (seen[name] ??= []).push(value)),
  );
  const { set, update } = x; // Svelte takes methods off.
  const there = set(3);
  quiet.set(5);
  pulled.set(50);
  several.set([1, 2]);
  for (const ms of [0, 50]) frame(ms);
  near(seen.x.at(-1), 2);
  near(heard.at(-1), 3);
  assert.equal(seen.doubled.at(-1)[1], 1);
  assert.ok(seen.pulled.at(-1) > 10 && seen.pulled.at(-1) < 50);
  assert.equal(new Set(seen.several).size, seen.several.length);
  frame(50);
  assert.equal(await there, true);
  assert.equal(get(quiet), 5);
  assert.deepEqual(seen.doubled.at(-1), [6, 5]);
  const first = update((now) => now + 4);
  frame(0);
  const second = set(9);
  assert.equal(await first, false);
  frame(0);
  frame(50);
  // What is there already is no motion.
  assert.equal(await several.set(Float32Array.of(1, 2)), true);
  leaves.forEach((leave) => leave());
  leaves.forEach((leave) => leave());
  assert.equal(await second, false);
  assert.equal(stepperOf(callsOf(session)).size, 0);
  assert.equal(frames.size, 0);
  assert.ok(get(x) > 3 && get(x) < 9);
});

test("subscribers that leave take nothing from those that stay", async () => {
  page();
  const { gpu: session } = await manual();
  const x = tween(0, { session, duration: 0.1, easing: "linear" });
  const seen = [];
  const leave = x.subscribe(() => {});
  const stay = x.subscribe((value) => seen.push(value));
  x.set(1);
  frame(0);
  leave();
  frame(100);
  assert.equal(seen.at(-1), 1);
  stay();
});

test("the page's session is opened by the first who subscribes", async () => {
  page();
  const { opened } = fake;
  const store = gpuStore({ options: { flush: "manual" } });
  assert.equal(fake.opened, opened);
  const session = get(store);
  assert.equal(session, face.shared());
  assert.equal(get(gpuStore({ session })), session);
  await session.ready;
  assert.equal(fake.opened, opened + 1);
  await session.dispose();
});

test("a motion ends with the page's session, and the next goes on from there", async () => {
  page();
  for (const [make, options] of [
    [spring, { stiffness: 500 }],
    [tween, { duration: 0.1 }],
  ]) {
    const x = make(0, { ...options, options: { flush: "manual" } });
    const seen = [];
    const leave = x.subscribe((value) => seen.push(value));
    const first = x.set(100);
    await face.shared().ready;
    for (const ms of [0, 50]) frame(ms);
    const reached = seen.at(-1);
    assert.ok(reached > 0 && reached < 100, String(reached));
    await face.shared().dispose();
    assert.equal(await first, false);
    x.set(reached + 1);
    await face.shared().ready;
    for (const ms of [0, 50]) frame(ms);
    assert.ok(seen.at(-1) > reached && seen.at(-1) < reached + 50);
    leave();
    await face.shared().dispose();
  }
});

test("stores share a clip by its tracks; the last who leaves disposes of it", async () => {
  page();
  const { gpu: session } = await manual();
  const fall = { tracks: [{ times: [0, 1], values: [10, 0] }] };
  const clips = [];
  const leaves = [RISE, RISE, fall].map((tracks, i) =>
    clip(tracks, { session }).subscribe((value) => (clips[i] = value)),
  );
  const [rise, same, other] = clips;
  assert.ok(rise === same && rise !== other);
  leaves[0]();
  leaves[0]();
  const pending = rise.sample(0);
  leaves[1]();
  leaves[2]();
  for (const gone of clips) {
    await assert.rejects(gone.sample(0), { code: "disposed" });
  }
  pending.catch(() => {});
});

test("wrong options throw as a value is set", async () => {
  page();
  const { gpu: session } = await manual();
  assert.throws(() => tween(0, { session, duraton: 1 }).set(1), {
    code: "invalid-input",
    message: /there is no option 'duraton'/,
  });
});
