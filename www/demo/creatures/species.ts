// The two species: how fast each is, and how hunger works on it.
//
// What a creature does with that is its network's choice.

/** What a species is like; lengths in units of the world, times in seconds. */
export interface Species {
  readonly name: SpeciesName;
  /** How many there are, always: a grazer that is eaten makes room for a young one. */
  readonly count: number;
  readonly length: number;
  /** The fastest it goes, units a second. */
  readonly topSpeed: number;
  /** Radians a second. */
  readonly turnRate: number;
  /** How much hungrier it gets a second; 1 is starving. */
  readonly appetite: number;
  /** How much less hungry a meal makes it. */
  readonly meal: number;
  /** How near its food has to be. */
  readonly reach: number;
}

export type SpeciesName = "grazer" | "hunter";

export const GRAZER: Species = {
  name: "grazer",
  count: 540,
  length: 15,
  topSpeed: 90,
  turnRate: 5,
  appetite: 0.07,
  meal: 0.3,
  reach: 8,
};

export const HUNTER: Species = {
  name: "hunter",
  count: 60,
  length: 34,
  topSpeed: 115,
  turnRate: 3,
  appetite: 0.05,
  meal: 0.7,
  reach: 11,
};

export const SPECIES: readonly Species[] = [GRAZER, HUNTER];
