// The clip that everybody plays: of three.js's own making, or from a glTF file. Its
// tracks are those of one object: position, quaternion, scale.

import {
  AnimationClip,
  Euler,
  Quaternion,
  QuaternionKeyframeTrack,
  VectorKeyframeTrack,
} from "three/webgpu";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";

/** How objects are called, so that tracks find them. */
export const NAME = "shape";

export function threeClip() {
  const times = [0, 0.7, 1.5, 2.2, 3];
  const turns = times.map((_, key) =>
    new Quaternion()
      .setFromEuler(new Euler(key * 1.3, key * 2.1 * (key % 4), 0.4))
      .toArray(),
  );
  turns[4] = turns[0];
  return new AnimationClip("wave", 3, [
    new VectorKeyframeTrack(
      `${NAME}.position`,
      times,
      [0, 0, 0, 0.4, 0.2, 3, 0, 0.5, 6, -0.4, 0.2, 3, 0, 0, 0],
    ),
    new QuaternionKeyframeTrack(`${NAME}.quaternion`, times, turns.flat()),
    new VectorKeyframeTrack(
      `${NAME}.scale`,
      times,
      [1, 1, 1, 1.4, 0.6, 1, 0.6, 1.6, 1, 1.4, 0.8, 1, 1, 1, 1],
    ),
  ]);
}

export async function gltfClip() {
  const url = new URL("./wave.gltf", import.meta.url).href;
  const { animations } = await new GLTFLoader().loadAsync(url);
  return animations[0];
}
