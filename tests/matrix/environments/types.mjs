// TypeScript, by each way in which it looks for a module, and the checkers of packages.

const MAIN = `import { open, type Session } from "framebatch";
import "framebatch/animation";
import "framebatch/inline";
import module from "framebatch/framebatch_bg.wasm";

export const opened: Promise<Session> = open({ wasm: module });
export const clip = async () =>
  (await opened).clip({ tracks: [{ times: [0, 1], values: [0, 1] }] });
`;
// CommonJS: the types are those of the scripts that \`require\` gets.
const COMMON = `import framebatch = require("framebatch");
import "framebatch/animation";

export const opened: Promise<framebatch.Session> = framebatch.open();
export const clip = async () =>
  (await opened).clip({ tracks: [{ times: [0, 1], values: [0, 1] }] });
`;

const WAYS = [
  { module: "ESNext", moduleResolution: "bundler" },
  { module: "Node16", moduleResolution: "node16" },
  { module: "NodeNext", moduleResolution: "nodenext" },
];

const typescript = (version, types = []) => ({
  name: `TypeScript ${version}`,
  isTypes: true,
  packages: [`typescript@${version}`, ...types],
  steps: types.length > 0 ? `npm \`${types[0]}\`` : undefined,
  files: { "main.ts": MAIN, "common.cts": COMMON },
  async run(app) {
    for (const way of WAYS) {
      const config = {
        compilerOptions: {
          ...way,
          target: "ES2022",
          lib: ["ES2022", "DOM", "ESNext.Disposable"],
          types,
          strict: true,
          noEmit: true,
          skipLibCheck: false,
        },
        // Bundlers' modules have no CommonJS.
        files: ["main.ts", ...(way.module === "ESNext" ? [] : ["common.cts"])],
      };
      await app.write({ "tsconfig.json": JSON.stringify(config) });
      await app.exec("tsc", ["-p", "."]);
    }
    return [{ mode: WAYS.map((way) => way.moduleResolution).join(", ") }];
  },
});

export default [
  // Its own types of pages know no WebGPU yet.
  typescript("5.7", ["@webgpu/types"]),
  typescript("7"),
  {
    name: "attw",
    isTypes: true,
    packages: ["@arethetypeswrong/cli"],
    async run(app) {
      const { tarball } = app.shared;
      // What holds a WebAssembly file is a module alone; the files are modules where a bundler
      // makes them so.
      await app.exec("attw", [
        ...[tarball, "--format", "ascii", "--no-emoji"],
        ...["--ignore-rules", "cjs-resolves-to-esm"],
        ...["--exclude-entrypoints", "framebatch_bg.wasm"],
        ...["framebatch_bg_scalar.wasm", "embeddings_bg.wasm"],
        ...["tokenizers_bg.wasm"],
      ]);
      return [{ mode: "node10, node16, bundler" }];
    },
  },
];
