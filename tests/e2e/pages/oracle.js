// What each call must give, in float64 and by the textbook; no code of the package.
//
// States: the high nibble of a layer is a log-magnitude plus 8 (0 is null), the
// low nibble a phase in sixteenths of a turn.

const each = (t, item) => (typeof t === "number" ? t : t[item]);

export function lerp(a, b, t, width = 1) {
  return Float64Array.from(
    a,
    (x, i) => x + (b[i] - x) * each(t, Math.floor(i / width)),
  );
}

export function slerp(qa, qb, t) {
  const out = new Float64Array(qa.length);
  for (let item = 0; item < qa.length / 4; item++) {
    const a = Array.from(qa.subarray(item * 4, item * 4 + 4));
    const b = Array.from(qb.subarray(item * 4, item * 4 + 4));
    out.set(arc(a, b, each(t, item)), item * 4);
  }
  return out;
}

function arc(a, b, t) {
  const dot = a.reduce((sum, x, i) => sum + x * b[i], 0);
  const sign = dot < 0 ? -1 : 1;
  const angle = Math.acos(Math.min(1, Math.abs(dot)));
  const sine = Math.sin(angle);
  if (sine < 1e-9) return a;
  const from = Math.sin((1 - t) * angle) / sine;
  const to = (sign * Math.sin(t * angle)) / sine;
  return a.map((x, i) => x * from + b[i] * to);
}

export function gradients(states) {
  const out = new Float64Array(states.length * 2);
  states.forEach((byte, layer) => {
    const rho = (byte >> 4) - 8;
    out[layer * 2] = rho === -8 ? 0 : (Math.LN2 / 4) * 2 ** (rho / 4);
  });
  return out;
}

export function stateLerp(a, b, t) {
  return states(a, b, t, (from, to, t) => from + (to - from) * t);
}

export function stateSlerp(a, b, t) {
  return states(a, b, t, (from, to, t) => {
    const far = to - from;
    const near = far > 8 ? far - 16 : far < -8 ? far + 16 : far;
    return from + near * t;
  });
}

function states(a, b, t, phase) {
  return Uint8Array.from(a, (from, i) => {
    const to = b[i];
    const clamped = Math.min(1, Math.max(0, each(t, Math.floor(i / 16))));
    const quantised = even(clamped * 65536) / 65536;
    const rho = (from >> 4) + ((to >> 4) - (from >> 4)) * quantised;
    const theta = even(phase(from & 15, to & 15, quantised));
    return (even(rho) << 4) | (((theta % 16) + 16) % 16);
  });
}

/** Rounds half to even. */
function even(x) {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

/** The largest difference, or Infinity where the lengths differ or something is not a number. */
export function error(got, expected) {
  if (got.length !== expected.length) return Infinity;
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const difference = Math.abs(got[i] - expected[i]);
    if (!(difference <= worst)) worst = difference >= 0 ? difference : Infinity;
  }
  return worst;
}
