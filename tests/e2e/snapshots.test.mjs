// Tensors that come back from snapshots, and tensors in buffers of their own, in real browsers
// whose device is destroyed.

import assert from "node:assert/strict";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

/** In the page: what all tests use. */
const tools = () => {
  /** Settles what is asked for, and sends whatever that takes. */
  window.settle = async (gpu, asked) => {
    let isOver = false;
    const over = Promise.all(asked).finally(() => (isOver = true));
    while (!isOver) {
      gpu.flush();
      await new Promise((run) => setTimeout(run, 2));
    }
    return over;
  };
  /** Destroys the device, and resolves to what `restored` or `fallback` tells of tensors. */
  window.lose = (gpu) =>
    new Promise((resolve) => {
      const offs = ["restored", "fallback"].map((event) =>
        gpu.on(event, ({ lostTensors, revertedTensors }) => {
          for (const off of offs) off();
          resolve({
            lost: lostTensors.map(({ label }) => label),
            reverted: revertedTensors.map(({ label, elements, writes }) => [
              label,
              elements,
              writes,
            ]),
          });
        }),
      );
      gpu.device.destroy();
    });
};

const onPage = (use) => site.page(use, { prepare: tools });

test("after a destroyed device tensors hold their last snapshot, and what waits goes on from it", () =>
  onPage(async (page) => {
    const { told, values, codes } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const make = (length, options) =>
        gpu.tensor(new Float32Array(length), [length], options);
      const small = make(100, { snapshotEvery: 5, label: "small" });
      const large = make(40_000, { snapshotEvery: 5, label: "large" });
      const young = make(7, { snapshotEvery: 50, label: "young" });
      const plain = make(100, { label: "plain" });
      const pose = make(2, { snapshotEvery: 1, label: "pose" });
      const clip = gpu.clip({ tracks: [{ times: [0, 9], values: [0, 9] }] });
      const stepped = [small, large, young, plain];
      const step = () => stepped.map((s) => s.add(1).computeInto(s));
      for (let i = 0; i < 13; i += 1) await settle(gpu, step());
      const [once] = await settle(gpu, [
        small
          .scale(2)
          .compute({ keep: false, snapshotEvery: 1, label: "once" }),
        clip.sampleTo(pose, new Float32Array([3, 4])),
      ]);
      const [from] = await settle(gpu, [
        small.neg().compute({ label: "from" }),
      ]);
      // Behind all snapshots.
      await settle(gpu, [small.read({ priority: "low" })]);
      await settle(gpu, [pose.read({ priority: "low" })]);
      const lost = new Promise((resolve) => gpu.on("lost", resolve));
      const hearing = lose(gpu);
      await lost;
      const waiting = small.add(0.5).computeInto(small);
      const told = await hearing;
      await settle(gpu, [waiting]);
      const tensors = [small, large, young, once, pose];
      const values = await settle(
        gpu,
        tensors.map((tensor) => tensor.read()),
      );
      const codes = await settle(
        gpu,
        [plain, from].map((gone) => gone.read().catch(({ code }) => code)),
      );
      const ends = values.map((of) => [of.length, of[0], of.at(-1)]);
      return { told, values: ends, codes };
    });
    assert.deepEqual(told.lost.sort(), ["from", "plain"]);
    assert.deepEqual(told.reverted.sort(), [
      ["large", 40_000, 3],
      ["once", 100, 0],
      ["pose", 2, 0],
      ["small", 100, 3],
      ["young", 7, 13],
    ]);
    assert.deepEqual(values, [
      [100, 10.5, 10.5],
      [40_000, 10, 10],
      [7, 0, 0],
      [100, 26, 26],
      [2, 3, 4],
    ]);
    assert.deepEqual(codes, ["device-lost", "device-lost"]);
  }));

const LOSSES = times(6, 40);

test(`${LOSSES} losses under steps: a tensor holds the acknowledged ones but those told as gone`, (t) =>
  onPage(async (page) => {
    const report = await page.evaluate(async (losses) => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const options = { snapshotEvery: 4, label: "state" };
      const state = gpu.tensor(new Float32Array(2000), [2000], options);
      const report = { wrong: [], codes: [], gone: [], steps: 0 };
      let steps = 0;
      const step = () =>
        state
          .add(1)
          .computeInto(state)
          .then(
            () => (steps += 1),
            ({ code }) => report.codes.push(code),
          );
      const back = ({ revertedTensors }) => {
        for (const { writes } of revertedTensors) {
          report.gone.push(writes);
          steps -= writes;
        }
      };
      for (const event of ["restored", "fallback"]) gpu.on(event, back);
      await step();
      for (let loss = 0; loss < losses; loss += 1) {
        let isOver = false;
        const told = (async () => {
          await new Promise((run) => setTimeout(run, 60 + 17 * loss));
          await lose(gpu);
          isOver = true;
        })();
        while (!isOver) {
          // Some are awaited, and some go together.
          await Promise.all([step(), step(), step()].slice(loss % 3));
          report.steps += 1;
        }
        await told;
        await step();
        const values = await state.read();
        const at = values.findIndex((value) => value !== steps);
        if (at >= 0) report.wrong.push([loss, at, values[at], steps]);
      }
      return report;
    }, LOSSES);
    t.diagnostic(`${report.steps} rounds, gone: ${report.gone}`);
    assert.deepEqual(report.wrong, []);
    assert.equal(report.gone.length, LOSSES);
    for (const code of report.codes) assert.equal(code, "device-lost");
  }));

test("a buffer of its own is shared with no other tensor, for its whole life", () =>
  onPage(async (page) => {
    const { rounds, values, told } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const own = { ownBuffer: true, snapshotEvery: 1 };
      const data = [1, 2, 3, 4];
      const a = gpu.tensor(data, [4], { ...own, label: "a" });
      const b = gpu.tensor(data, [4]);
      const c = gpu.tensor(data, [4]);
      const [d] = await settle(gpu, [b.scale(2).compute({ ownBuffer: true })]);
      const look = () => {
        const places = [a, b, c, d].map((tensor) => tensor.gpuBuffer());
        const buffers = places.map(({ buffer }) => buffer);
        return {
          shared: buffers.map(
            (buffer) => buffers.filter((other) => other === buffer).length,
          ),
          offsets: places.map(({ offset }) => offset),
          sizes: places.map(({ size }) => size),
          isStable: [a, b, c, d].every(
            (tensor, i) => tensor.gpuBuffer().buffer === buffers[i],
          ),
        };
      };
      const rounds = [look()];
      await settle(gpu, [a.add(d).computeInto(a), a.write([9], 3)]);
      await settle(gpu, [a.read({ priority: "low" })]);
      rounds.push(look());
      const told = await lose(gpu);
      rounds.push(look());
      const values = await settle(gpu, [a.read(), a.sub(d).sum().read()]);
      return { rounds, told, values: values.map((of) => [...of]) };
    });
    for (const { shared, offsets, sizes, isStable } of rounds) {
      assert.deepEqual(shared, [1, 2, 2, 1]);
      assert.deepEqual([offsets[0], offsets[3]], [0, 0]);
      assert.notEqual(offsets[1], offsets[2]);
      assert.deepEqual(sizes, [16, 16, 16, 16]);
      assert.ok(isStable);
    }
    assert.deepEqual(told, { lost: [], reverted: [["a", 4, 0]] });
    assert.deepEqual(values, [[3, 6, 9, 9], [3 + 6 + 9 + 9 - 20]]);
  }));
