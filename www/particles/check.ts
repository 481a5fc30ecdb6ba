// How far each way is from the same steps in double precision.

import {
  DRAG,
  FIELDS,
  newSwarm,
  SOFT,
  STEP,
  type Swarm,
  type Well,
  wellsAt,
} from "./swarm.ts";
import type { OpenWay, WayName } from "./ways.ts";

const PARTICLES = 1000;
const STEPS = 60;

/** The largest distance of each way in any field after a second of steps. */
export async function check(
  ways: Readonly<Record<WayName, OpenWay>>,
): Promise<Record<string, number>> {
  const expected = exactly();
  const found: Record<string, number> = {};
  for (const [name, open] of Object.entries(ways)) {
    const way = await open(newSwarm(PARTICLES));
    for (let step = 0; step < STEPS; step++) way.step(wellsAt(step, undefined));
    found[name] = 0;
    for (const field of FIELDS) {
      const own = await way.read(field);
      if (own.length !== PARTICLES) throw new Error(`${name}: ${own.length}`);
      for (let i = 0; i < PARTICLES; i++) {
        const apart = Math.abs(own[i] - expected[field][i]);
        // A field that is no number is apart from every one.
        if (!(apart <= found[name])) found[name] = apart;
      }
    }
  }
  return found;
}

function exactly(): Record<keyof Swarm, number[]> {
  const start = newSwarm(PARTICLES);
  const fields = FIELDS.map((field) => [field, [...start[field]]] as const);
  const swarm = Object.fromEntries(fields) as Record<keyof Swarm, number[]>;
  for (let step = 0; step < STEPS; step++) {
    const wells = wellsAt(step, undefined);
    for (let i = 0; i < PARTICLES; i++) move(swarm, i, wells);
  }
  return swarm;
}

function move(
  { x, y, vx, vy }: Record<keyof Swarm, number[]>,
  i: number,
  wells: readonly Well[],
): void {
  let [ax, ay] = [0, 0];
  for (const { x: px, y: py, strength } of wells) {
    const [dx, dy] = [px - x[i], py - y[i]];
    const pull = strength / (dx * dx + dy * dy + SOFT) ** 1.5;
    ax += dx * pull;
    ay += dy * pull;
  }
  vx[i] = vx[i] * DRAG + ax * STEP;
  vy[i] = vy[i] * DRAG + ay * STEP;
  x[i] += vx[i] * STEP;
  y[i] += vy[i] * STEP;
}
