// Draws the shards on a 2D canvas: apart from the WebGPU that is counted, and from
// the GPU, whose time is for the calls.
//
// The scene takes the components' rotations and knows nothing of how they came about.

import type { Component } from "./component.ts";
import { FACES, POINTS } from "./shard.ts";

/** A shard's length from its middle to its tip, in cells. */
const REACH = 0.8;
/** Where the light comes from; the viewer looks down the z axis. */
const LIGHT = [-0.44, 0.64, 0.63];
const HUES = 64;
const SHADES = 48;

export class Scene {
  private readonly context: CanvasRenderingContext2D;
  private readonly colors = colors();
  /** A shard's points in their rotation, three numbers each. */
  private readonly turned = new Float32Array(POINTS.length * 3);

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly columns: number,
    private readonly rows: number,
  ) {
    this.context = canvas.getContext("2d")!;
  }

  draw(components: Component[]): void {
    const { canvas, context, columns } = this;
    const scale = Math.min(devicePixelRatio, 2);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const cell = Math.min(width / columns, height / this.rows);
    components.forEach(({ rotation }, index) => {
      const column = index % columns;
      const row = Math.floor(index / columns);
      const x = ((column + 0.5) / columns) * width;
      const y = ((row + 0.5) / this.rows) * height;
      this.drawShard(rotation, x, y, cell, column / columns);
    });
  }

  private drawShard(
    rotation: Float32Array,
    x: number,
    y: number,
    cell: number,
    across: number,
  ): void {
    const { context, turned } = this;
    POINTS.forEach((point, index) => turn(rotation, point, turned, index * 3));
    const tip = FACES[0].corners[2] * 3;
    const hue = 0.42 + 0.16 * turned[tip] + 0.12 * turned[tip + 1];
    const row = this.colors[Math.floor(wrapped(hue + 0.18 * across) * HUES)];

    for (const { corners, normal } of FACES) {
      turn(rotation, normal, facing, 0);
      if (facing[2] <= 0) continue;
      context.fillStyle = row[shade(facing)];
      context.beginPath();
      for (const corner of corners) {
        const at = corner * 3;
        // A little perspective: what is nearer is larger.
        const size = REACH * cell * (1 + 0.22 * turned[at + 2]);
        context.lineTo(x + turned[at] * size, y - turned[at + 1] * size);
      }
      context.fill();
    }
  }
}

const facing = new Float32Array(3);

/** Writes `v`, turned by a unit quaternion, to `out` from `at` on. */
function turn(
  q: Float32Array,
  v: readonly number[],
  out: Float32Array,
  at: number,
): void {
  const [x, y, z, w] = q;
  const cx = y * v[2] - z * v[1] + w * v[0];
  const cy = z * v[0] - x * v[2] + w * v[1];
  const cz = x * v[1] - y * v[0] + w * v[2];
  out[at] = v[0] + 2 * (y * cz - z * cy);
  out[at + 1] = v[1] + 2 * (z * cx - x * cz);
  out[at + 2] = v[2] + 2 * (x * cy - y * cx);
}

/** How bright a face is: light that falls on it, and a glint where it mirrors the light. */
function shade(normal: Float32Array): number {
  const cosine =
    normal[0] * LIGHT[0] + normal[1] * LIGHT[1] + normal[2] * LIGHT[2];
  const diffuse = Math.max(0, cosine);
  const mirrored = Math.max(0, 2 * cosine * normal[2] - LIGHT[2]);
  const bright = 0.16 + 0.6 * diffuse + 0.24 * mirrored ** 14;
  return Math.min(SHADES - 1, Math.floor(bright * SHADES));
}

/** Every color that is used, by hue and by shade: making them anew is what would be slow. */
function colors(): string[][] {
  return Array.from({ length: HUES }, (_, hue) =>
    Array.from({ length: SHADES }, (_, shade) => {
      const level = shade / (SHADES - 1);
      const channel = (offset: number) => {
        const wave = Math.cos(2 * Math.PI * (hue / HUES + offset));
        const lit = (0.56 + 0.4 * wave) * Math.min(1, level * 1.45);
        return Math.round(255 * Math.min(1, lit + Math.max(0, level - 0.7)));
      };
      return `rgb(${channel(0.02)} ${channel(0.36)} ${channel(0.62)})`;
    }),
  );
}

const wrapped = (value: number) => value - Math.floor(value);
