// What goes wrong with one batch, or with somebody else on the device, stays there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const pages = openSite();

test("a buffer that cannot be made rejects its batch alone, and the next works", () =>
  pages.page(async (page) => {
    const outcome = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const small = () => {
        const call = gpu.lerp(
          new Float32Array(8),
          new Float32Array(8).fill(2),
          0.5,
        );
        gpu.flush();
        return call;
      };
      await small();
      const { createBuffer } = GPUDevice.prototype;
      // A GPU with little memory left answers with an invalid buffer. A GPU without
      // memory for a few bytes counts as lost.
      GPUDevice.prototype.createBuffer = function (desc) {
        const usage = desc.size > 4096 ? 0 : desc.usage;
        return createBuffer.call(this, { ...desc, usage });
      };
      const floats = 1 << 20;
      const large = gpu.lerp(
        new Float32Array(floats),
        new Float32Array(floats),
        0.5,
      );
      gpu.flush();
      const failed = await large.catch((error) => error.code);
      GPUDevice.prototype.createBuffer = createBuffer;
      return { failed, after: [...(await small())] };
    });
    assert.equal(outcome.failed, "fatal");
    assert.deepEqual(outcome.after, Array(8).fill(1));
  }));

// Firefox tells the console of it, whoever catches the error.
const MAY_COMPLAIN = { may: /shader module|parsing error/ };

test("a shader that does not compile rejects with shader, and is compiled again later", () =>
  pages.page(async (page) => {
    const outcome = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const ask = () => {
        const call = gpu.lerp(
          new Float32Array(8),
          new Float32Array(8).fill(2),
          0.5,
        );
        gpu.flush();
        return call;
      };
      const { createShaderModule } = GPUDevice.prototype;
      GPUDevice.prototype.createShaderModule = function () {
        return createShaderModule.call(this, { code: "this is no WGSL" });
      };
      const failed = await ask().catch((error) => error.code);
      GPUDevice.prototype.createShaderModule = createShaderModule;
      return { failed, after: [...(await ask())] };
    });
    assert.equal(outcome.failed, "shader");
    assert.deepEqual(outcome.after, Array(8).fill(1));
  }, MAY_COMPLAIN));

test("the page's own errors on the shared device are the page's", () =>
  pages.page(async (page) => {
    const result = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const call = gpu.lerp(
        new Float32Array(4),
        new Float32Array(4).fill(2),
        0.5,
      );
      gpu.device.addEventListener("uncapturederror", (event) =>
        event.preventDefault(),
      );
      gpu.device.createBuffer({ size: 4, usage: 0 });
      gpu.flush();
      return [...(await call)];
    });
    assert.deepEqual(result, [1, 1, 1, 1]);
  }));
