// framebatch: a clip for each component, or one clip to a tensor that is drawn from.

import { open, type Session } from "framebatch";
import type { ClipOptions } from "framebatch/animation";
import "framebatch/animation";
import { engineOf } from "../systems/framebatch.ts";
import type { System } from "../systems/system.ts";
import { joined, type Posing, readBack } from "./posing.ts";
import {
  DURATION,
  groupsOf,
  phaseOf,
  putTimes,
  rowOf,
  type Scene,
  trackOf,
} from "./scene.ts";

export async function framebatch(
  scene: Scene,
  system: System,
): Promise<Posing> {
  const gpu = await open({ engine: engineOf(system), flush: "manual" });
  return scene.isDrawn ? toTensor(gpu, scene) : each(gpu, scene);
}

/** The clip of an instance and of its neighbors at the same time. */
function clipOf(scene: Scene, i: number): ClipOptions {
  const tracks = Array.from({ length: scene.together }, (_, member) =>
    scene.kinds.map((_, k) => trackOf(scene, i + member, k)),
  );
  return { tracks: tracks.flat(), duration: DURATION };
}

function each(gpu: Session, scene: Scene): Posing {
  const clips = Array.from({ length: groupsOf(scene) }, (_, group) =>
    gpu.clip(clipOf(scene, group * scene.together)),
  );
  const loop = { wrap: "loop" } as const;
  let rows: Float32Array[] = [];
  return {
    async pose(now) {
      const made = clips.map((clip, group) =>
        clip.sample(now + phaseOf(group), loop),
      );
      gpu.flush();
      rows = await Promise.all(made);
    },
    rows: async () => joined(rows),
    close: () => gpu.dispose(),
  };
}

function toTensor(gpu: Session, scene: Scene): Posing {
  const clip = gpu.clip(clipOf(scene, 0));
  const pose = gpu.tensor(new Float32Array(scene.instances * rowOf(scene)));
  const times = new Float32Array(scene.instances);
  return {
    async pose(now) {
      putTimes(times, now);
      const stored = clip.sampleTo(pose, times, { wrap: "loop" });
      gpu.flush();
      await stored; // The batch is submitted.
      await gpu.device!.queue.onSubmittedWorkDone();
    },
    rows: () => readBack(gpu.device!, pose.gpuBuffer()!),
    close: () => gpu.dispose(),
  };
}
