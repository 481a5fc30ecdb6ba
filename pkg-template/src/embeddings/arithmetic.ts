// What a model's products are computed in, where its caller leaves a choice: 16-bit floats need a
// device that has them, and a model whose vectors hardly change.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError } from "../checks/errors.js";
import type { EmbedderOptions } from "./loading-options.js";
import type { Model } from "./model.js";
import { cosine } from "./self-test.js";
import { ABOUT } from "./source.js";
import { EMBED, TokenOperands } from "./token-operands.js";

/** The feature without which there are no 16-bit floats in kernels. */
const FEATURE = "shader-f16";

/**
 * Settles what a model is computed in. Texts pass it in both arithmetics, unless the caller asks for
 * 16 bits without a test. Rejects with `unsupported` where the caller asks for what does not suit.
 */
export async function chooseArithmetic(
  model: Model,
  textsOf: () => readonly Uint32Array[],
  { arithmetic = "f32", verify = true, signal }: EmbedderOptions,
): Promise<void> {
  if (arithmetic === "f32") return;
  try {
    model.checkArithmetic(1);
    refuseDevice(model);
    const isTested = arithmetic === "auto" || verify;
    const texts = isTested ? textsOf() : [];
    const full = isTested ? await vectors(model, texts, signal) : [];
    model.computeIn("f16");
    if (!isTested) return;
    const half = await vectors(model, texts, signal);
    const cosines = full.map((vector, i) => cosine(vector, half[i]));
    model.checkArithmetic(Math.min(1, ...cosines));
  } catch (error) {
    const isRefusal =
      error instanceof FramebatchError && error.code === "unsupported";
    if (!isRefusal || arithmetic === "f16") throw error;
    model.computeIn("f32");
  }
}

function refuseDevice({ calls }: Model): void {
  if (calls.core === undefined) throw endedError(ABOUT, calls.ended!);
  const { features } = calls.core.info();
  if (features.includes(FEATURE)) return;
  throw new FramebatchError(
    "unsupported",
    `${ABOUT}: 16-bit arithmetic needs a GPU with the feature ${FEATURE}; ` +
      "load the model with the arithmetic f32, or auto",
  );
}

/** The vectors of texts on the GPU, at once and without the calls of others. */
function vectors(
  model: Model,
  texts: readonly Uint32Array[],
  signal: AbortSignal | undefined,
): Promise<Float32Array[]> {
  const options = { engine: "gpu", priority: "high", signal } as const;
  const answers = texts.map((ids) => {
    const operands = new TokenOperands(EMBED, model, ids);
    return model.calls.take<Float32Array>(operands, options);
  });
  return Promise.all(answers);
}
