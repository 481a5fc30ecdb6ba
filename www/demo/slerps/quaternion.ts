// The slerp of the plain loop, and the float64 one that every way is checked against.
//
// The two functions take quaternions as xyzw and go the short way. Nothing here uses a GPU.

/** Interpolates one quaternion by the textbook, in the double precision of JavaScript. */
export function slerp64(
  from: ArrayLike<number>,
  to: ArrayLike<number>,
  t: number,
): number[] {
  let dot = 0;
  for (let i = 0; i < 4; i++) dot += from[i] * to[i];
  const angle = Math.acos(Math.min(1, Math.abs(dot)));
  const sine = Math.sin(angle);
  const near = sine < 1e-9;
  const back = near ? 1 - t : Math.sin((1 - t) * angle) / sine;
  const forth = (near ? t : Math.sin(t * angle) / sine) * (dot < 0 ? -1 : 1);
  return [0, 1, 2, 3].map((i) => from[i] * back + to[i] * forth);
}

/** The same, as one writes it for speed: no array but the result. */
export function slerp(
  from: Float32Array,
  to: Float32Array,
  t: number,
): Float32Array {
  let dot =
    from[0] * to[0] + from[1] * to[1] + from[2] * to[2] + from[3] * to[3];
  const sign = dot < 0 ? -1 : 1;
  dot = Math.min(1, dot * sign);
  let back = 1 - t;
  let forth = t;
  if (dot < 0.999999) {
    const angle = Math.acos(dot);
    const sine = Math.sqrt(1 - dot * dot);
    back = Math.sin(back * angle) / sine;
    forth = Math.sin(forth * angle) / sine;
  }
  forth *= sign;
  const out = new Float32Array(4);
  for (let i = 0; i < 4; i++) out[i] = from[i] * back + to[i] * forth;
  return out;
}

/** The rotation that turns the z axis to `direction`, a vector of any length. */
export function facing(x: number, y: number, z: number): Float32Array {
  const length = Math.hypot(x, y, z);
  const w = 1 + z / length;
  const norm = Math.hypot(y / length, x / length, w);
  return Float32Array.of(-y / length / norm, x / length / norm, 0, w / norm);
}
