// Draws the creatures on a 2D canvas: apart from the WebGPU that is counted, and from
// the GPU, whose time is for the calls.
//
// The scene takes places and headings, and knows nothing of how creatures chose them.

import type { Creature } from "./creatures/creature.ts";
import type { SpeciesName } from "./creatures/species.ts";
import type { World } from "./creatures/world.ts";

/** How much of what was drawn is gone after a frame. */
const FADE = 0.2;
/** Colors of a species, from calm to alarmed, or from sated to hungry. */
const SHADES = 8;
const COLORS: Readonly<Record<SpeciesName, string[]>> = {
  grazer: shades(
    (t) => `hsl(${172 - 118 * t} ${62 + 30 * t}% ${58 + 14 * t}%)`,
  ),
  hunter: shades((t) => `hsl(${38 - 26 * t} 96% ${66 - 6 * t}%)`),
};
const FOOD = "hsl(96 45% 46% / 0.75)";
/** Radius of a grain of food, in units of the world. */
const GRAIN = 1.7;
/** Seconds until a young creature is drawn in its full size. */
const GROWN = 1.5;

export class Scene {
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  draw(world: World): void {
    const { canvas, context } = this;
    const pixels = Math.min(devicePixelRatio, 2);
    const width = Math.round(canvas.clientWidth * pixels);
    const height = Math.round(canvas.clientHeight * pixels);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    // What was drawn before fades, so that creatures leave a wake.
    context.globalCompositeOperation = "destination-out";
    context.fillStyle = `rgb(0 0 0 / ${FADE})`;
    context.fillRect(0, 0, width, height);
    context.globalCompositeOperation = "source-over";
    context.setTransform(
      width / world.width,
      0,
      0,
      height / world.height,
      0,
      0,
    );

    const food = new Path2D();
    for (const { x, y } of world.motes) {
      food.rect(x - GRAIN, y - GRAIN, 2 * GRAIN, 2 * GRAIN);
    }
    context.fillStyle = FOOD;
    context.fill(food);
    this.drawCreatures(world.creatures);
  }

  /** One path a color: a fill for each creature would be what is slow. */
  private drawCreatures(creatures: readonly Creature[]): void {
    const paths = {
      grazer: COLORS.grazer.map(() => new Path2D()),
      hunter: COLORS.hunter.map(() => new Path2D()),
    };
    for (const creature of creatures) {
      const { name } = creature.species;
      const mood = name === "grazer" ? creature.alarm : creature.hunger;
      const shade = Math.min(SHADES - 1, Math.floor(mood * SHADES));
      outline(creature, paths[name][shade]);
    }
    for (const name of ["grazer", "hunter"] as const) {
      paths[name].forEach((path, shade) => {
        this.context.fillStyle = COLORS[name][shade];
        this.context.fill(path);
      });
    }
  }
}

/** Adds a fish: a pointed body, and a tail that beats as fast as the fish swims. */
function outline(creature: Creature, path: Path2D): void {
  const { x, y, heading, species, stroke } = creature;
  const length = species.length * Math.min(1, 0.3 + creature.age / GROWN);
  const [cos, sin] = [Math.cos(heading), Math.sin(heading)];
  const beat = 0.16 * Math.sin(stroke);
  const to = (ahead: number, aside: number) => {
    const [a, b] = [ahead * length, aside * length];
    path.lineTo(x + cos * a - sin * b, y + sin * a + cos * b);
  };
  path.moveTo(x + cos * length * 0.5, y + sin * length * 0.5);
  to(0.22, 0.15);
  to(-0.22, 0.06 + beat * 0.4);
  to(-0.5, 0.15 + beat);
  to(-0.4, beat);
  to(-0.5, beat - 0.15);
  to(-0.22, beat * 0.4 - 0.06);
  to(0.22, -0.15);
  path.closePath();
}

function shades(color: (t: number) => string): string[] {
  return Array.from({ length: SHADES }, (_, i) => color(i / (SHADES - 1)));
}
