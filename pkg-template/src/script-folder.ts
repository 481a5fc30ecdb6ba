// Tells where the package's scripts lie: beside the folders, because a bundle lies as deep
// as this file does.

/** The address of the folder of the package's scripts; empty where scripts have none. */
export function scriptFolder(): string {
  // Bundlers would take `new URL(…)` for the address of an asset.
  return import.meta.url?.replace(/[^/]*$/, "") ?? "";
}
