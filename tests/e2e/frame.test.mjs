// A frame's calls in one batch: the counts, and that every call gets its own answer.

import assert from "node:assert/strict";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

// Enough for f32 on inputs in [-1, 1]: a difference, a product and a sum.
const LERP_BOUND = 3e-7;
// The bound that the kernels of unit quaternions state.
const SLERP_BOUND = 5e-7;

for (const longest of [200, 5000]) {
  test(`1,000 lerp calls of up to ${longest} floats are one submission`, () =>
    site.page(async (page) => {
      const frames = await page.evaluate(async (longest) => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const inputs = workload.lerps(1000, longest);
        const frames = [];
        for (let frame = 0; frame < 3; frame++) {
          const before = gpu.stats();
          const { value, counts } = await counting.during(() =>
            workload.lerpFrame(gpu, inputs),
          );
          const { batches, subBatches } = gpu.stats();
          frames.push({
            error: value,
            counts,
            lasting: counting.lasting(counts),
            batches: batches - before.batches,
            chunks: subBatches - before.subBatches,
          });
        }
        await gpu.dispose();
        return frames;
      }, longest);

      for (const { error, counts, batches, chunks } of frames) {
        assert.ok(error <= LERP_BOUND, `largest error ${error}`);
        assert.equal(batches, 1);
        // A large batch may go in chunks, each its own submission and map.
        const sent = longest === 200 ? 1 : chunks;
        assert.equal(counts.submits, sent);
        assert.equal(counts.readMaps, sent);
        assert.ok(counts.dispatches <= 2 * sent, `${counts.dispatches}`);
      }
      // How many buffers of chunks are mapped again by then is a matter of time.
      const late = longest === 200 ? 0 : 2;
      for (const { lasting } of frames.slice(1)) {
        const { createBuffer = 0, ...others } = lasting;
        assert.deepEqual(others, {});
        assert.ok(createBuffer <= late, `${createBuffer} buffers`);
      }
    }));
}

test("new lengths and scalars make nothing once a larger batch has run", () =>
  site.page(async (page) => {
    const { error, made } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      await workload.lerpFrame(gpu, workload.lerps(1000, 200));
      let error = 0;
      const { counts } = await counting.during(async () => {
        for (const longest of [1, 3, 17, 64, 199]) {
          const inputs = workload.lerps(300 + longest, longest);
          error = Math.max(error, await workload.lerpFrame(gpu, inputs));
        }
      });
      await gpu.dispose();
      return { error, made: counting.lasting(counts) };
    });
    assert.ok(error <= LERP_BOUND, `largest error ${error}`);
    assert.deepEqual(made, {});
  }));

