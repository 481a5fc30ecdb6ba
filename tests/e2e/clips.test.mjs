// Clips in a real page: three.js's interpolants as the judge, what a frame costs, and
// what a renderer finds after `flush`.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

for (const engine of ["gpu", "cpu"]) {
  test(`clips of three.js and of glTF files on the ${engine}: its interpolants agree`, () =>
    site.page(async (page) => {
      const worst = await page.evaluate(async (engine) => {
        const { fromThree, gltfClips, random, threeClip, worst } =
          await import("/clips.js");
        const gpu = await framebatch.open({ engine });
        const draw = random(7);
        const clips = Array.from({ length: 2500 }, () => threeClip(draw, 4));
        clips.push(...(await gltfClips(draw, 200)));
        const found = clips.map(async (clip) => {
          const times = Float32Array.from({ length: 5 }, (_, i) =>
            i === 0 ? -1 : i === 1 ? clip.duration : draw() * clip.duration,
          );
          const rows = await gpu.clip(fromThree(clip)).sample(times);
          return worst(clip, times, rows);
        });
        return Math.max(...(await Promise.all(found)));
      }, engine);
      assert.ok(worst <= 1e-5, `off by ${worst}`);
      assert.ok(worst > 0, "somebody computes in 64 bits");
    }));
}

test("1,000 components with a clip each are one submission, one read-back, one dispatch", () =>
  site.page(async (page) => {
    const frames = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const component = (i) => {
        const isTurn = i % 2 === 0;
        const values = isTurn
          ? [0, 0, 0, 1, 0, 1, 0, 0]
          : [i, i, i, i + 1, i + 1, i + 1];
        const kind = isTurn ? "quaternion" : "vector";
        const clip = gpu.clip({ tracks: [{ times: [0, 1], values, kind }] });
        return async (t) => {
          const row = await clip.sample(t, { wrap: "loop" });
          const half = Math.PI / 2;
          const want = isTurn
            ? [0, Math.sin(half * t), 0, Math.cos(half * t)]
            : [i + t, i + t, i + t];
          return Math.max(...want.map((x, k) => Math.abs(x - row[k])));
        };
      };
      const components = Array.from({ length: 1000 }, (_, i) => component(i));
      const frames = [];
      for (const t of [0.25, 0.5, 0.75]) {
        const { value, counts } = await counting.during(() =>
          Promise.all(components.map((sample) => sample(t))),
        );
        const made = counting.lasting(counts);
        frames.push({ error: Math.max(...value), counts, made });
      }
      return frames;
    });
    for (const { error, counts } of frames) {
      assert.ok(error <= 1e-4, `off by ${error}`); // Values of 1,000.
      const { submits, readMaps, dispatches } = counts;
      assert.deepEqual([submits, readMaps, dispatches], [1, 1, 1]);
    }
    assert.deepEqual(frames[2].made, {});
  }));

test("20,000 instances in a renderer's buffer: no read-back, values of this frame", () =>
  site.page(async (page) => {
    const { worst, counts, resolved, made } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      await gpu.ready;
      const clip = gpu.clip({
        tracks: [
          { times: [0, 2], values: [0, 0, 0, 4, 8, 16] },
          { times: [0, 2], values: [1, 3] },
        ],
      });
      const instances = 20_000;
      const pose = gpu.tensor(new Float32Array(4 * instances));
      const times = (now) =>
        Float32Array.from({ length: instances }, (_, i) => now + i / 16_384);
      const mine = gpu.device.createBuffer({
        size: 16 * instances,
        usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
      });
      let worst = 0;
      const frame = async (now) => {
        const given = times(now);
        const { value, counts } = await counting.during(async () => {
          const stored = clip.sampleTo(pose, given, { wrap: "ping-pong" });
          gpu.flush();
          return stored;
        });
        // The page submits as a renderer does, and finds the values.
        const encoder = gpu.device.createCommandEncoder();
        const { buffer, offset, size } = pose.gpuBuffer();
        encoder.copyBufferToBuffer(buffer, offset, mine, 0, size);
        gpu.device.queue.submit([encoder.finish()]);
        await mine.mapAsync(GPUMapMode.READ);
        const rows = new Float32Array(mine.getMappedRange());
        given.forEach((t, i) => {
          const rest = t % 4;
          const at = (rest > 2 ? 4 - rest : rest) / 2;
          [4 * at, 8 * at, 16 * at, 1 + 2 * at].forEach((want, k) => {
            worst = Math.max(worst, Math.abs(rows[4 * i + k] - want));
          });
        });
        mine.unmap();
        return { counts, made: counting.lasting(counts), value };
      };
      await frame(0.5);
      await frame(1.25);
      const last = await frame(7.75);
      return { worst, ...last, resolved: last.value };
    });
    assert.ok(worst <= 2e-5, `off by ${worst}`); // Values of 16.
    const { submits, readMaps, dispatches } = counts;
    assert.deepEqual([submits, readMaps, dispatches], [1, 0, 1]);
    assert.deepEqual(made, {});
    assert.equal(resolved, undefined);
  }));

