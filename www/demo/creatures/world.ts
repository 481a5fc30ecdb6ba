// The world of the creatures: where food grows, who is eaten, and time.
//
// The world moves creatures and lets them look; it asks no network.

import type { sequence } from "../../bench/ops/inputs.ts";
import { Creature, type Mote } from "./creature.ts";
import { Grid, within } from "./grid.ts";
import { GRAZER, HUNTER, SPECIES } from "./species.ts";

/** How far creatures see, in units of the world. */
const RANGE = 92;
/** The size of the world in square units, whatever its shape. */
const AREA = 1_000_000;
const MOTES = 420;
const BLOOMS = 7;
/** How far food spreads around the middle of a bloom. */
const SPREAD = 71;
/** How fast blooms wander, units a second. */
const DRIFT = 8;
/** How full a hunter leaves prey alone. */
const SATED = 0.25;
/** The longest step of time, in seconds. */
const LONGEST = 0.05;

interface Bloom {
  x: number;
  y: number;
  heading: number;
}

export class World {
  readonly width: number;
  readonly height: number;
  readonly creatures: Creature[] = [];
  readonly motes: Mote[] = [];
  private readonly blooms: Bloom[];
  private readonly creaturesNear: Grid<Creature>;
  private readonly foodNear: Grid<Mote>;
  private seconds = 0;

  constructor(
    aspect: number,
    private readonly next: ReturnType<typeof sequence>,
  ) {
    this.width = Math.sqrt(AREA * aspect);
    this.height = AREA / this.width;
    this.creaturesNear = new Grid(this.width, this.height, RANGE);
    this.foodNear = new Grid(this.width, this.height, RANGE);
    this.blooms = Array.from({ length: BLOOMS }, () => ({
      x: next() * this.width,
      y: next() * this.height,
      heading: next() * 2 * Math.PI,
    }));
    for (let i = 0; i < MOTES; i++) this.motes.push(this.grown({ x: 0, y: 0 }));
    for (const species of SPECIES) {
      for (let i = 0; i < species.count; i++) {
        const [x, y] = [next() * this.width, next() * this.height];
        const heading = next() * 2 * Math.PI;
        this.creatures.push(new Creature(species, x, y, heading, next()));
      }
    }
  }

  /** Lets every creature look around. */
  sense(): void {
    this.creaturesNear.fill(this.creatures);
    this.foodNear.fill(this.motes);
    for (const creature of this.creatures) {
      creature.sense(this.creaturesNear, this.foodNear, this.seconds);
    }
  }

  /** Lets them eat what is within reach, by what they last sensed. */
  feed(): void {
    for (const creature of this.creatures) {
      const { prey } = creature;
      creature.prey = undefined;
      if (prey === undefined) continue;
      if (!(prey instanceof Creature)) {
        creature.eat();
        this.grown(prey);
      } else if (creature.hunger > SATED) {
        creature.eat();
        this.reborn(prey);
      }
    }
  }

  /** Moves everything on. */
  step(seconds: number): void {
    const time = Math.min(LONGEST, seconds);
    this.seconds += time;
    for (const creature of this.creatures) {
      creature.move(time);
      creature.x = within(creature.x, this.width);
      creature.y = within(creature.y, this.height);
    }
    for (const bloom of this.blooms) {
      bloom.heading += (this.next() - 0.5) * time;
      bloom.x = within(
        bloom.x + Math.cos(bloom.heading) * DRIFT * time,
        this.width,
      );
      bloom.y = within(
        bloom.y + Math.sin(bloom.heading) * DRIFT * time,
        this.height,
      );
    }
  }

  /** Food that grew anew, in one of the blooms. */
  private grown(mote: Mote): Mote {
    const { next } = this;
    const bloom = this.blooms[Math.floor(next() * BLOOMS)];
    const angle = next() * 2 * Math.PI;
    // Two draws make the middle denser.
    const distance = SPREAD * (next() + next());
    mote.x = within(bloom.x + Math.cos(angle) * distance, this.width);
    mote.y = within(bloom.y + Math.sin(angle) * distance, this.height);
    return mote;
  }

  /** A grazer that was caught makes room for a young one elsewhere. */
  private reborn(grazer: Creature): void {
    grazer.x = this.next() * this.width;
    grazer.y = this.next() * this.height;
    grazer.hunger = 0.5;
    grazer.age = 0;
  }
}

/** How many creatures there are. */
export const CREATURES = GRAZER.count + HUNTER.count;
