// A few environments of `make matrix`, as quick as a test can be; Vite and TypeScript are those of
// package.test.mjs and types.test.mjs.

import { after, before, test } from "node:test";
import { ENVIRONMENTS, prepare, runOne } from "../matrix/matrix.mjs";

let shared;

before(async () => {
  shared = await prepare({ needsNewerNode: false });
});

after(() => shared?.close());

for (const environment of ENVIRONMENTS) {
  const { name, quick } = environment;
  if (quick) test(name, () => runOne({ ...environment, ...quick }, shared));
}
