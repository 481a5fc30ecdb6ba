// stats() against counts taken in the page, engine cpu, and explain.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

test("stats() agrees with what reached WebGPU", () =>
  site.page(async (page) => {
    const rows = await page.evaluate(async () => {
      const start = counting.count();
      const gpu = await framebatch.open({ engine: "gpu" });
      const shape = ({ stats, counts }) => ({
        submits: [stats.submits, counts.submits],
        nudges: [stats.nudges, counts.nudges],
        readbacks: [stats.readbacks, counts.readMaps],
        dispatches: [stats.dispatches, counts.dispatches],
        buffers: [stats.pool.buffers, counts.liveBuffers],
        pipelines: [
          stats.pipelines.compiled,
          counts.created.createComputePipeline +
            counts.created.createComputePipelineAsync,
        ],
      });
      const rows = {};
      const row = (name) => {
        rows[name] = shape({
          stats: gpu.stats(),
          counts: counting.since(start),
        });
      };
      row("opened");
      await workload.lerpFrame(gpu, workload.lerps(1000, 200));
      row("a frame of lerps");
      await Promise.all([
        gpu.slerp(
          workload.quaternions(9, 1),
          workload.quaternions(9, 2),
          workload.floats(9, 3),
        ),
        gpu.states.gradients(workload.bytes(160, 4)),
        gpu.states.slerp(workload.bytes(160, 5), workload.bytes(160, 6), 0.5),
      ]);
      row("three other calls");
      await workload.lerpFrame(gpu, workload.lerps(300, 20_000));
      row("a frame sent in chunks");
      await gpu.dispose();
      return rows;
    });
    const differing = Object.entries(rows).flatMap(([name, row]) =>
      Object.entries(row)
        .filter(([, [told, counted]]) => told !== counted)
        .map(([field, pair]) => `${name}: ${field} ${pair.join(", counted ")}`),
    );
    assert.deepEqual(differing, []);
  }));

test("stats() accounts for every call and byte", () =>
  site.page(async (page) => {
    const { before, after, bytes } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const inputs = workload.lerps(500, 100);
      const before = gpu.stats();
      await workload.lerpFrame(gpu, inputs);
      const after = gpu.stats();
      await gpu.dispose();
      const floats = inputs.reduce((sum, { a }) => sum + a.length, 0);
      return { before, after, bytes: floats * 4 };
    });
    const change = (field) => after[field] - before[field];
    assert.equal(change("calls"), 500);
    assert.equal(change("settled"), 500);
    assert.equal(change("rejected"), 0);
    assert.equal(change("batches"), 1);
    assert.equal(after.pending, 0);
    assert.equal(after.ranOn.gpu - before.ranOn.gpu, 500);
    assert.equal(after.ranOn.cpu, 0);
    assert.ok(change("bytesUp") >= 2 * bytes, `${change("bytesUp")} up`);
    assert.ok(change("bytesUp") < 3 * bytes, `${change("bytesUp")} up`);
    assert.ok(change("bytesDown") >= bytes, `${change("bytesDown")} down`);
    assert.ok(change("bytesDown") < 2 * bytes, `${change("bytesDown")} down`);
    assert.ok(after.waitMs.p50 <= after.waitMs.p95);
    assert.ok(after.fillRate > 0 && after.fillRate <= 1);
  }));

test("engine cpu: the same answers, and nothing reaches WebGPU", () =>
  site.page(async (page) => {
    const seen = await page.evaluate(async () => {
      const cpu = await framebatch.open({ engine: "cpu" });
      const { value, counts } = await counting.during(async () => {
        const error = await workload.lerpFrame(cpu, workload.lerps(1000, 200));
        const turned = await cpu.slerp(
          workload.quaternions(50, 1),
          workload.quaternions(50, 2),
          0.3,
        );
        const expected = oracle.slerp(
          workload.quaternions(50, 1),
          workload.quaternions(50, 2),
          0.3,
        );
        return Math.max(error, oracle.error(turned, expected));
      });
      const { ranOn, batches } = cpu.stats();
      const { engine } = cpu.info;
      await cpu.dispose();
      return { error: value, counts, ranOn, batches, engine };
    });
    assert.ok(seen.error <= 1e-6, `largest error ${seen.error}`);
    const { created, ...rest } = seen.counts;
    for (const [name, amount] of Object.entries({ ...rest, ...created })) {
      assert.equal(amount, 0, name);
    }
    assert.equal(seen.engine, "cpu");
    assert.deepEqual(seen.ranOn, { gpu: 0, cpu: 1001 });
    assert.equal(seen.batches, 2);
  }));

test("states are equal on both engines, to the bit", () =>
  site.page(async (page) => {
    const equal = await page.evaluate(async () => {
      // Every pair of bytes: wrap-around, half turns and null layers among them.
      const a = Uint8Array.from({ length: 65_536 }, (_, i) => i >> 8);
      const b = Uint8Array.from({ length: 65_536 }, (_, i) => i & 255);
      const run = async (engine) => {
        const gpu = await framebatch.open({ engine });
        const results = await Promise.all([
          gpu.states.gradients(a),
          ...[-1, 0, 0.25, 0.5, 0.9, 1, 2].flatMap((t) => [
            gpu.states.lerp(a, b, t),
            gpu.states.slerp(a, b, t),
          ]),
        ]);
        await gpu.dispose();
        return results;
      };
      const [gpu, cpu] = [await run("gpu"), await run("cpu")];
      return gpu.map((result, i) => result.every((x, k) => x === cpu[i][k]));
    });
    assert.deepEqual(equal, Array(15).fill(true));
  }));

test("explain tells the plan and sends nothing", () =>
  site.page(async (page) => {
    const { text, code, counts } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      let call;
      const { value, counts } = await counting.during(async () =>
        gpu.explain(() => {
          call = gpu.lerp(workload.floats(8, 1), workload.floats(8, 2), 0.5);
        }),
      );
      const { code } = await workload.outcome(call);
      await gpu.dispose();
      return { text: value, code, counts };
    });
    assert.match(text, /dispatch .*lerp/);
    assert.equal(code, "aborted");
    assert.equal(counts.submits, 0);
    assert.equal(counts.dispatches, 0);
  }));
