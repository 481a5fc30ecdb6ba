// WebGPU by hand for one scene and nothing else: everybody in one dispatch, or each
// group with a submission of its own. Tracks and pipelines are made once.

import { openDevice } from "../systems/system.ts";
import { drawnOf, joined, type Posing } from "./posing.ts";
import {
  DURATION,
  groupsOf,
  KEYS,
  phaseOf,
  putTimes,
  rowOf,
  type Scene,
  widthOf,
} from "./scene.ts";

/** One dispatch of all, and one read-back where rows are wanted. */
export async function oneBatch(scene: Scene): Promise<Posing> {
  const { instances, kinds, together } = scene;
  const time = `times[instance / ${together}u]`;
  const bench = await openBench(scene, time, "storage, read");
  const { device, drawn, rows, make, draw } = bench;
  const times = new Float32Array(groupsOf(scene));
  const { COPY_DST, MAP_READ, STORAGE } = GPUBufferUsage;
  const given = make(times.byteLength, STORAGE | COPY_DST);
  const staging = drawn ? undefined : make(rows.size, COPY_DST | MAP_READ);
  const group = bench.group(given);
  const groups = Math.ceil((instances * kinds.length) / 64);
  let own: Float32Array[] = [];
  return {
    async pose(now) {
      putTimes(times, now);
      device.queue.writeBuffer(given, 0, times);
      draw(group, groups, staging);
      if (staging === undefined) return device.queue.onSubmittedWorkDone();
      await staging.mapAsync(GPUMapMode.READ);
      const all = new Float32Array(staging.getMappedRange());
      const width = rowOf(scene) * together;
      own = times_(times.length, (i) => all.slice(i * width, (i + 1) * width));
      staging.unmap();
    },
    rows: async () => (drawn ? drawn.rows() : joined(own)),
    close: () => device.destroy(),
  };
}

/** A submission and a read-back for each instance, as an API of single calls does it. */
export async function perCall(scene: Scene): Promise<Posing> {
  const bench = await openBench(scene, "times.x", "uniform", "times.y");
  const { device, drawn, make, draw } = bench;
  const { kinds, together } = scene;
  const calls = groupsOf(scene);
  const width = rowOf(scene) * together;
  const { COPY_DST, MAP_READ, UNIFORM } = GPUBufferUsage;
  // The queue keeps calls apart, so one will do; what is mapped must be a call's own.
  const params = make(16, UNIFORM | COPY_DST);
  const group = bench.group(params);
  const stagings = times_(drawn ? 0 : calls, () =>
    make(width * 4, COPY_DST | MAP_READ),
  );
  const given = new Float32Array(4);
  const call = async (i: number, now: number): Promise<Float32Array> => {
    given[0] = now + phaseOf(i);
    given[1] = i * together;
    device.queue.writeBuffer(params, 0, given);
    const staging = stagings[i];
    const groups = Math.ceil((together * kinds.length) / 64);
    draw(group, groups, staging, i * width * 4);
    if (staging === undefined) return given;
    await staging.mapAsync(GPUMapMode.READ);
    const row = new Float32Array(staging.getMappedRange().slice(0));
    staging.unmap();
    return row;
  };
  let own: Float32Array[] = [];
  return {
    async pose(now) {
      own = await Promise.all(times_(calls, (i) => call(i, now)));
      if (drawn) await device.queue.onSubmittedWorkDone();
    },
    rows: async () => (drawn ? drawn.rows() : joined(own)),
    close: () => device.destroy(),
  };
}

const times_ = <Of>(length: number, of: (i: number) => Of) =>
  Array.from({ length }, (_, i) => of(i));

