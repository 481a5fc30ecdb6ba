// The bench of callers' own kernels, as built: every system answers within its bound, the
// stencil by hand and by framebatch are right, and its record is posted when asked.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { result, usePage } from "./bench-page.mjs";
import { longTest, openBuilt } from "./site.mjs";

const site = openBuilt();

const SYSTEMS = [
  ...["one-batch", "framebatch-gpu", "typegpu"],
  ...["gpu-js", "per-call", "cpu-loop"],
];

longTest(
  "every system answers calls of kernels and of traced chains, and steps of a stencil",
  () =>
    usePage(
      site,
      "/bench/kernels/",
      {
        report: "",
        quick: "",
        workloads: "kernel-10x64,fn-10x64,stencil-256x256-100",
      },
      async (page) => {
        const record = await result(page);
        const told = record.rows.map((row) => [
          row.workload,
          row.system,
          row.problem,
        ]);
        const of = (workload, systems) =>
          systems.map((system) => [workload, system, undefined]);
        assert.deepEqual(told, [
          ...of("kernel-10x64", SYSTEMS),
          ...of("fn-10x64", SYSTEMS),
          ...of("stencil-256x256-100", ["one-batch", "framebatch-gpu"]),
        ]);
        for (const { workload, system, error } of record.rows) {
          assert.ok(error <= 2e-6, `${workload} ${system}: error ${error}`);
        }
        const posted = await page.evaluate(() => window.posted);
        assert.deepEqual(JSON.parse(posted["/report"]), record);
      },
      () => {
        window.posted = {};
        const { fetch } = window;
        window.fetch = (to, options) => {
          if (options?.method !== "POST") return fetch(to, options);
          window.posted[to] = options.body;
          return Promise.resolve(new Response());
        };
      },
    ),
);