test("flush submits beside three batches on their way, and a renderer finds this frame", () =>
  site.page(async (page) => {
    const seen = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const clip = gpu.clip({
        tracks: [{ times: [0, 1], values: [0, 0, 0, 0, 1, 2, 3, 4] }],
      });
      const pose = gpu.tensor(new Float32Array(4));
      const answer = (value, options) =>
        gpu.lerp(
          new Float32Array([value]),
          new Float32Array([value + 2]),
          0.5,
          options,
        );
      const mine = gpu.device.createBuffer({
        size: 16,
        usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
      });
      // Kernels are compiled.
      const first = [clip.sampleTo(pose, 0.25), answer(0)];
      gpu.flush();
      await Promise.all(first);
      // What was only submitted is done before this is.
      await answer(0, { flush: "now" });

      const before = counting.count();
      const submits = () => counting.since(before).submits;
      const now = { flush: "now" };
      const calls = [answer(1, now), answer(2, now), answer(3, now)];
      const counts = [submits()];
      calls.push(answer(4, now)); // A call's own flush waits for one of them.
      counts.push(submits());
      calls.push(clip.sampleTo(pose, 0.75));
      gpu.flush();
      counts.push(submits());
      const encoder = gpu.device.createCommandEncoder();
      const { buffer, offset, size } = pose.gpuBuffer();
      encoder.copyBufferToBuffer(buffer, offset, mine, 0, size);
      gpu.device.queue.submit([encoder.finish()]);
      await mine.mapAsync(GPUMapMode.READ);
      const drawn = [...new Float32Array(mine.getMappedRange())];
      calls.pop(); // What is stored resolves to nothing.
      const answers = (await Promise.all(calls)).map(([first]) => first);
      return { counts, drawn, answers };
    });
    assert.deepEqual(seen.counts, [3, 3, 4]);
    assert.deepEqual(seen.drawn, [0.75, 1.5, 2.25, 3]);
    assert.deepEqual(seen.answers, [2, 3, 4, 5]);
  }));

