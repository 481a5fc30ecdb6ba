// The swarm by TensorFlow.js on its WebGPU backend: tensors that stay on the GPU, a new one for
// each step.

import type { Tensor1D } from "@tensorflow/tfjs-core";
import { startTfjs } from "../bench/systems/tfjs.ts";
import { DRAG, FIELDS, SOFT, STEP, type Swarm, type Well } from "./swarm.ts";
import type { Place, Places, Way } from "./ways.ts";

export async function openByTensorFlow(swarm: Swarm): Promise<Way> {
  const { tf, device } = await startTfjs(false);
  const fields = {} as Record<keyof Swarm, Tensor1D>;
  for (const field of FIELDS) fields[field] = tf.tensor1d(swarm[field]);
  const lent: { dispose(): void }[] = [];
  const replace = (field: keyof Swarm, make: () => Tensor1D) => {
    const before = fields[field];
    fields[field] = tf.tidy(make);
    before.dispose();
  };
  const pull = (axis: "x" | "y", wells: readonly Well[]) => {
    const pulls = wells.map((well) => {
      const [dx, dy] = [tf.sub(well.x, fields.x), tf.sub(well.y, fields.y)];
      const square = dx.square().add(dy.square()).add(SOFT);
      const along = axis === "x" ? dx : dy;
      return along.mul(well.strength).div(square.mul(square.sqrt()));
    });
    return pulls.reduce((sum, own) => sum.add(own));
  };
  return {
    device,
    step(wells) {
      // Both pulls are of the places before this step.
      for (const axis of ["x", "y"] as const) {
        const speed = axis === "x" ? "vx" : "vy";
        replace(speed, () =>
          fields[speed].mul(DRAG).add(pull(axis, wells).mul(STEP)),
        );
      }
      replace("x", () => fields.x.add(fields.vx.mul(STEP)));
      replace("y", () => fields.y.add(fields.vy.mul(STEP)));
    },
    places() {
      const places = {} as Record<keyof Swarm, Place>;
      for (const field of FIELDS) {
        const { buffer, tensorRef } = fields[field].dataToGPU();
        lent.push(tensorRef);
        const size = swarm[field].byteLength;
        places[field] = { buffer: buffer!, offset: 0, size };
      }
      return Promise.resolve(places as Places);
    },
    read: (field) => fields[field].data<"float32">(),
    drawn() {
      for (const tensor of lent.splice(0)) tensor.dispose();
    },
  };
}
