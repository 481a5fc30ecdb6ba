// A swarm of particles that wells of gravity pull about: what all ways compute.
//
// A step of a well at p pulls a particle at q by strength · (p − q) / (|p − q|² + SOFT)^1.5.
// Velocity changes first and then the place, by the velocity that is new (semi-implicit Euler).

/** A well of gravity. */
export interface Well {
  readonly x: number;
  readonly y: number;
  readonly strength: number;
}

/** The four numbers of every particle, in arrays of their own. */
export interface Swarm {
  readonly x: Float32Array<ArrayBuffer>;
  readonly y: Float32Array<ArrayBuffer>;
  readonly vx: Float32Array<ArrayBuffer>;
  readonly vy: Float32Array<ArrayBuffer>;
}

/** The fields of a swarm, in the order in which a step writes them. */
export const FIELDS = ["vx", "vy", "x", "y"] as const;

/** Seconds of a step. */
export const STEP = 1 / 60;

/** What keeps the pull of a near well finite. */
export const SOFT = 0.02;

/** What of its velocity a particle keeps in a step. */
export const DRAG = 0.998;

/** Particles on a disk, circling its middle; the same ones every time. */
export function newSwarm(count: number): Swarm {
  const field = () => new Float32Array(count);
  const swarm: Swarm = { x: field(), y: field(), vx: field(), vy: field() };
  for (let i = 0; i < count; i++) {
    // Golden angles fill a disk evenly.
    const angle = i * 2.399963229728653;
    const radius = Math.sqrt((i + 0.5) / count);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    swarm.x[i] = radius * cos;
    swarm.y[i] = radius * sin;
    swarm.vx[i] = -0.7 * sin;
    swarm.vy[i] = 0.7 * cos;
  }
  return swarm;
}

/** The wells after so many steps: two that circle, and one under the pointer if there is one. */
export function wellsAt(
  steps: number,
  pointer: readonly [number, number] | undefined,
): readonly Well[] {
  const seconds = steps * STEP;
  const [slow, fast] = [seconds * 0.23, seconds * 0.41];
  const [px, py] = pointer ?? [0, 0];
  return [
    { x: 0.55 * Math.cos(slow), y: 0.55 * Math.sin(slow), strength: 0.35 },
    { x: -0.7 * Math.cos(fast), y: 0.5 * Math.sin(fast), strength: 0.25 },
    { x: px, y: py, strength: pointer ? 0.5 : 0.1 },
  ];
}

/** One step, by the loop that a person would write. */
export function stepByLoop(swarm: Swarm, wells: readonly Well[]): void {
  const { x, y, vx, vy } = swarm;
  for (let i = 0; i < x.length; i++) {
    let [ax, ay] = [0, 0];
    for (let w = 0; w < wells.length; w++) {
      const well = wells[w];
      const [dx, dy] = [well.x - x[i], well.y - y[i]];
      const square = dx * dx + dy * dy + SOFT;
      const pull = well.strength / (square * Math.sqrt(square));
      ax += dx * pull;
      ay += dy * pull;
    }
    vx[i] = vx[i] * DRAG + ax * STEP;
    vy[i] = vy[i] * DRAG + ay * STEP;
    x[i] += vx[i] * STEP;
    y[i] += vy[i] * STEP;
  }
}
