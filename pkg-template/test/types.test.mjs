// The types as an application sees them, under each way of resolving modules.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { tsc } from "./tsc.mjs";

const application = join(process.env.FRAMEBATCH_FACE, "..", "..");

for (const [name, module, resolution] of [
  ["types", "NodeNext", "NodeNext"],
  ["types", "ESNext", "Bundler"],
  ["types-without-entries", "NodeNext", "NodeNext"],
]) {
  test(`${name}: an application compiles, strictly, by ${resolution}`, () => {
    const source = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
    copyFileSync(source, join(application, `${name}.mts`));
    const { status, stdout } = spawnSync(
      process.execPath,
      [
        ...[tsc, `${name}.mts`, "--noEmit", "--strict", "--types", ""],
        ...["--target", "ES2022", "--lib", "ES2022,DOM,ESNext.Disposable"],
        ...["--module", module, "--moduleResolution", resolution],
      ],
      { cwd: application, encoding: "utf8" },
    );
    assert.equal(stdout, "");
    assert.equal(status, 0);
  });
}
