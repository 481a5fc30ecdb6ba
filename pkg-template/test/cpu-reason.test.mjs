// Why a session computes on the CPU: told by `gpu.info`, to listeners, and once to developers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, module } from "./face.mjs";

const PAGE_OF = {
  "insecure-context": /serve it over https or from localhost/,
  unsupported: /there is no WebGPU here/,
  "no-adapter": /WebGPU found no GPU/,
  "software-adapter": /only GPU adapter is a software one/,
};

function on(context, device, secure) {
  fake.device = device;
  if (secure !== undefined) globalThis.isSecureContext = secure;
  context.after(() => {
    fake.device = undefined;
    delete globalThis.isSecureContext;
  });
}

for (const [reason, words] of Object.entries(PAGE_OF)) {
  test(`${reason}: gpu.info and listeners of fallback say so`, async (context) => {
    on(context, { engine: "cpu", reason });
    const warn = context.mock.method(console, "warn", () => {});
    const gpu = face.shared({ flush: "manual" });
    const news = new Promise((tell) => gpu.on("fallback", tell));
    const { message } = await news;
    assert.match(message, /^calls run on the CPU, because /);
    assert.match(message, words);
    assert.equal(gpu.info.reason, reason);
    assert.equal(warn.mock.callCount(), 0, "outside of browsers");
    await gpu.dispose();
  });
}

for (const [name, device] of [
  ["a GPU", { engine: "gpu" }],
  ["the CPU that was asked for", { engine: "cpu", reason: "asked" }],
]) {
  test(`${name}: nobody is told`, async (context) => {
    on(context, device, true);
    const warn = context.mock.method(console, "warn", () => {});
    const gpu = face.shared({ flush: "manual" });
    gpu.on("fallback", () => assert.fail("there is none"));
    await gpu.ready;
    assert.equal(gpu.info.reason, device.reason);
    assert.equal(warn.mock.callCount(), 0);
    await gpu.dispose();
  });
}

/** What the console gets of two sessions of a page. */
async function warnings(context, query) {
  const warn = context.mock.method(console, "warn", () => {});
  const { explainCpu } = await module("session/cpu-reason", query);
  explainCpu("insecure-context");
  explainCpu("no-adapter");
  return warn.mock.calls.map(({ arguments: [message] }) => message);
}

test("in a browser a developer is warned, once a page", async (context) => {
  on(context, undefined, false);
  assert.deepEqual(await warnings(context, "?browser"), [
    "framebatch: calls run on the CPU, because WebGPU needs a secure context, and this page is not one; serve it over https or from localhost " +
      '(gpu.info.reason "insecure-context"); open with engine "cpu" to ask for that',
  ]);
});

test("in production nobody is warned", async (context) => {
  on(context, undefined, false);
  process.env.NODE_ENV = "production";
  context.after(() => delete process.env.NODE_ENV);
  assert.deepEqual(await warnings(context, "?production"), []);
});

test("a session that is disposed of while it opens tells nobody", async (context) => {
  on(context, { engine: "cpu", reason: "no-adapter" });
  const gpu = face.shared({ flush: "manual" });
  gpu.on("fallback", () => assert.fail("it is disposed of"));
  await gpu.dispose();
  await new Promise((done) => setTimeout(done, 20));
});
