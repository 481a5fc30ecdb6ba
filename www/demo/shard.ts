// The shape of a shard: a crystal along the z axis, long in front and short behind.

type Point = readonly [number, number, number];

/** A triangle of three points, by index, that looks along `normal`. */
export interface Face {
  corners: readonly [number, number, number];
  normal: Point;
}

const SIDES = 5;
const RADIUS = 0.3;
const FRONT = SIDES;
const BACK = SIDES + 1;

/** A ring around the axis, the front tip, the back tip. */
export const POINTS: readonly Point[] = [
  ...Array.from({ length: SIDES }, (_, side): Point => {
    const angle = (2 * Math.PI * side) / SIDES;
    return [RADIUS * Math.cos(angle), RADIUS * Math.sin(angle), -0.1];
  }),
  [0, 0, 1],
  [0, 0, -0.45],
];

/** The faces in front, then those behind. */
export const FACES: readonly Face[] = [
  ...ring((side, next) => face(side, next, FRONT)),
  ...ring((side, next) => face(next, side, BACK)),
];

function ring(make: (side: number, next: number) => Face): Face[] {
  return Array.from({ length: SIDES }, (_, side) =>
    make(side, (side + 1) % SIDES),
  );
}

/** The normal points outwards: seen from outside, the corners run counterclockwise. */
function face(a: number, b: number, c: number): Face {
  const [origin, second, third] = [POINTS[a], POINTS[b], POINTS[c]];
  const u = second.map((value, i) => value - origin[i]);
  const v = third.map((value, i) => value - origin[i]);
  const out = [
    u[1] * v[2] - u[2] * v[1],
    u[2] * v[0] - u[0] * v[2],
    u[0] * v[1] - u[1] * v[0],
  ];
  const length = Math.hypot(...out);
  const normal: Point = [out[0] / length, out[1] / length, out[2] / length];
  return { corners: [a, b, c], normal };
}
