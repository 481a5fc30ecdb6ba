// A clip for as long as a component is mounted.

import {
  type MaybeRefOrGetter,
  type ShallowRef,
  shallowRef,
  toRaw,
  toValue,
  watch,
} from "vue";
import { holdClip, releaseClip } from "../animation/held-clips.js";
import type { Clip, ClipOptions } from "../animation/index.js";
import { useGpu } from "./provider.js";
// The session's methods.
import "../animation/index.js";

/**
 * A clip of these tracks on the device, while the component is mounted; undefined before. The
 * same `options` are the same clip, however many components use it, and others are another
 * one. Wrong tracks throw from a watcher, with what `gpu.clip` throws.
 *
 * @example
 * const wave = useClip({ tracks: [{ times: [0, 1, 2], values: [0, 8, 0] }] });
 * const move = async () => show(await wave.value?.sample(performance.now() / 1000, { wrap: "loop" }));
 */
export function useClip(
  options: MaybeRefOrGetter<ClipOptions>,
): Readonly<ShallowRef<Clip | undefined>> {
  const gpu = useGpu();
  const clip = shallowRef<Clip>();
  watch(
    [gpu, () => toRaw(toValue(options))] as const,
    ([session, raw], _before, onCleanup) => {
      if (session === undefined) return;
      clip.value = holdClip(session, raw);
      onCleanup(() => {
        clip.value = undefined;
        releaseClip(session, raw);
      });
    },
    { immediate: true },
  );
  return clip;
}
