// A clip for as long as a component is mounted.

import { useEffect, useState } from "react";
import { holdClip, releaseClip } from "../animation/held-clips.js";
import type { Clip, ClipOptions } from "../animation/index.js";
import type { Session } from "../index.js";
import { useGpu } from "./provider.js";
// The session's methods.
import "../animation/index.js";

/** A clip, and what it was made of. */
interface Made {
  readonly gpu: Session;
  readonly options: ClipOptions;
  readonly clip: Clip;
}

/**
 * A clip of these tracks on the device, while the component is mounted; undefined in its
 * first render. The same `options` are the same clip, however many components use it,
 * and others are another one: make them outside of the component, or with `useMemo`.
 * Wrong tracks throw from an effect, with what `gpu.clip` throws.
 *
 * @example
 * const WAVE = { tracks: [{ times: [0, 1, 2], values: [0, 8, 0] }] };
 *
 * function Bar() {
 *   const clip = useClip(WAVE);
 *   const move = async () => show(await clip?.sample(performance.now() / 1000, { wrap: "loop" }));
 * }
 */
export function useClip(options: ClipOptions): Clip | undefined {
  const gpu = useGpu();
  const [made, setMade] = useState<Made>();
  useEffect(() => {
    if (gpu === undefined) return;
    setMade({ gpu, options, clip: holdClip(gpu, options) });
    return () => releaseClip(gpu, options);
  }, [gpu, options]);
  // One of before is disposed of.
  const isThis = made?.options === options && made.gpu === gpu;
  return isThis ? made.clip : undefined;
}
