// `explain` and `warmup`: what is made of calls that are not sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, manual } from "./face.mjs";
import { lerp } from "./opening.mjs";

const { shared } = face;
const f32 = (...values) => new Float32Array(values);

test("explain: the plan of its calls, which are not sent", async () => {
  const { gpu, core } = await manual();
  const outside = lerp(gpu, 1);
  let inside;
  const plan = gpu.explain(() => {
    inside = lerp(gpu, 2, { label: "in", flush: "now" });
    gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0);
  });
  assert.equal(plan, "lerp 1\nslerp 1");
  await assert.rejects(inside, {
    code: "aborted",
    message: /^lerp \(label 'in'\): made inside explain/,
  });
  assert.equal(core.counts.flushes, 0);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await outside)], [1]);
});

test("warmup: compiles what its calls need, and sends none of them", async () => {
  const { gpu, core } = await manual();
  let inside;
  const warm = gpu.warmup(() => {
    inside = lerp(gpu, 2);
  });
  await assert.rejects(inside, {
    code: "aborted",
    message: /^lerp: made inside warmup/,
  });
  // Calls go on meanwhile, and are no part of it.
  const outside = lerp(gpu, 1);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await outside)], [1]);
  assert.equal(core.warmups.length, 1);
  core.warmed();
  assert.equal(await warm, undefined);

  const refused = gpu.warmup(() => lerp(gpu, 2));
  core.warmed({ code: "shader", message: "no such function" });
  await assert.rejects(refused, {
    code: "shader",
    message: "warmup: no such function",
  });
});

test("warmup: a session that ends inside it ends it", async () => {
  const { gpu } = await manual();
  let inside;
  const warm = gpu.warmup(() => {
    inside = lerp(gpu, 2);
    inside.catch(() => {});
    void gpu.dispose();
  });
  await assert.rejects(warm, { code: "disposed", message: /^warmup: / });
  await assert.rejects(inside, { code: "disposed" });
});

test("explain: a call that is refused inside is its caller's to catch", async () => {
  const { gpu, core } = await manual();
  const codes = [];
  const unhandled = [];
  const hear = (error) => unhandled.push(error);
  process.on("unhandledRejection", hear);
  core.failures.submit = { code: "invalid-input", message: "no" };
  gpu.explain(() => {
    lerp(gpu, 2).catch(({ code }) => codes.push(code));
  });
  await new Promise((run) => setTimeout(run, 5));
  process.off("unhandledRejection", hear);
  assert.deepEqual([codes, unhandled], [["invalid-input"], []]);
});

test("warmup: waits for the device, and ends with the session", async () => {
  const gpu = shared();
  let made = 0;
  const warm = gpu.warmup(() => void (made += 1));
  assert.equal(made, 0);
  await gpu.ready;
  await Promise.resolve();
  assert.equal(made, 1);
  await assert.rejects(
    gpu.warmup(() => {
      throw new Error("mine");
    }),
    { message: "mine" },
  );
  let nested;
  const outer = gpu.warmup(() => {
    nested = gpu.warmup(() => {});
    nested.catch(() => {});
  });
  await assert.rejects(nested, { code: "invalid-input" });
  await gpu.dispose();
  for (const waiting of [warm, outer]) {
    await assert.rejects(waiting, { code: "disposed" });
  }
  await assert.rejects(
    gpu.warmup(() => {}),
    { code: "disposed" },
  );
});

test("explain: an async function and a throwing one leave nothing behind", async () => {
  const { gpu, core } = await manual();
  assert.equal(
    gpu.explain(async () => void (await lerp(gpu, 1))),
    "lerp 1",
  );
  assert.throws(
    () =>
      gpu.explain(() => {
        throw new Error("mine");
      }),
    { message: "mine" },
  );
  assert.throws(() => gpu.explain(() => gpu.explain(() => {})), {
    code: "invalid-input",
  });
  core.failures.begin_explain = { code: "limit-exceeded", message: "too much" };
  assert.throws(() => gpu.explain(() => {}), {
    code: "limit-exceeded",
    message: "explain: too much",
  });
  const promise = lerp(gpu, 4);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await promise)], [4]);
});
