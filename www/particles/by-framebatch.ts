// The swarm by framebatch: four tensors that stay on the GPU, each stepped in place.

import { open, type Tensor } from "framebatch";
import { DRAG, FIELDS, SOFT, STEP, type Swarm, type Well } from "./swarm.ts";
import type { Places, Way } from "./ways.ts";

export async function openByFramebatch(swarm: Swarm): Promise<Way> {
  const gpu = await open({ engine: "gpu" });
  const [vx, vy, x, y] = FIELDS.map((field) => gpu.tensor(swarm[field]));
  const tensors = { x, y, vx, vy };
  const device = gpu.device;
  if (device === undefined) throw new Error("the session has no GPU");
  let last: Promise<unknown> = Promise.resolve();
  return {
    device,
    step(wells) {
      const pull = pullOf(x, y, wells);
      // In the order of the calls: places move by the velocities that are new.
      const steps = [
        vx.scale(DRAG).add(pull.x.scale(STEP)).computeInto(vx),
        vy.scale(DRAG).add(pull.y.scale(STEP)).computeInto(vy),
        x.add(vx.scale(STEP)).computeInto(x),
        y.add(vy.scale(STEP)).computeInto(y),
      ];
      gpu.flush();
      last = Promise.all(steps);
    },
    async places() {
      await last;
      const place = (tensor: Tensor) => tensor.gpuBuffer()!;
      const places: Places = {
        x: place(x),
        y: place(y),
        vx: place(vx),
        vy: place(vy),
      };
      return places;
    },
    read: (field) => tensors[field].read(),
  };
}

/** The pull of all wells on every particle. */
function pullOf(
  x: Tensor,
  y: Tensor,
  wells: readonly Well[],
): { x: Tensor; y: Tensor } {
  const [first, ...rest] = wells.map((well) => {
    // Numbers travel with the call: another well compiles nothing.
    const [dx, dy] = [x.sub(well.x).neg(), y.sub(well.y).neg()];
    const square = dx.mul(dx).add(dy.mul(dy)).add(SOFT);
    const pull = square.mul(square.sqrt());
    return {
      x: dx.scale(well.strength).div(pull),
      y: dy.scale(well.strength).div(pull),
    };
  });
  return rest.reduce(
    (sum, pull) => ({ x: sum.x.add(pull.x), y: sum.y.add(pull.y) }),
    first,
  );
}