test("blending, and wrap modes of each instance", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = framebatch.shared({ engine: "gpu" });
      // Before the session is open.
      const ramp = (from, to) =>
        gpu.clip({ tracks: [{ times: [0, 1], values: [from, to] }] });
      const [up, down] = [ramp(0, 8), ramp(8, 0)];
      const times = new Float32Array([0.25, 1.25, 2.25]);
      const each = up.sample(times, { wrap: ["clamp", "loop", "ping-pong"] });
      times.fill(0); // The caller's again.
      const t = new Float32Array([0.25, 0.75]);
      const blended = gpu.blend([
        { clip: up, times: t, weight: 3 },
        { clip: down, times: t, weight: new Float32Array([1, 0]) },
        { clip: up, times: t, weight: 0.5, additive: true },
      ]);
      const turn = (axis, angle) => {
        const [s, c] = [Math.sin(angle / 2), Math.cos(angle / 2)];
        const q = [0, 0, 0, c];
        q[axis] = s;
        const track = { times: [0], values: q, kind: "quaternion" };
        return gpu.clip({ tracks: [track] });
      };
      const added = gpu.blend([
        { clip: turn(0, Math.PI / 2), times: 0 },
        { clip: turn(1, Math.PI), times: 0, additive: true },
      ]);
      const late = ramp(0, 1).sample(86_400.25, { wrap: "loop" });
      const all = await Promise.all([each, blended, added, late]);
      return all.map((rows) => [...rows]);
    });
    const half = Math.SQRT1_2;
    const wanted = [
      [2, 2, 2],
      [(3 * 2 + 6) / 4 + 1, 6 + 3],
      [0, half, half, 0],
      [0.25],
    ];
    found.forEach((row, i) => {
      const want = wanted[i];
      assert.equal(row.length, want.length);
      row.forEach((x, k) => {
        assert.ok(Math.abs(x - want[k]) < 1e-5, `${i}: ${row}, want ${want}`);
      });
    });
  }));

test("easings are those of the browser's own animations", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const easings = [
        ...["linear", "ease", "ease-in", "ease-out", "ease-in-out"],
        ...["step-start", "step-end", "steps(3)", "steps(4, start)"],
        ...["steps(4, jump-none)", "steps(5, jump-both)"],
        ...["cubic-bezier(0.2, -1, 0.9, 2)", "cubic-bezier(0.9,.1,.1,.9)"],
      ];
      const places = Array.from({ length: 90 }, (_, i) => (i + 0.37) / 90);
      const element = document.querySelector("button");
      return Promise.all(
        easings.map(async (easing) => {
          const animation = element.animate([], { duration: 1000, easing });
          animation.pause();
          const want = places.map((u) => {
            animation.currentTime = 1000 * u;
            return animation.effect.getComputedTiming().progress;
          });
          const track = { times: [2, 4], values: [0, 1], easing };
          const clip = gpu.clip({ tracks: [track] });
          const times = Float32Array.from(places, (u) => 2 + 2 * u);
          const rows = await clip.sample(times);
          const apart = want.map((x, i) => Math.abs(x - rows[i]));
          return { easing, apart: Math.max(...apart) };
        }),
      );
    });
    for (const { easing, apart } of found) {
      // Browsers solve curves to about 1e-6 of their parameter.
      assert.ok(apart < 2e-5, `${easing} is off by ${apart}`);
    }
  }));

test("clips and what they wrote are there after a loss, and gone after dispose", () =>
  site.page(async (page) => {
    const { rows, codes } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const clip = gpu.clip({ tracks: [{ times: [0, 1], values: [0, 8] }] });
      const pose = gpu.tensor(new Float32Array(4));
      const rows = [[...(await clip.sample(0.5))]];
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      gpu.device.destroy();
      const pending = clip.sample(0.25);
      await restored;
      rows.push([...(await pending)]);
      clip.sampleTo(pose, new Float32Array([0.5, 1]), { offset: 1 });
      rows.push([...(await pose.add(1).read())]);
      const other = gpu.clip({ tracks: [{ times: [0], values: [5] }] });
      const kept = clip.sample(1);
      clip.dispose();
      // A clip in the place of the old one, if that were free.
      const next = gpu.clip({ tracks: [{ times: [0], values: [7] }] });
      for (const row of await Promise.all([
        kept,
        next.sample(0),
        other.sample(0),
      ]))
        rows.push([...row]);
      const codeOf = (promise) => promise.catch(({ code }) => code);
      const codes = [await codeOf(clip.sample(0))];
      const late = other.sample(0);
      await gpu.dispose();
      codes.push(await codeOf(late), await codeOf(other.sample(0)));
      return { rows, codes };
    });
    assert.deepEqual(rows, [[4], [2], [1, 5, 9, 1], [8], [7], [5]]);
    assert.deepEqual(codes, ["disposed", "disposed", "disposed"]);
  }));
