// The bench page, as built: every system answers, what is wrong is told, it stops
// when asked, and its record has the fields that are promised.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { report } from "../../tools/bench-report.mjs";
import { problemsOf } from "../../tools/contributed.mjs";
import { result, usePage } from "./bench-page.mjs";
import { lightTest as test, longTest, openBuilt, testIn } from "./site.mjs";

const SYSTEMS = [
  "one-batch",
  "framebatch-gpu",
  "framebatch-cpu",
  "framebatch-auto",
  "cpu-loop",
  "per-call",
  "tfjs",
  "tfjs-gpu",
  "jax-js",
];

/** Rows of 10,000 tracks, by how many of them a call samples. */
const TRACKS = ["", "-by-100", "-by-1"].map((by) => `clip-10k-tracks${by}`);

const site = openBuilt();

/** Opens the page with this query, `prepare`d before its scripts run. */
const bench = (query, use, prepare) =>
  usePage(site, "/bench/", query, use, prepare);

test("every system answers, within its bound, and is shown", () =>
  bench({ run: "", quick: "", workloads: "small-lerp-1x16" }, async (page) => {
    const { rows, cancelled } = await result(page);
    assert.equal(cancelled, false);
    assert.deepEqual(
      rows.map(({ system, problem }) => [system, problem]),
      SYSTEMS.map((system) => [system, undefined]),
    );
    for (const { system, runs, median, p95, min, ratio, error } of rows) {
      assert.ok(runs >= 1, `${system}: ${runs} runs`);
      assert.ok(min <= median && median <= p95, system);
      assert.ok(ratio >= 0, `${system}: ratio ${ratio}`);
      assert.ok(error <= 3e-7, `${system}: error ${error}`);
    }
    const shown = await page.$$eval("#results tbody th", (cells) =>
      cells.map((cell) => cell.textContent),
    );
    assert.deepEqual(shown, SYSTEMS);
  }));

longTest("the other operations: every system's answers are right", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "slerp-1e5,gradients-1e5",
      systems: "one-batch,per-call,cpu-loop,tfjs-gpu,jax-js,framebatch-gpu",
    },
    async (page) => {
      const { rows } = await result(page);
      const problems = rows.filter(({ problem }) => problem);
      assert.deepEqual(problems, []);
    },
  ),
);

longTest("chains: every system's answers are right", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "small-256x256,deep5-1e4,deep5-resident-1e4,trace-chain",
    },
    async (page) => {
      const { rows } = await result(page);
      const problems = rows.filter(({ problem }) => problem);
      assert.deepEqual(problems, []);
      const of = (name) =>
        rows.filter(({ workload }) => workload === name).map((r) => r.system);
      assert.deepEqual(of("small-256x256"), SYSTEMS);
      assert.deepEqual(of("deep5-1e4"), SYSTEMS);
      // Who uploads each time has nothing that stays.
      const others = SYSTEMS.filter((system) => system !== "per-call");
      assert.deepEqual(of("deep5-resident-1e4"), others);
    },
  ),
);

test("in rounds systems take turns, and a row is the round in the middle", () =>
  bench(
    {
      run: "",
      quick: "",
      rounds: 3,
      workloads: "small-lerp-1x16",
      systems: "framebatch-cpu,cpu-loop",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.deepEqual(
        rows.map(({ system, rounds }) => [system, rounds.length]),
        [
          ["framebatch-cpu", 3],
          ["cpu-loop", 3],
        ],
      );
      for (const { median, rounds } of rows) {
        assert.equal(median, rounds.toSorted((a, b) => a - b)[1]);
      }
      const turns = await page.evaluate(() => window.turns);
      assert.deepEqual(turns, [
        ...["framebatch-cpu", "cpu-loop", "framebatch-cpu"],
        ...["cpu-loop", "framebatch-cpu", "cpu-loop"],
      ]);
    },
    // What the page tells while it measures.
    () => {
      window.turns = [];
      const told = new MutationObserver(() => {
        const text = document.querySelector("#state")?.textContent ?? "";
        const [, system] = /^small-lerp-1x16: (.+)$/.exec(text) ?? [];
        if (system && system !== window.turns.at(-1)) window.turns.push(system);
      });
      told.observe(document, { childList: true, subtree: true });
    },
  ));

