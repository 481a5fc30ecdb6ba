// A creature: it senses, asks its species' network about eight headings, and goes by the answer.
//
// A creature makes its own call and knows neither the other calls nor how they are answered.

import { Grid } from "./grid.ts";
import { type Floats, INPUTS, OUTPUTS } from "./network.ts";
import { HEADINGS, Senses, TURN } from "./senses.ts";
import type { Species, SpeciesName } from "./species.ts";

/** What a creature asks: rows of the network of its species, answered in `into`. */
export interface Question {
  readonly species: SpeciesName;
  readonly inputs: Floats;
  readonly into: Floats;
}

/** Answers a question, now or later. */
export type Ask = (question: Question) => unknown;

/** What a creature may eat without asking: it is not one itself. */
export interface Mote {
  x: number;
  y: number;
}

/** How fast a creature comes to the speed that it wants, a second. */
const EAGER = 4;

export class Creature {
  readonly inputs: Floats = new Float32Array(HEADINGS * INPUTS);
  /** For each heading, how good each of ten speeds is. */
  readonly answers: Floats = new Float32Array(HEADINGS * OUTPUTS);
  speed = 0;
  hunger: number;
  /** How much it sees of the other species, from 0 to 1. */
  alarm = 0;
  /** Where in its stroke its tail is, in radians. */
  stroke: number;
  /** Seconds since it was born. */
  age = 10;
  /** What it can eat now. */
  prey: Creature | Mote | undefined;
  private preyDistance = 0;
  private readonly senses = new Senses();
  private readonly whim: number;
  private wanted = { heading: 0, speed: 0.3 };

  constructor(
    readonly species: Species,
    public x: number,
    public y: number,
    public heading: number,
    /** A number from 0 to 1 that makes it unlike others. */
    readonly nature: number,
  ) {
    this.hunger = nature;
    this.stroke = nature * 40;
    this.whim = 0.4 + nature;
    this.wanted.heading = heading;
  }

  /** Looks around at a time in seconds. */
  sense(creatures: Grid<Creature>, food: Grid<Mote>, seconds: number): void {
    const { senses, species } = this;
    senses.clear();
    this.prey = undefined;
    this.preyDistance = species.reach;
    this.alarm = 0;
    food.near(this, (mote, dx, dy, distance) => {
      senses.see("food", this.angle(dx, dy), 1 - distance / food.range);
      if (species.name === "grazer") this.aim(mote, distance);
    });
    creatures.near(this, (other, dx, dy, distance) => {
      const nearness = 1 - distance / creatures.range;
      const isKin = other.species === species;
      senses.see(isKin ? "kin" : "others", this.angle(dx, dy), nearness);
      if (isKin) {
        senses.seeKinHeading(other.heading, nearness);
        return;
      }
      this.alarm = Math.max(this.alarm, nearness);
      if (species.name === "hunter") this.aim(other, distance);
    });
    const whim = Math.sin(seconds * this.whim + this.nature * 40);
    const { heading, hunger } = this;
    const speed = this.speed / species.topSpeed;
    senses.tell({ heading, hunger, speed, whim }, this.inputs);
  }

  /** Asks about so many of its headings, and has the answer when `ask` has given it. */
  think(ask: Ask, headings: number): unknown {
    return ask({
      species: this.species.name,
      inputs: this.inputs.subarray(0, headings * INPUTS),
      into: this.answers.subarray(0, headings * OUTPUTS),
    });
  }

  /** Makes up its mind: the better an answer, the more of it. */
  decide(): void {
    const { answers } = this;
    let best = -Infinity;
    for (const answer of answers) best = Math.max(best, answer);
    let [dx, dy, speed, all] = [0, 0, 0, 0];
    for (let row = 0, at = 0; row < HEADINGS; row++) {
      let share = 0;
      for (let gait = 1; gait <= OUTPUTS; gait++, at++) {
        const weight = Math.exp(answers[at] - best);
        share += weight;
        speed += (weight * gait) / OUTPUTS;
      }
      all += share;
      dx += share * Math.cos(row * TURN);
      dy += share * Math.sin(row * TURN);
    }
    this.wanted.heading = this.heading + Math.atan2(dy, dx);
    this.wanted.speed = (speed / all) * this.species.topSpeed;
  }

  /** Goes on where it wants to. */
  move(seconds: number): void {
    const { species, wanted } = this;
    const turn = wanted.heading - this.heading;
    const most = species.turnRate * seconds;
    this.heading += Math.min(most, Math.max(-most, turn));
    this.speed += (wanted.speed - this.speed) * Math.min(1, EAGER * seconds);
    this.x += Math.cos(this.heading) * this.speed * seconds;
    this.y += Math.sin(this.heading) * this.speed * seconds;
    this.hunger = Math.min(1, this.hunger + species.appetite * seconds);
    this.age += seconds;
    const strokes = 5 + (14 * this.speed) / species.topSpeed;
    this.stroke += strokes * seconds;
  }

  eat(): void {
    this.hunger = Math.max(0, this.hunger - this.species.meal);
  }

  private aim(prey: Creature | Mote, distance: number): void {
    if (distance >= this.preyDistance) return;
    this.prey = prey;
    this.preyDistance = distance;
  }

  private angle(dx: number, dy: number): number {
    return Math.atan2(dy, dx) - this.heading;
  }
}
