// Clips that components hold together: the same options are the same clip, until the last
// component lets go of it.
//
// Nothing of a framework is known here, and nothing but types of the animations is imported.

import type { Session } from "../index.js";
import type { Clip } from "./clip.js";
import type { ClipOptions } from "./tracks.js";

/** A clip, and how many components hold it. */
interface HeldClip {
  readonly clip: Clip;
  holders: number;
}

const sessions = new WeakMap<Session, WeakMap<ClipOptions, HeldClip>>();

/** Holds the clip of these options, which the first holder makes. */
export function holdClip(gpu: Session, options: ClipOptions): Clip {
  let clips = sessions.get(gpu);
  if (clips === undefined) sessions.set(gpu, (clips = new WeakMap()));
  let held = clips.get(options);
  if (held === undefined) {
    held = { clip: gpu.clip(options), holders: 0 };
    clips.set(options, held);
  }
  held.holders += 1;
  return held.clip;
}

/** Lets go of the clip of these options, which the last holder disposes of. */
export function releaseClip(gpu: Session, options: ClipOptions): void {
  const clips = sessions.get(gpu);
  const held = clips?.get(options);
  if (held === undefined) return;
  held.holders -= 1;
  if (held.holders > 0) return;
  clips?.delete(options);
  held.clip.dispose();
}