longTest(
  "clips: every system's rows are right, also in the buffer that is drawn from",
  () =>
    bench(
      {
        run: "",
        quick: "",
        workloads: "clip-10k,clip-100k",
        // A system with 100,000 submissions would take a minute here.
        systems: "one-batch,framebatch,cpu-loop,animation-mixer",
      },
      async (page) => {
        const { rows } = await result(page);
        const told = rows.map((row) => [row.workload, row.system, row.problem]);
        const both = ["one-batch", "framebatch-gpu"];
        const engines = ["framebatch-cpu", "framebatch-auto"];
        const pages = ["cpu-loop", "animation-mixer"];
        const of = (name, systems) =>
          systems.map((system) => [name, system, undefined]);
        assert.deepEqual(told, [
          ...TRACKS.flatMap((name) =>
            of(name, [...both, ...engines, ...pages]),
          ),
          ...of("clip-100k", [...both, ...pages]),
        ]);
      },
    ),
);

longTest(
  "products of matrices: every system's answers are right, and long ones wait to be asked for",
  () =>
    bench(
      {
        run: "",
        quick: "",
        workloads: "matmul-256",
      },
      async (page) => {
        const { rows } = await result(page);
        const told = rows.map(({ system, problem }) => [system, problem]);
        assert.deepEqual(
          told,
          SYSTEMS.map((system) => [system, undefined]),
        );
        await page.goto(`${site.url}/bench/?rounds=1`);
        await page.waitForSelector("[name=systems]");
        const unticked = await page.$$eval("[name=workloads]", (boxes) =>
          boxes.filter(({ checked }) => !checked).map(({ value }) => value),
        );
        assert.deepEqual(unticked, [
          ...["matmul-1024", "matmul-4096", "matmul-kernel-256"],
          ...["matmul-kernel-1024", "matmul-kernel-4096"],
          ...["search-100k-1", "search-100k-64"],
          ...TRACKS,
          ...["clip-100k", "trace-matmul-1024"],
        ]);
      },
    ),
);

longTest("a network of many callers", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "network-500",
      // tfjs takes 20 s a run here.
      systems: "one-batch,framebatch,cpu-loop,per-call",
    },
    async (page) => {
      const { rows } = await result(page);
      const problems = rows.filter(({ problem }) => problem);
      assert.deepEqual(problems, []);
      assert.equal(rows.length, 6);
    },
  ),
);

longTest("a product by itself", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "matmul-kernel-256",
      systems: "framebatch",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.equal(rows.length, 1);
      const { parts, median, problem } = rows[0];
      assert.equal(problem, undefined);
      assert.deepEqual(Object.keys(parts), [
        ...["teraflops", "chainOf4", "chainOf36"],
      ]);
      const both = parts.chainOf36 - parts.chainOf4;
      // On a busy machine the longer chain may take less.
      assert.ok(Math.abs(median - both / 32) <= 1e-6 * Math.abs(both));
    },
  ),
);

test("a wrong answer is told, and not timed", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "small-lerp-1x16",
      systems: "one-batch,per-call,cpu-loop",
    },
    async (page) => {
      const { rows } = await result(page);
      const told = Object.fromEntries(
        rows.map(({ system, problem = "", runs }) => [system, [problem, runs]]),
      );
      for (const system of ["one-batch", "per-call"]) {
        assert.match(told[system][0], /call 0 is wrong by/);
        assert.equal(told[system][1], 0);
      }
      assert.equal(told["cpu-loop"][0], "");
    },
    () => {
      GPUQueue.prototype.writeBuffer = () => {};
    },
  ));

