// WebAssembly without vectors: the other file is loaded, and computes the same bits.

import assert from "node:assert/strict";
import { BROWSER, WITHOUT_VECTORS } from "../../tools/browser.mjs";
import { chromiumTest, openSite } from "./site.mjs";

// Where no test follows, nothing would close the browsers.
const sites = {
  chromium: () => [
    openSite(),
    openSite({ switches: [`--js-flags=${WITHOUT_VECTORS.join(" ")}`] }),
  ],
  firefox: () => [],
};
const [usual, old] = sites[BROWSER]();

/** What the CPU computes, as words, by name. */
const computed = async () => {
  const gpu = await framebatch.open({ engine: "cpu" });
  const floats = (count, seed) => workload.floats(count, seed);
  const [x, y, z] = [1, 2, 3].map((seed) => floats(6000, seed));
  const t = floats(6000, 4).map(Math.abs);
  const rows = (width) => {
    const count = Math.floor(x.length / width);
    return gpu.tensor(x.subarray(0, count * width), [count, width]);
  };
  const functions =
    "relu sigmoid tanh silu gelu exp abs neg sin cos floor ceil round sign";
  const asked = {
    lerp: gpu.lerp(x, y, 0.3),
    "lerp, each its own t": gpu.lerp(x, y, t),
    slerp: gpu.slerp(x, y, t.subarray(0, 1500)),
    nlerp: gpu.nlerp(x, y, t.subarray(0, 1500)),
    bezier: gpu.bezier([x, y, z, x], 0.7),
    "a field": gpu.states.gradients(new Uint8Array(x.buffer.slice(0, 3200)), {
      field: "exp(-rho * rho / 9) * sin(theta) + log(theta + 1) + rho ^ 3",
    }),
    "a field of tangents": gpu.states.gradients(
      new Uint8Array(x.buffer.slice(0, 3200)),
      {
        field: "tan(rho) + cos(theta)",
      },
    ),
    distances: gpu.states.distance(
      new Uint8Array(x.buffer.slice(0, 3200)),
      new Uint8Array(y.buffer.slice(0, 3200)),
    ),
  };
  for (const name of functions.split(" ")) {
    asked[name] = gpu.tensor(x)[name]().read();
  }
  // Some arguments of waves are far from 0, and most are near.
  asked.waves = gpu.tensor(x).pow(9).mul(1000).sin().read();
  for (const name of ["mod", "atan2", "less", "greaterEqual", "notEqual"]) {
    asked[name] = gpu.tensor(x)[name](gpu.tensor(y)).read();
  }
  asked.where = gpu.where(gpu.tensor(x).round(), gpu.tensor(y), 3).read();
  asked.log = gpu.tensor(t).log().sqrt().read();
  asked.pow = gpu.tensor(t).pow(gpu.tensor(y)).read();
  asked.minimum = gpu.tensor(x).minimum(gpu.tensor(y)).maximum(-0.5).read();
  for (const width of [3, 10, 40, 100, 1500]) {
    const name = `rows of ${width}`;
    asked[`${name}: softmax`] = rows(width).softmax().read();
    asked[`${name}: layerNorm`] = rows(width).layerNorm().read();
    asked[`${name}: sum`] = rows(width).sum(-1).read();
    asked[`${name}: argmax`] = rows(width).argmax(-1).read();
    asked[`columns of ${width}`] = rows(width).transpose().max(0).read();
  }
  for (const [m, k, n] of [
    [1, 300, 20],
    [20, 300, 1],
    [37, 65, 43],
    [5, 1000, 6],
  ]) {
    const a = gpu.tensor(x.subarray(0, m * k), [m, k]);
    const b = gpu.tensor(y.subarray(0, k * n), [k, n]);
    asked[`${m}x${k}x${n}`] = a.matmul(b).gelu().read();
  }
  const answers = {};
  for (const [name, answer] of Object.entries(asked)) {
    const { buffer, byteOffset, length } = await answer;
    answers[name] = [...new Uint32Array(buffer, byteOffset, length)];
  }
  await gpu.dispose();
  return answers;
};

/** The WebAssembly files that a page fetched for it, and what came out. */
async function run(site) {
  let result;
  await site.page(async (page) => {
    const files = [];
    page.on("request", (request) => {
      const name = /[^/]+\.wasm$/.exec(request.url());
      if (name) files.push(name[0]);
    });
    const answers = await page.evaluate(computed);
    result = { files, answers };
  });
  return result;
}

chromiumTest(
  "without vectors the other file is loaded, and computes the same bits",
  "another engine has no switch for it",
  async () => {
    const [usually, without] = [await run(usual), await run(old)];
    assert.deepEqual(usually.files, ["framebatch_bg.wasm"]);
    assert.deepEqual(without.files, ["framebatch_bg_scalar.wasm"]);
    const names = Object.keys(usually.answers);
    assert.ok(names.length > 40, `only ${names.length} were compared`);
    for (const name of names) {
      assert.deepEqual(without.answers[name], usually.answers[name], name);
    }
  },
);

chromiumTest(
  "what a page gives as the option wasm is what runs",
  "another engine has no switch for it",
  () =>
    old.page(async (page) => {
      const outcome = await page.evaluate(async () => {
        const open = (name) =>
          framebatch.open({ engine: "cpu", wasm: `/pkg/wasm/${name}` }).then(
            () => "open",
            (error) => error.code,
          );
        // What cannot run here fails, and the next session may give another.
        const first = await open("framebatch_bg.wasm");
        return [first, await open("framebatch_bg_scalar.wasm")];
      });
      assert.deepEqual(outcome, ["unsupported", "open"]);
    }),
);
