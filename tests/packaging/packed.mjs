// The npm package as a user gets it: packed, and installed in copies of these fixtures,
// in a folder outside the repository, so that nothing is found by accident.

import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

export const run = promisify(execFile);

/** Packs `pkg/`, and installs it in fixtures of these names. */
export async function packed(apps) {
  const folder = await mkdtemp(join(tmpdir(), "framebatch-"));
  const { stdout } = await run("npm", [
    ...["pack", resolve("pkg"), "--json", "--silent"],
    ...["--pack-destination", folder],
  ]);
  const [{ filename, files, version }] = JSON.parse(stdout);
  const tarball = join(folder, filename);
  for (const app of apps) {
    const cwd = join(folder, app);
    await cp(`tests/packaging/${app}`, cwd, { recursive: true });
    await run("npm", ["install", "--offline", "--no-audit", tarball], { cwd });
  }
  return {
    folder,
    tarball,
    version,
    files: files.map(({ path }) => path),
    remove: () => rm(folder, { recursive: true }),
  };
}
