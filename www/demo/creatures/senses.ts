// What a creature senses, as the rows that its network reads: one for each of eight
// headings that it could take.
//
// Each row tells the surroundings as seen from that heading. Nothing here decides
// anything.

import { INPUTS, type Floats } from "./network.ts";

/** Headings that a creature weighs; the first is straight on, the others go round. */
export const HEADINGS = 8;
export const TURN = (2 * Math.PI) / HEADINGS;

/** What is told apart around a creature. */
export type Sight = "food" | "kin" | "others";
const SIGHTS: readonly Sight[] = ["food", "kin", "others"];
/** How soon many things in one sector are as much as can be. */
const GAIN: Readonly<Record<Sight, number>> = { food: 2, kin: 1.2, others: 4 };

/** What a creature knows of itself. */
export interface Feeling {
  /** Where it looks, in radians. */
  heading: number;
  /** From 0 to 1 of what it can. */
  speed: number;
  hunger: number;
  /** Which side it likes at the moment, from -1 to 1. */
  whim: number;
}

export class Senses {
  /** Nearness of things by sight and by sector, which go round from straight on. */
  private readonly sectors = new Float32Array(SIGHTS.length * HEADINGS);
  /** Where kin are heading, nearer kin more. */
  private kinX = 0;
  private kinY = 0;

  clear(): void {
    this.sectors.fill(0);
    this.kinX = this.kinY = 0;
  }

  /** Sees a thing at an angle from straight on; `nearness` is 1 for the closest. */
  see(sight: Sight, angle: number, nearness: number): void {
    const turns = angle / (2 * Math.PI);
    const at = (turns - Math.floor(turns)) * HEADINGS;
    const low = Math.floor(at);
    const share = at - low;
    const first = SIGHTS.indexOf(sight) * HEADINGS;
    const weight = nearness * nearness * GAIN[sight];
    this.sectors[first + (low % HEADINGS)] += weight * (1 - share);
    this.sectors[first + ((low + 1) % HEADINGS)] += weight * share;
  }

  seeKinHeading(heading: number, nearness: number): void {
    this.kinX += nearness * Math.cos(heading);
    this.kinY += nearness * Math.sin(heading);
  }

  /** Writes the rows of all headings. */
  tell(feeling: Feeling, into: Floats): void {
    const { sectors } = this;
    for (let i = 0; i < sectors.length; i++) {
      sectors[i] = 1 - Math.exp(-sectors[i]);
    }
    const [kin, others] = [this.total("kin"), this.total("others")];
    const together = Math.hypot(this.kinX, this.kinY) + 0.5;
    for (let row = 0; row < HEADINGS; row++) {
      let at = row * INPUTS;
      for (let first = 0; first < sectors.length; first += HEADINGS) {
        for (let k = 0; k < HEADINGS; k++) {
          into[at++] = sectors[first + ((row + k) % HEADINGS)];
        }
      }
      const [cos, sin] = [Math.cos(row * TURN), Math.sin(row * TURN)];
      const way = feeling.heading + row * TURN;
      into[at++] = cos;
      into[at++] = sin;
      into[at++] = feeling.whim * sin;
      into[at++] = feeling.speed;
      into[at++] = feeling.hunger;
      into[at++] =
        (this.kinX * Math.cos(way) + this.kinY * Math.sin(way)) / together;
      into[at++] = kin;
      into[at++] = others;
    }
  }

  private total(sight: Sight): number {
    const first = SIGHTS.indexOf(sight) * HEADINGS;
    let sum = 0;
    for (let k = 0; k < HEADINGS; k++) sum += this.sectors[first + k];
    return 1 - Math.exp(-sum);
  }
}
