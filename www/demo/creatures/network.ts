// The network that creatures ask: 32 numbers in, 64 hidden ones by relu, 10 numbers out.
//
// Here are its sizes, the plain loop that a person would write, and the same in double
// precision, which every way is checked against. Nothing here uses a GPU.

export const [INPUTS, HIDDEN, OUTPUTS] = [32, 64, 10];

export type Floats = Float32Array<ArrayBuffer>;

/** The weights of a network, row by row: a row of `first` belongs to an input. */
export interface Network {
  readonly first: Floats;
  readonly firstBias: Floats;
  readonly second: Floats;
  readonly secondBias: Floats;
}

/** How many numbers each part of a network has, in the order of `Network`. */
export const SIZES: Readonly<Record<keyof Network, number>> = {
  first: INPUTS * HIDDEN,
  firstBias: HIDDEN,
  second: HIDDEN * OUTPUTS,
  secondBias: OUTPUTS,
};

/**
 * The network as a loop over typed arrays. It has two sums under way at a time, because a
 * processor waits for one sum alone; with four it is hardly faster.
 */
export class PlainLoop {
  private readonly hidden = new Float32Array(HIDDEN);

  constructor(private readonly network: Network) {}

  /** Answers each row of `inputs` by a row of `into`. */
  answer(inputs: Floats, into: Floats): void {
    const { hidden } = this;
    const { first, firstBias, second, secondBias } = this.network;
    const rows = inputs.length / INPUTS;
    for (let row = 0; row < rows; row++) {
      const from = row * INPUTS;
      for (let unit = 0; unit < HIDDEN; unit += 2) {
        let a = firstBias[unit];
        let b = firstBias[unit + 1];
        for (let i = 0, at = unit; i < INPUTS; i++, at += HIDDEN) {
          const input = inputs[from + i];
          a += input * first[at];
          b += input * first[at + 1];
        }
        hidden[unit] = a > 0 ? a : 0;
        hidden[unit + 1] = b > 0 ? b : 0;
      }
      for (let out = 0; out < OUTPUTS; out += 2) {
        let a = secondBias[out];
        let b = secondBias[out + 1];
        for (let i = 0, at = out; i < HIDDEN; i++, at += OUTPUTS) {
          a += hidden[i] * second[at];
          b += hidden[i] * second[at + 1];
        }
        into[row * OUTPUTS + out] = a;
        into[row * OUTPUTS + out + 1] = b;
      }
    }
  }
}

/** What is right for the rows of `inputs`, in double precision. */
export function expected(network: Network, inputs: Floats): Float64Array {
  const rows = inputs.length / INPUTS;
  const answers = new Float64Array(rows * OUTPUTS);
  const hidden = new Float64Array(HIDDEN);
  for (let row = 0; row < rows; row++) {
    hidden.set(network.firstBias);
    for (let i = 0; i < INPUTS; i++) {
      const input = inputs[row * INPUTS + i];
      for (let unit = 0; unit < HIDDEN; unit++) {
        hidden[unit] += input * network.first[i * HIDDEN + unit];
      }
    }
    for (let out = 0; out < OUTPUTS; out++) {
      let sum = network.secondBias[out];
      for (let unit = 0; unit < HIDDEN; unit++) {
        sum += Math.max(0, hidden[unit]) * network.second[unit * OUTPUTS + out];
      }
      answers[row * OUTPUTS + out] = sum;
    }
  }
  return answers;
}
