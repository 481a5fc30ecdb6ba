// What the models of the AI SDK's entry warn of.

/** A warning, as the SDK shows it. */
export interface AiSdkWarning {
  type: "unsupported" | "compatibility";
  feature: string;
  details: string;
}

/** That something was asked for, and is not done. */
export function unsupported(feature: string, details: string): AiSdkWarning {
  return { type: "unsupported", feature, details };
}

/** A warning for every option under `providerOptions.framebatch` that is not `known`. */
export function otherOptions(given: object, known: object): AiSdkWarning[] {
  const details = `the options are ${Object.keys(known).join(", ")}`;
  return Object.keys(given)
    .filter((name) => !Object.hasOwn(known, name))
    .map((name) => unsupported(`providerOptions.framebatch.${name}`, details));
}