test("a system that cannot run is shown with its reason", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "small-lerp-1x16",
      systems: "one-batch,framebatch",
    },
    async (page) => {
      const { rows, adapter } = await result(page);
      assert.equal(adapter, "no adapter");
      assert.deepEqual(
        rows.map(({ system, problem }) => [system, problem !== undefined]),
        [
          ["one-batch", true],
          ["framebatch-gpu", true],
          ["framebatch-cpu", false],
          ["framebatch-auto", false],
        ],
      );
      const shown = await page.$$eval("#results .problem", (cells) =>
        cells.map((cell) => cell.textContent),
      );
      assert.equal(shown.length, 2);
      assert.equal(shown[0], "no WebGPU adapter");
    },
    () =>
      Object.defineProperty(Navigator.prototype, "gpu", {
        get: () => undefined,
      }),
  ));

test("cancel stops it: what is on its way ends, and nothing follows", () =>
  bench(
    {
      run: "",
      quick: "",
      workloads: "small-lerp",
      systems: "one-batch,framebatch,per-call",
    },
    async (page) => {
      await page.waitForSelector("#results tbody tr");
      await page.click("#cancel");
      const { rows, cancelled } = await result(page);
      assert.equal(cancelled, true);
      assert.ok(rows.length >= 1 && rows.length < 35, `${rows.length} rows`);
      const state = await page.$eval("#state", (line) => line.textContent);
      assert.match(state, /^Stopped/);
      const before = await page.evaluate(() => window.submits);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(await page.evaluate(() => window.submits), before);
      // The bench can be started again.
      assert.equal(
        await page.$eval("#run", (button) => button.disabled),
        false,
      );
    },
    () => {
      window.submits = 0;
      const { submit } = GPUQueue.prototype;
      GPUQueue.prototype.submit = function (buffers) {
        window.submits++;
        submit.call(this, buffers);
      };
    },
  ));

test("the record: what is promised, as a download, as a post and as tables", () =>
  bench(
    {
      report: "",
      quick: "",
      workloads: "first-call,paced,main-thread,trace-lerp-1000x64",
      systems: "framebatch-gpu",
    },
    async (page) => {
      const record = await result(page);
      const { rows, workloads, systems, ...rest } = record;
      assert.deepEqual(Object.keys(rest).sort(), [
        ...["adapter", "browser", "cancelled", "cores", "date"],
        ...["isolated", "quick", "seconds", "software"],
      ]);
      assert.deepEqual(Object.keys(systems), ["framebatch-gpu"]);
      assert.deepEqual(
        workloads.map(({ name }) => name),
        rows.map(({ workload }) => workload),
      );
      const parts = Object.fromEntries(
        rows.map(({ workload, problem, parts }) => {
          assert.equal(problem, undefined, workload);
          for (const [name, part] of Object.entries(parts)) {
            assert.ok(Number.isFinite(part), `${workload} ${name}: ${part}`);
          }
          return [workload, Object.keys(parts)];
        }),
      );
      const paced = [
        ...["flushToLast", "mainThread", "submit"],
        ...["flush", "settle", "aside", "wait"],
      ];
      const { "main-thread-10000x16": costs, ...others } = parts;
      // Bytes are told only where the browser knows them.
      assert.deepEqual(costs.slice(0, 3), ["submit", "flush", "settle"]);
      assert.deepEqual(others, {
        "first-call": ["open", "longestTaskInOpen", "longestTaskInCall"],
        "paced-frame-1000x64": paced,
        "paced-eager-1000x64": paced,
        "trace-lerp-1000x64": [
          ...["calls", "plan", "upload", "encode"],
          ...["queue", "wait", "settle", "reactions"],
        ],
      });
      const posted = await page.evaluate(() => window.posted);
      const logs = posted.filter(({ to }) => to === "/log");
      assert.equal(logs.length, rows.length);
      const { to, body } = posted.at(-1);
      assert.equal(to, "/report");
      assert.deepEqual(JSON.parse(body), record);

      await page.click("#download");
      const file = await page.evaluate(() => window.saved.text());
      assert.deepEqual(JSON.parse(file), record);

      const text = report(record);
      for (const { name } of workloads) assert.ok(text.includes(`| ${name}`));
    },
    () => {
      window.posted = [];
      const { fetch } = window;
      window.fetch = (to, options) => {
        if (options?.method !== "POST") return fetch(to, options);
        window.posted.push({ to, body: options.body });
        return Promise.resolve(new Response());
      };
      const { createObjectURL } = URL;
      URL.createObjectURL = (blob) => {
        window.saved = blob;
        return createObjectURL.call(URL, blob);
      };
    },
  ));