test("every call gives what the oracle gives, all of them in one batch", () =>
  site.page(async (page) => {
    const { errors, counts } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const { floats, bytes, quaternions } = workload;
      const t = (items) => floats(items, 9).map(Math.abs);
      const four = (kind, size) => [3, 4, 5, 6].map((seed) => kind(size, seed));
      const cases = {
        lerp: (a, b, t) => [
          gpu.lerp(a(floats, 75), b(floats, 75), t(75)),
          oracle.lerp(a(floats, 75), b(floats, 75), t(75)),
        ],
        lerpWide: (a, b, t) => [
          gpu.lerp(a(floats, 75), b(floats, 75), t(25), { width: 3 }),
          oracle.lerp(a(floats, 75), b(floats, 75), t(25), 3),
        ],
        slerp: (a, b, t) => [
          gpu.slerp(a(quaternions, 31), b(quaternions, 31), t(31)),
          oracle.slerp(a(quaternions, 31), b(quaternions, 31), t(31)),
        ],
        slerpScalar: (a, b) => [
          gpu.slerp(a(quaternions, 33), b(quaternions, 33), 0.3),
          oracle.slerp(a(quaternions, 33), b(quaternions, 33), 0.3),
        ],
        nlerp: (a, b, t) => [
          gpu.nlerp(a(quaternions, 31), b(quaternions, 31), t(31)),
          oracle.nlerp(a(quaternions, 31), b(quaternions, 31), t(31)),
        ],
        gradients: (a) => [
          gpu.states.gradients(a(bytes, 16 * 21)),
          oracle.gradients(a(bytes, 16 * 21)),
        ],
        stateLerp: (a, b, t) => [
          gpu.states.lerp(a(bytes, 16 * 19), b(bytes, 16 * 19), t(19)),
          oracle.stateLerp(a(bytes, 16 * 19), b(bytes, 16 * 19), t(19)),
        ],
        stateSlerp: (a, b) => [
          gpu.states.slerp(a(bytes, 16 * 23), b(bytes, 16 * 23), 0.4375),
          oracle.stateSlerp(a(bytes, 16 * 23), b(bytes, 16 * 23), 0.4375),
        ],
        bezier: (a, b, t) => [
          gpu.bezier(four(floats, 75), t(25), { width: 3 }),
          oracle.bezier(four(floats, 75), t(25), 3),
        ],
        stateBezier: (a, b, t) => [
          gpu.states.bezier(four(bytes, 16 * 37), t(37)),
          oracle.stateBezier(four(bytes, 16 * 37), t(37)),
        ],
        sequence: (a, b) => [
          gpu.states.sequence(a(bytes, 16 * 3), b(bytes, 16 * 3), 7, "slerp"),
          oracle.stateSequence(a(bytes, 48), b(bytes, 48), 7, "slerp"),
        ],
        distance: (a, b) => [
          gpu.states.distance(a(bytes, 16 * 9), b(bytes, 16 * 9)),
          oracle.distance(a(bytes, 16 * 9), b(bytes, 16 * 9)),
        ],
        geodesicDistance: (a, b) => [
          gpu.states.geodesicDistance(a(bytes, 16 * 9), b(bytes, 16 * 9)),
          oracle.geodesicDistance(a(bytes, 16 * 9), b(bytes, 16 * 9)),
        ],
        field: (a) => [
          gpu.states.gradients(a(bytes, 16 * 33), {
            field: "rho * cos(pi * theta / 8) + 2^(rho / 4) * layer^2 / 100",
          }),
          oracle.fieldGradients(
            a(bytes, 16 * 33),
            (rho, theta, layer) =>
              rho * Math.cos((Math.PI * theta) / 8) +
              (2 ** (rho / 4) * layer ** 2) / 100,
          ),
        ],
        descend: (a, b, t) => [
          gpu.states.descend(a(bytes, 16 * 19), t(19)),
          oracle.descend(a(bytes, 16 * 19), t(19)),
        ],
        descendFar: (a) => [
          gpu.states.descend(a(bytes, 16 * 19), 7.25),
          oracle.descend(a(bytes, 16 * 19), 7.25),
        ],
      };
      const errors = {};
      const all = () =>
        Promise.all(
          Object.entries(cases).map(async ([name, make]) => {
            const from = (kind, size) => kind(size, 1);
            const to = (kind, size) => kind(size, 2);
            const [call, expected] = make(from, to, t);
            errors[name] = oracle.error(await call, expected);
          }),
        );
      await all(); // What is compiled first goes as soon as it is.
      const { counts } = await counting.during(all);
      await gpu.dispose();
      return { errors, counts };
    });

    const bounds = {
      lerp: LERP_BOUND,
      lerpWide: LERP_BOUND,
      slerp: SLERP_BOUND,
      slerpScalar: SLERP_BOUND,
      nlerp: SLERP_BOUND,
      gradients: 1e-6,
      stateLerp: 0,
      stateSlerp: 0,
      // Twelve times 2^-24 of the points' weighted magnitudes, which are below 1.
      bezier: 12 * 2 ** -24,
      stateBezier: 0,
      sequence: 0,
      // The sums of 32 magnitudes, each below 4, and of 16 distances, each below 17.
      distance: 128 * 2 ** -19,
      geodesicDistance: 272 * 2 ** -20,
      // 2^-12 of the largest value on the way, which is below 16 but for a layer squared.
      field: 16 * 2 ** -12,
      descend: 0,
      descendFar: 0,
    };
    assert.deepEqual(Object.keys(errors).sort(), Object.keys(bounds).sort());
    for (const [name, bound] of Object.entries(bounds)) {
      assert.ok(
        errors[name] <= bound,
        `${name}: largest error ${errors[name]}`,
      );
    }
    assert.equal(counts.submits, 1);
    assert.equal(counts.readMaps, 1);
  }));

test("a call gives the same bits alone and beside neighbours", () =>
  site.page(async (page) => {
    const differing = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const lerp = (seed, size) =>
        gpu.lerp(
          workload.floats(size, seed),
          workload.floats(size, seed + 50),
          seed / 11,
        );
      const slerp = (seed, items) =>
        gpu.slerp(
          workload.quaternions(items, seed),
          workload.quaternions(items, seed + 50),
          seed / 11,
        );
      const differing = [];
      for (const [name, call] of Object.entries({ lerp, slerp })) {
        const alone = call(3, 37);
        gpu.flush();
        const expected = (await alone).join();
        for (let neighbours = 1; neighbours <= 7; neighbours++) {
          const sizes = [61, 1, 128, 5, 300, 2, 64].slice(0, neighbours);
          const before = sizes.slice(0, neighbours >> 1);
          before.forEach((size, i) => call(i + 4, size));
          const merged = call(3, 37);
          sizes.slice(before.length).forEach((size, i) => call(i + 8, size));
          gpu.flush();
          if ((await merged).join() !== expected) {
            differing.push(`${name} beside ${neighbours}`);
          }
        }
      }
      await gpu.dispose();
      return differing;
    });
    assert.deepEqual(differing, []);
  }));