async function openBench(
  scene: Scene,
  time: string,
  space: string,
  first = "0.0",
) {
  const drawn = await drawnOf(scene);
  const device = drawn?.device ?? (await openDevice());
  const { STORAGE, COPY_DST, COPY_SRC } = GPUBufferUsage;
  const make = (size: number, usage: number) =>
    device.createBuffer({ size, usage });
  const size = scene.instances * rowOf(scene) * 4;
  const rows = drawn?.buffer ?? make(size, STORAGE | COPY_SRC);
  const [keys, values] = packed(scene).map((data) => {
    const buffer = make(data.byteLength, STORAGE | COPY_DST);
    device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  });
  const code = shader(scene, { time, space, first });
  const pipeline = await device.createComputePipelineAsync({
    layout: "auto",
    compute: { module: device.createShaderModule({ code }) },
  });
  return {
    ...{ device, drawn, rows, make },
    group: (times: GPUBuffer) =>
      device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [times, keys, values, rows].map((buffer, binding) => ({
          binding,
          resource: { buffer },
        })),
      }),
    /** Submits a dispatch, and a copy of what it made. */
    draw(group: GPUBindGroup, groups: number, to?: GPUBuffer, from = 0) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(groups);
      pass.end();
      if (to) encoder.copyBufferToBuffer(rows, from, to, 0, to.size);
      device.queue.submit([encoder.finish()]);
    },
  };
}

/** All keys, and all values as vectors of four. */
function packed({ tracks }: Scene): Float32Array<ArrayBuffer>[] {
  const keys = new Float32Array(tracks.length * KEYS);
  const values = new Float32Array(tracks.length * KEYS * 4);
  tracks.forEach(({ kind, times, values: own }, track) => {
    keys.set(times, track * KEYS);
    const width = widthOf(kind);
    for (let key = 0; key < KEYS; key++) {
      const value = own.subarray(key * width, (key + 1) * width);
      values.set(value, (track * KEYS + key) * 4);
    }
  });
  return [keys, values];
}

interface Given {
  readonly time: string;
  readonly space: string;
  /** The instance of the first thread. */
  readonly first: string;
}

/** A thread for each track of each instance. */
function shader(scene: Scene, { time, space, first }: Given): string {
  const { kinds, isOwn, together } = scene;
  const width = rowOf(scene);
  const starts = kinds.map((_, k) =>
    kinds.slice(0, k).reduce((sum, kind) => sum + widthOf(kind), 0),
  );
  const own = (space === "uniform" ? together : scene.instances) * kinds.length;
  const list = (numbers: readonly number[]) =>
    `array<u32, ${numbers.length}>(${numbers.map((n) => `${n}u`).join()})`;
  return /* wgsl */ `
    const TRACKS = ${kinds.length}u;
    const KEYS = ${KEYS}u;
    @group(0) @binding(0) var<${space}> times: ${space === "uniform" ? "vec4f" : "array<f32>"};
    @group(0) @binding(1) var<storage, read> keys: array<f32>;
    @group(0) @binding(2) var<storage, read> values: array<vec4f>;
    @group(0) @binding(3) var<storage, read_write> rows: array<f32>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      let i = id.x + u32(${first}) * TRACKS;
      if (id.x >= ${own}u) { return; }
      let instance = i / TRACKS;
      let place = i % TRACKS;
      var starts = ${list(starts)};
      var widths = ${list(kinds.map(widthOf))};
      let track = ${isOwn ? "i" : "place"};
      let now = ${time};
      let time = now - ${DURATION}.0 * floor(now / ${DURATION}.0);
      var low = track * KEYS;
      var high = low + KEYS - 1u;
      while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (keys[middle] <= time) { low = middle; } else { high = middle; }
      }
      let t = (time - keys[low]) / (keys[high] - keys[low]);
      let a = values[low];
      let b = values[high];
      var weights = vec2f(1.0 - t, t);
      if (widths[place] == 4u) {
        let cosine = dot(a, b);
        let angle = acos(min(abs(cosine), 1.0));
        let sine = sin(angle);
        if (sine > 1e-4) { weights = sin(weights * angle) / sine; }
        weights.y = select(weights.y, -weights.y, cosine < 0.0);
      }
      let value = a * weights.x + b * weights.y;
      let at = instance * ${width}u + starts[place];
      rows[at] = value.x;
      rows[at + 1u] = value.y;
      rows[at + 2u] = value.z;
      if (widths[place] == 4u) { rows[at + 3u] = value.w; }
    }`;
}
