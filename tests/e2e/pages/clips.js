// Random clips of three.js, and what its interpolants make of them.

import * as THREE from "three";
import { GLTFLoader } from "/three/examples/jsm/loaders/GLTFLoader.js";
import { fromThree } from "framebatch/animation";

export { fromThree, GLTFLoader, THREE };

/** Numbers that look random and are the same in every run (Mulberry32). */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const signed = (draw) => draw() * 2 - 1;

function unit(draw) {
  const q = Array.from({ length: 4 }, () => signed(draw));
  const length = Math.hypot(...q);
  return length < 0.1 ? unit(draw) : q.map((x) => x / length);
}

/** Keys from 0 on, at least `least`, that rise; some are as the one before, if they may. */
function keys(draw, least, mayRepeat) {
  let time = 0;
  const count = least + Math.floor(draw() * 9);
  return Array.from({ length: count }, (_, i) => {
    if (i > 0 && !(mayRepeat && draw() < 0.1)) time += 0.05 + draw();
    return time;
  });
}

/** A clip of so many tracks as three.js has them. */
export function threeClip(draw, tracks) {
  const made = Array.from({ length: tracks }, (_, i) => {
    const isTurn = draw() < 0.5;
    const value = () =>
      isTurn ? unit(draw) : [signed(draw), signed(draw), signed(draw)];
    const Track = isTurn
      ? THREE.QuaternionKeyframeTrack
      : THREE.VectorKeyframeTrack;
    const modes = [THREE.InterpolateDiscrete, THREE.InterpolateLinear];
    if (!isTurn) modes.push(THREE.InterpolateSmooth);
    const mode = modes[Math.floor(draw() * modes.length)];
    // Between equal keys three's smooth curves are not a number.
    const times = keys(draw, 1, mode !== THREE.InterpolateSmooth);
    const values = times.flatMap(value);
    const name = `n${i}.${isTurn ? "quaternion" : "position"}`;
    return new Track(name, times, values, mode);
  });
  return new THREE.AnimationClip("random", -1, made);
}

/** The clips of a glTF file whose animations have every sampler and path. */
export async function gltfClips(draw, animations) {
  const floats = [];
  const json = {
    asset: { version: "2.0" },
    scenes: [{ nodes: [0] }],
    nodes: [{ name: "node" }],
    accessors: [],
    bufferViews: [],
    animations: [],
  };
  const accessor = (values, type) => {
    const size = { SCALAR: 1, VEC3: 3, VEC4: 4 }[type];
    json.bufferViews.push({
      buffer: 0,
      byteOffset: floats.length * 4,
      byteLength: values.length * 4,
    });
    floats.push(...values);
    json.accessors.push({
      bufferView: json.bufferViews.length - 1,
      componentType: 5126,
      count: values.length / size,
      type,
    });
    return json.accessors.length - 1;
  };
  for (let i = 0; i < animations; i++) {
    const animation = { samplers: [], channels: [] };
    for (const path of ["translation", "rotation", "scale"]) {
      const isTurn = path === "rotation";
      const times = keys(draw, 2, true);
      const interpolation = ["STEP", "LINEAR", "CUBICSPLINE"][
        Math.floor(draw() * 3)
      ];
      const tangent = () =>
        Array.from({ length: isTurn ? 4 : 3 }, () => 2 * signed(draw));
      const value = () => (isTurn ? unit(draw) : tangent());
      const perKey = () =>
        interpolation === "CUBICSPLINE"
          ? [...tangent(), ...value(), ...tangent()]
          : value();
      animation.channels.push({
        sampler: animation.samplers.length,
        target: { node: 0, path },
      });
      animation.samplers.push({
        input: accessor(times, "SCALAR"),
        output: accessor(times.flatMap(perKey), isTurn ? "VEC4" : "VEC3"),
        interpolation,
      });
    }
    json.animations.push(animation);
  }
  const bytes = new Uint8Array(new Float32Array(floats).buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  json.buffers = [
    {
      uri: `data:application/octet-stream;base64,${btoa(text)}`,
      byteLength: bytes.length,
    },
  ];
  const { animations: clips } = await new GLTFLoader().parseAsync(
    JSON.stringify(json),
    "",
  );
  return clips;
}

/** The largest difference between rows and three's interpolants. */
export function worst(clip, times, rows) {
  let [at, most] = [0, 0];
  for (const time of times) {
    for (const track of clip.tracks) {
      const interpolant = track.createInterpolant();
      const result = interpolant.evaluate(time);
      for (let k = 0; k < track.getValueSize(); k++) {
        const isSpline =
          track.createInterpolant.isInterpolantFactoryMethodGLTFCubicSpline;
        if (isSpline && k >= track.getValueSize() / 3) break;
        most = Math.max(most, Math.abs(rows[at++] - result[k]));
        // NaN would be no difference.
        if (Number.isNaN(rows[at - 1])) most = Infinity;
      }
    }
  }
  return at === rows.length ? most : Infinity;
}
