// The swarm by a plain loop, whose arrays go up to the GPU with every frame to be drawn.

import { FIELDS, stepByLoop, type Swarm } from "./swarm.ts";
import type { Place, Places, Way } from "./ways.ts";

export async function openByLoop(start: Swarm): Promise<Way> {
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter?.requestDevice();
  if (device === undefined) throw new Error("there is no adapter");
  const swarm: Swarm = {
    x: start.x.slice(),
    y: start.y.slice(),
    vx: start.vx.slice(),
    vy: start.vy.slice(),
  };
  const places = {} as Record<keyof Swarm, Place>;
  for (const field of FIELDS) {
    const size = swarm[field].byteLength;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({ size, usage });
    places[field] = { buffer, offset: 0, size };
  }
  return {
    device,
    step(wells) {
      stepByLoop(swarm, wells);
      for (const field of FIELDS) {
        device.queue.writeBuffer(places[field].buffer, 0, swarm[field]);
      }
    },
    places: () => Promise.resolve(places as Places),
    read: (field) => Promise.resolve(swarm[field].slice()),
  };
}
