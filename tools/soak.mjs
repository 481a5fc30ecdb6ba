// What a round of trouble must come to, and what a page holds after it.
//
// The trouble itself is made in the page, by tests/e2e/pages/trouble.js.

import assert from "node:assert/strict";

/** How much more bytes may be held at the end than when it was warm. */
const GROWTH = {
  heap: (bytes) => bytes / 100,
  gpu: (bytes) => bytes / 100,
  // The size that was once needed stays. A burst that finds a small allocation in the hole
  // which a chunk of an earlier burst left takes a new chunk of 1 MiB and some bytes, now
  // and then: so two of them. Over ten minutes that is two bytes a call.
  wasm: () => 2.2 * 2 ** 20,
};

/** What calls may be refused with: each was asked for. */
const REFUSALS = ["given up", "timeout", "disposed"];

/** Every call was answered once: rightly, or with a refusal that was asked for. */
export function assertNothingLost(report) {
  const { made, right, wrong, unsettled, refused, uncaught } = report;
  assert.equal(wrong, 0, "wrong answers");
  assert.equal(unsettled, 0, "calls without an answer");
  const known = ([code]) => REFUSALS.includes(code);
  const odd = Object.entries(refused).filter((entry) => !known(entry));
  assert.deepEqual(odd, []);
  const refusals = Object.values(refused).reduce((sum, n) => sum + n, 0);
  assert.equal(right + refusals, made);
  assert.ok(report.losses > 0 && right > 0, "nothing happened");
  assert.deepEqual(uncaught, []);
}

/** What the page holds, calm and its garbage collected, in bytes. `protocol` is a CDP session. */
export async function held(page, protocol) {
  await page.bringToFront();
  await page.evaluate(() => calm(gpu));
  const rest = await page.evaluate(() => ({
    wasm: counting.wasmBytes(),
    gpu: gpu.stats().pool.bytes,
  }));
  // A second after the last batch, arrays that were ready for the next are let go.
  await new Promise((done) => setTimeout(done, 1100));
  // Finalizers run between tasks, and free what the next collection finds.
  for (let i = 0; i < 3; i++) {
    await protocol.send("HeapProfiler.collectGarbage");
    await page.evaluate(() => new Promise((done) => setTimeout(done)));
  }
  // A heap's snapshot holds the WebAssembly memory too.
  return { heap: (await heapBytes(protocol)) - rest.wasm, ...rest };
}

/**
 * What the browser keeps for itself, by name:
 *
 * code that is not of the type "code", and the weak lists of the code to drop when an
 * object's shape changes: both grow for minutes, until all that is hot is optimized;
 *
 * its records of slow frames, of long tasks, of the scripts in them (200 of each) and of
 * the page being shown and hidden (50).
 */
const ITS_OWN = new RegExp(
  [
    "WasmNativeModule|ProtectedFixedArray|SharedFunctionInfoWrapper|WeakArrayList",
    "Performance|AnimationFrameTiming|TaskAttribution|ScriptTiming|VisibilityStateEntry",
  ].join("|"),
);

/** Bytes of the page's heap after a collection, without what is the browser's own. */
async function heapBytes(protocol) {
  const chunks = [];
  const keep = ({ chunk }) => chunks.push(chunk);
  protocol.on("HeapProfiler.addHeapSnapshotChunk", keep);
  await protocol.send("HeapProfiler.takeHeapSnapshot");
  protocol.off("HeapProfiler.addHeapSnapshotChunk", keep);
  const { snapshot, nodes, strings } = JSON.parse(chunks.join(""));
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name, size] = ["type", "name", "self_size"].map((field) =>
    fields.indexOf(field),
  );
  let bytes = 0;
  for (let at = 0; at < nodes.length; at += fields.length) {
    const own =
      types[type][nodes[at + type]] === "code" ||
      ITS_OWN.test(strings[nodes[at + name]]);
    if (!own) bytes += nodes[at + size];
  }
  return bytes;
}

/** Streams lost nothing, and held no more than their budget; see `streaming` in the pages. */
export function assertWithin(report, budget) {
  const { chunks, results, wrong, pending, pool, counted, mostRounded } =
    report;
  assert.ok(chunks > 0, "nothing happened");
  assert.equal(results, chunks, "results that are missing");
  assert.equal(wrong, 0, "wrong results");
  assert.equal(pending, 0, "calls without an answer");
  // By its own account, and by that of the page's.
  for (const bytes of [pool.peakBytes, counted]) {
    assert.ok(bytes > 0 && bytes <= budget, `${bytes} bytes of ${budget}`);
  }
  assert.ok(mostRounded < 0.5, `${mostRounded} of the live bytes are rounding`);
}

/** No more was held at the last look than when it was warm, which was the `first`. */
export function assertFlat(first, last) {
  for (const [what, most] of Object.entries(GROWTH)) {
    const [before, after] = [first[what], last[what]];
    assert.ok(before > 0, `${what} is not counted`);
    const growth = after - before;
    assert.ok(
      growth <= most(before),
      `${what}: ${before} bytes, then ${after}`,
    );
  }
}
