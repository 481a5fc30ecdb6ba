// On the page's thread: a loop over typed arrays, and three.js's AnimationMixer.

import {
  AnimationClip,
  AnimationMixer,
  Object3D,
  QuaternionKeyframeTrack,
  VectorKeyframeTrack,
} from "three";
import { drawnOf, joined, type Posing } from "./posing.ts";
import {
  DURATION,
  groupsOf,
  KEYS,
  phaseOf,
  rowOf,
  type Scene,
  type Track,
  trackOf,
  widthOf,
} from "./scene.ts";

export async function loop(scene: Scene): Promise<Posing> {
  const { instances, kinds, together } = scene;
  const drawn = await drawnOf(scene);
  const width = rowOf(scene);
  // Drawn from one array; those who want their rows back get arrays of their own.
  const all = new Float32Array(drawn ? instances * width : 0);
  const groups = groupsOf(scene);
  let own: Float32Array[] = [];
  const put = (group: number, now: number, out: Float32Array, at: number) => {
    const time = (now + phaseOf(group)) % DURATION;
    for (let i = group * together; i < (group + 1) * together; i++) {
      for (let k = 0; k < kinds.length; k++) {
        sample(trackOf(scene, i, k), time, out, at);
        at += widthOf(kinds[k]);
      }
    }
  };
  return {
    async pose(now) {
      if (drawn === undefined) {
        own = Array.from({ length: groups }, (_, group) => {
          const out = new Float32Array(width * together);
          put(group, now, out, 0);
          return out;
        });
        return;
      }
      for (let group = 0; group < groups; group++) {
        put(group, now, all, group * together * width);
      }
      await drawn.put(all);
    },
    rows: async () => (drawn ? drawn.rows() : joined(own)),
    close: () => drawn?.device.destroy(),
  };
}

function sample(
  { kind, times, values }: Track,
  time: number,
  out: Float32Array,
  at: number,
): void {
  let low = 0;
  let high = KEYS - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle;
  }
  const t = (time - times[low]) / (times[high] - times[low]);
  if (kind === "vector") {
    for (let k = 0, a = 3 * low; k < 3; k++, a++) {
      out[at + k] = values[a] + (values[a + 3] - values[a]) * t;
    }
    return;
  }
  const a = 4 * low;
  let dot = 0;
  for (let k = a; k < a + 4; k++) dot += values[k] * values[k + 4];
  const cosine = Math.min(1, Math.abs(dot));
  let from = 1 - t;
  let to = t;
  if (cosine < 0.999999) {
    const angle = Math.acos(cosine);
    const scale = 1 / Math.sqrt(1 - cosine * cosine);
    from = Math.sin(from * angle) * scale;
    to = Math.sin(to * angle) * scale;
  }
  if (dot < 0) to = -to;
  for (let k = 0; k < 4; k++) {
    out[at + k] = from * values[a + k] + to * values[a + k + 4];
  }
}

/** The properties that the tracks of a row move, in order. */
const MOVED = {
  quaternion: ["quaternion"],
  "vector,quaternion,vector": ["position", "quaternion", "scale"],
} as Record<string, readonly string[]>;

/** One mixer of as many objects, each with its own action. */
export async function mixer(scene: Scene): Promise<Posing> {
  const { instances, kinds, isOwn, together } = scene;
  const drawn = await drawnOf(scene);
  const width = rowOf(scene);
  const moved = MOVED[kinds.join()];
  const clipOf = (i: number) =>
    new AnimationClip(
      `${i}`,
      DURATION,
      kinds.map((kind, k) => {
        const { times, values } = trackOf(scene, i, k);
        const Own =
          kind === "vector" ? VectorKeyframeTrack : QuaternionKeyframeTrack;
        return new Own(`.${moved[k]}`, times, values);
      }),
    );
  const mixer = new AnimationMixer(new Object3D());
  const common = isOwn ? undefined : clipOf(0);
  const objects = Array.from({ length: instances }, (_, i) => {
    const object = new Object3D();
    const action = mixer.clipAction(common ?? clipOf(i), object);
    action.play().time = phaseOf(Math.floor(i / together)) % DURATION;
    return object;
  });
  const all = new Float32Array(instances * width);
  const put = () => {
    objects.forEach(({ position, quaternion, scale }, i) => {
      const at = i * width;
      if (isOwn) return quaternion.toArray(all, at);
      position.toArray(all, at);
      quaternion.toArray(all, at + 3);
      scale.toArray(all, at + 7);
    });
  };
  let last = 0;
  return {
    async pose(now) {
      mixer.update(now - last);
      last = now;
      if (drawn === undefined) return;
      put();
      await drawn.put(all);
    },
    async rows() {
      if (drawn !== undefined) return drawn.rows();
      put();
      return all;
    },
    close: () => drawn?.device.destroy(),
  };
}
