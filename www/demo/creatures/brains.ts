// The networks of the two species, out of the bytes that they are kept in.

import { type Floats, type Network, SIZES } from "./network.ts";
import type { SpeciesName } from "./species.ts";
import { WEIGHTS } from "./weights.ts";

/** Networks as they are kept: signed bytes in base64, and what one step of a byte is worth. */
export type Packed = Readonly<
  Record<
    SpeciesName,
    Readonly<Record<keyof Network, { step: number; bytes: string }>>
  >
>;

export const BRAINS: Readonly<Record<SpeciesName, Network>> = {
  grazer: unpacked("grazer"),
  hunter: unpacked("hunter"),
};

function unpacked(species: SpeciesName): Network {
  const floats = (part: keyof Network): Floats => {
    const { step, bytes } = WEIGHTS[species][part];
    const text = atob(bytes);
    if (text.length !== SIZES[part]) {
      throw new Error(`${part} of a ${species} has ${text.length} bytes`);
    }
    return Float32Array.from(
      text,
      (byte) => ((byte.charCodeAt(0) << 24) >> 24) * step,
    );
  };
  return {
    first: floats("first"),
    firstBias: floats("firstBias"),
    second: floats("second"),
    secondBias: floats("secondBias"),
  };
}