testIn(
  "chromium",
  "a first visit: five rows in plain words, measured by one button, to be shared",
  () =>
    bench(
      {},
      async (page) => {
        await page.waitForSelector("[name=systems]");
        const ticked = (of) =>
          page.$$eval(`[name=${of}]:checked`, (boxes) =>
            boxes.map(({ value }) => value),
          );
        assert.deepEqual(await ticked("workloads"), [
          ...["small-lerp-1000x16", "small-1000x64", "deep5-1e6"],
          ...["network-500", "texts-16"],
        ]);
        const titles = await page.$$eval("#stories h2", (all) =>
          all.map(({ textContent }) => textContent),
        );
        assert.equal(titles.length, 5);
        const sentences = await page.$$eval("#choice small", (all) =>
          all.map(({ textContent }) => textContent),
        );
        assert.ok(sentences.every((text) => text.length > 20));
        // Two of the five: what else is ticked takes a software adapter too long.
        await page.evaluate(() => {
          const wanted = ["small-lerp-1000x16", "texts-16"];
          const systems = [
            ...["framebatch-auto", "framebatch-awaited"],
            ...["cpu-loop", "one-batch"],
          ];
          for (const box of document.querySelectorAll(
            "#choice [type=checkbox]",
          )) {
            box.checked = [...wanted, ...systems, "on"].includes(box.value);
          }
          document.querySelector("#choice").requestSubmit();
        });
        const { rows, adapter } = await result(page);
        assert.deepEqual(
          rows.map(({ workload, system, problem }) => [
            workload,
            system,
            problem,
          ]),
          [
            ["small-lerp-1000x16", "one-batch", undefined],
            ["small-lerp-1000x16", "framebatch-auto", undefined],
            ["small-lerp-1000x16", "cpu-loop", undefined],
            ["texts-16", "framebatch-auto", undefined],
            ["texts-16", "framebatch-awaited", undefined],
          ],
        );
        const here = await page.$$eval("#stories .here", (bars) => bars.length);
        // What is no part of the five is measured, and told below them.
        assert.equal(here, rows.length - 1);
        const shown = await page.$$eval("#stories .here", (bars) =>
          bars.map(({ textContent }) => textContent),
        );
        const short = rows.filter(
          ({ system, median }) => system !== "one-batch" && median === 0,
        ).length;
        assert.ok(short > 0, "the clock goes in steps that a loop fits into");
        const untold = shown.filter((text) => /less than the clock/.test(text));
        assert.equal(untold.length, short);
        assert.ok((await page.$$("#stories .there")).length > 5);

        await page.click("#share-file");
        const text = await page.evaluate(() => window.saved.text());
        assert.deepEqual(problemsOf(text), []);
        assert.equal(JSON.parse(text).adapter, adapter);
        assert.equal(JSON.parse(text).rows.length, here);
        await page.evaluate(() => (window.saved = undefined));
        await page.click("#share-picture");
        await page.waitForFunction(() => window.saved !== undefined);
        const { type, size } = await page.evaluate(() => ({
          type: window.saved.type,
          size: window.saved.size,
        }));
        assert.equal(type, "image/png");
        assert.ok(size > 10_000, `${size} bytes`);
      },
      () => {
        // Coarser than that of any browser.
        const { now } = Performance.prototype;
        performance.now = () => Math.floor(now.call(performance) / 20) * 20;
        const { createObjectURL } = URL;
        URL.createObjectURL = (blob) => {
          window.saved = blob;
          return createObjectURL.call(URL, blob);
        };
      },
    ),
);

test("a number of rounds that is none is refused", () =>
  bench({ run: "", rounds: 0 }, async (page) => {
    const { problem } = await result(page);
    assert.equal(problem, "Error: rounds are 1 to 99, not 0");
  }));

test("a name that is not there is refused", () =>
  bench({ run: "", quick: "", workloads: "nothing" }, async (page) => {
    const { problem } = await result(page);
    assert.match(problem, /none of the workloads is called nothing/);
  }));
