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

/** The network as a loop over typed arrays, with weights in the order in which it reads them. */
export class PlainLoop {
  private readonly first: Floats;
  private readonly second: Floats;
  private readonly hidden = new Float32Array(HIDDEN);

  constructor(private readonly network: Network) {
    this.first = transposed(network.first, HIDDEN);
    this.second = transposed(network.second, OUTPUTS);
  }

  /** Answers each row of `inputs` by a row of `into`. */
  answer(inputs: Floats, into: Floats): void {
    const { first, second, hidden } = this;
    const { firstBias, secondBias } = this.network;
    const rows = inputs.length / INPUTS;
    for (let row = 0; row < rows; row++) {
      const from = row * INPUTS;
      for (let unit = 0, at = 0; unit < HIDDEN; unit++, at += INPUTS) {
        let sum = firstBias[unit];
        for (let i = 0; i < INPUTS; i++)
          sum += inputs[from + i] * first[at + i];
        hidden[unit] = sum > 0 ? sum : 0;
      }
      const to = row * OUTPUTS;
      for (let out = 0, at = 0; out < OUTPUTS; out++, at += HIDDEN) {
        let sum = secondBias[out];
        for (let i = 0; i < HIDDEN; i++) sum += hidden[i] * second[at + i];
        into[to + out] = sum;
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

function transposed(matrix: Floats, columns: number): Floats {
  const rows = matrix.length / columns;
  return Float32Array.from(
    matrix,
    (_, at) => matrix[(at % rows) * columns + Math.floor(at / rows)],
  );
}
