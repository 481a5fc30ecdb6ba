// Runners of tests. Each runs one test, which asks and shows what it found by a file.

const FOUND = "found.json";
const SHOW = `writeFileSync("${FOUND}", JSON.stringify(found));`;
const ESM = `import { writeFileSync } from "node:fs";
import { answers } from "./answers.js";
test("answers", async () => {
  const found = await answers();
  ${SHOW}
});
`;
const COMMON = `const { writeFileSync } = require("node:fs");
const { answers } = require("./answers.cjs");
test("answers", async () => {
  const found = await answers();
  ${SHOW}
});
`;

async function shown(app) {
  return [{ mode: "run", ...JSON.parse(await app.read(FOUND)) }];
}

/** The questions as CommonJS. */
async function common(app) {
  for (const name of ["ask", "answers"]) {
    const js = await app.read(`${name}.js`);
    const cjs = js
      .replace(/import "(.*)";/, 'require("$1");')
      .replace(/import (\{.*\}) from "(.*)";/g, 'const $1 = require("$2");')
      .replace("./ask.js", "./ask.cjs")
      .replace(/export async function (\w+)/, "exports.$1 = async function $1");
    await app.write({ [`${name}.cjs`]: cjs });
  }
}

const jest = (name, { packages = [], environment = "node", isCommon }) => ({
  name,
  engine: "cpu",
  packages: ["jest@30", ...packages],
  type: isCommon ? "commonjs" : "module",
  files: {
    [isCommon ? "a.test.cjs" : "a.test.js"]: isCommon ? COMMON : ESM,
  },
  manifest: {
    jest: {
      testEnvironment: environment,
      transform: {},
      testMatch: ["**/a.test.*"],
    },
  },
  async run(app) {
    if (isCommon) await common(app);
    const env = isCommon ? {} : { NODE_OPTIONS: "--experimental-vm-modules" };
    await app.exec("jest", [], { env });
    return shown(app);
  },
});

const vitest = (name, environment, packages = []) => ({
  name,
  engine: "cpu",
  needsNewerNode: true,
  packages: ["vitest", "vite@8", ...packages],
  files: {
    "a.test.js": `import { test } from "vitest";\n${ESM}`,
    "vitest.config.mjs": `export default { test: { environment: "${environment}" } };\n`,
  },
  async run(app) {
    await app.exec("vitest", ["run"]);
    return shown(app);
  },
});

export default [
  vitest("vitest", "node"),
  vitest("vitest, jsdom", "jsdom", ["jsdom"]),
  jest("jest, CommonJS", { isCommon: true }),
  jest("jest, ES modules", {}),
  jest("jest, CommonJS, jsdom", {
    isCommon: true,
    environment: "jsdom",
    packages: ["jest-environment-jsdom@30"],
  }),
  {
    name: "node:test",
    engine: "cpu",
    files: { "a.test.js": `import { test } from "node:test";\n${ESM}` },
    async run(app) {
      await app.exec(process.execPath, ["--test"]);
      return shown(app);
    },
  },
];
