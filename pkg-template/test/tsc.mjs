// Where the TypeScript compiler's script is.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const typescript = createRequire(import.meta.url).resolve(
  "typescript/package.json",
);

/** To be run by Node. */
export const tsc = join(dirname(typescript), "bin", "tsc");
