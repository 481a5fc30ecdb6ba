// TypeGPU: a call at a time, each its own upload, dispatch, submission and read-back.
//
// The pipeline, the bind group and the buffers are made once, and a staging buffer serves
// again when its call is answered. `TgpuBuffer.read()` would make a staging buffer for each
// call, submit once more, and parse the result number by number, which takes longer.

import { type Call, heldOf, type Op } from "../ops/op.ts";
import { openDevice, type System } from "../systems/system.ts";
import { groups, resultFloats } from "../systems/wgsl.ts";

type Library = typeof import("typegpu");

const GROUP = 64;

export const typeGpu: System = {
  name: "typegpu",
  about: "TypeGPU 0.12.5, one call at a time",
  bound: "builtin",
  async open(op, [first]) {
    const device = await openDevice();
    const library = await import("typegpu");
    const { answer, hold } = await answerer(library, device, op, first);
    return {
      run(calls) {
        hold(calls[0]);
        return Promise.all(calls.map(answer));
      },
      close: () => device.destroy(),
    };
  },
};

/** What answers calls that are as long as the first one. */
async function answerer(
  { tgpu, d }: Library,
  device: GPUDevice,
  op: Op,
  first: Call,
) {
  const { kernel } = op;
  const floats = resultFloats(kernel, first.operands);
  const vectors = (bytes: number) => d.arrayOf(d.vec4f, bytes / 16);
  const readonly = { storage: (count: number) => d.arrayOf(d.vec4f, count) };
  const layout = tgpu.bindGroupLayout({
    in0: readonly,
    in1: readonly,
    t: { uniform: d.f32 },
    output: { ...readonly, access: "mutable" },
  });
  const bound = (code: string) =>
    code.replace(/\bin(?=[01]\b)/g, "layout.$.in");
  const compute = tgpu
    .fn(
      [d.u32, d.f32],
      d.vec4f,
    )(bound(kernel.code).replace(/^\s*fn compute/, ""))
    .$uses({ layout });
  const main = tgpu
    .computeFn({
      in: { id: d.builtin.globalInvocationId },
      workgroupSize: [GROUP],
    })(
      /* wgsl */ `{
        if (in.id.x < arrayLength(&layout.$.output)) {
          layout.$.output[in.id.x] = compute(in.id.x, layout.$.t);
        }
      }`,
    )
    .$uses({ layout, compute });

  const root = tgpu.initFromDevice({ device });
  const inputs = first.operands.map(({ byteLength }) =>
    root.createBuffer(vectors(byteLength)).$usage("storage"),
  );
  const t = root.createBuffer(d.f32).$usage("uniform");
  const output = root.createBuffer(vectors(floats * 4)).$usage("storage");
  const pipeline = root.createComputePipeline({ compute: main }).with(
    root.createBindGroup(layout, {
      in0: inputs[0],
      in1: inputs[1],
      t,
      output,
    }),
  );
  await pipeline.initAsync();

  const own = first.operands.length - (op.held?.operands ?? 0);
  const newStaging = () =>
    root.createBuffer(vectors(floats * 4)).$addFlags(GPUBufferUsage.MAP_READ);
  const free: ReturnType<typeof newStaging>[] = [];
  const [workgroups] = groups(kernel, floats);

  return {
    /** Writes what all calls of a run share. */
    hold(call: Call): void {
      heldOf(op, call).forEach(({ data }, k) =>
        inputs[own + k].write(data.buffer),
      );
    },

    async answer({ operands, t: fraction }: Call): Promise<Float32Array> {
      for (let k = 0; k < own; k++) inputs[k].write(operands[k].buffer);
      if (kernel.timed) t.write(fraction);
      const staging = free.pop() ?? newStaging();
      const encoder = root["~unstable"].createCommandEncoder();
      pipeline.with(encoder).dispatchWorkgroups(workgroups);
      staging.copyFrom(output, encoder);
      encoder.submit();
      const raw = root.unwrap(staging);
      await raw.mapAsync(GPUMapMode.READ);
      const answer = new Float32Array(raw.getMappedRange().slice(0));
      raw.unmap();
      free.push(staging);
      return answer;
    },
  };
}
