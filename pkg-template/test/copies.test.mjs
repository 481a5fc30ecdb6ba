// Two copies of the package in one page, as bundlers make them, and entries that were not
// imported: messages say what happened, in words.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { manual, module } from "./face.mjs";

const own = process.env.FRAMEBATCH_FACE;
const manifest = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));

/** Imports from a second copy of the package, which shares no module with the tests' own. */
const folder = mkdtempSync(join(dirname(own), "copy-"));
cpSync(own, folder, { recursive: true });
const copied = (name) =>
  import(pathToFileURL(join(folder, "dist", `${name}.js`)).href);

const other = await (await copied("index")).open({ flush: "manual" });
const ANOTHER = ` of another copy of framebatch (${manifest.version}); have the bundler load the package once, as by npm dedupe or resolve.dedupe`;

/** The entries of the copy and their methods, whose stubs are seen before they are imported. */
const ENTRIES = {
  animation: ["clip", "blend", "blendTo", "tween", "spring"],
  embeddings: ["embedder"],
  kernels: ["kernel", "fn", "verify", "runAll", "profileSizes"],
  search: ["index", "loadIndex"],
};
const STUBS = Object.entries(ENTRIES).flatMap(([entry, methods]) =>
  methods.map((method) => [entry, method, other[method]]),
);
for (const entry of Object.keys(ENTRIES)) {
  await copied(`${entry}/index`);
  await module(`${entry}/index`);
}

for (const [entry, method, stub] of STUBS) {
  test(`gpu.${method} names its import, which replaces the stub`, () => {
    assert.throws(() => stub.call(other, {}), {
      code: "invalid-input",
      message:
        `gpu.${method}: it needs import "framebatch/${entry}", of the same copy of framebatch; where that is there, ` +
        "have the bundler load the package once, as by npm dedupe or resolve.dedupe",
    });
    assert.notEqual(other[method], stub);
  });
}

test("every method that an entry adds has its stub", () => {
  // Assigned where there is no stub, a method is enumerable, unlike a stub and what replaces it.
  assert.deepEqual(Object.keys(other.constructor.prototype), []);
});

const f32 = (...values) => new Float32Array(values);
const { gpu } = await manual();
const tensor = gpu.tensor([1, 2]);
const foreign = other.tensor([1, 2]);
const TRACKS = { tracks: [{ times: [0, 1], values: [0, 1] }] };
const KERNEL = {
  name: "twice",
  inputs: { x: "f32" },
  output: "f32",
  code: "fn element(x: f32) -> f32 { return x * 2; }",
};
const kernel = other.kernel(KERNEL);

/** What a call is given, and what its message ends with. */
const CASES = [
  [() => tensor.add(foreign), "an operand must be a tensor, got a tensor"],
  [() => tensor.add(other), "add: an operand must be a tensor, got a session"],
  [
    () => gpu.readAll([foreign]),
    "readAll: an operand must be a tensor, got a tensor",
  ],
  [
    () => gpu.lerp(foreign, f32(1), 0),
    "lerp: a must be a Float32Array, got a tensor",
  ],
  [
    () => gpu.blend([{ clip: other.clip(TRACKS), times: 0 }]),
    "blend: layers[0]: clip must be a clip, got a clip",
  ],
  [
    () => gpu.verify(kernel, []),
    "verify: give a kernel of gpu.kernel, got a kernel",
  ],
  [() => gpu.kernel(KERNEL)({ x: foreign }), "got a tensor"],
  [() => gpu.index({ dim: 2 }).add(other.index({ dim: 2 })), "got an index"],
];

for (const [call, message] of CASES) {
  test(`of another copy: ${message}`, async () => {
    await assert.rejects(
      async () => call(),
      (error) => {
        assert.equal(error.code, "invalid-input");
        assert.ok(error.message.endsWith(message + ANOTHER), error.message);
        return true;
      },
    );
  });
}

test("what this copy made is named in words, whatever minifiers make of classes", async () => {
  await assert.rejects(gpu.lerp(tensor, f32(1), 0), {
    message: "lerp: a must be a Float32Array, got a tensor",
  });
  assert.throws(() => tensor.add(gpu.clip(TRACKS)), {
    message: "add: an operand must be a tensor, got a clip",
  });
});
