// When the devices are measured, and what is remembered of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";

const { Calibrator } = await module("session/calibrator");

const KEY = "framebatch 1.2.3 Some GPU 42 2";

/** A core that has numbers to measure, a store, and idle time when the test says so. */
function world({
  facts = [1, 2],
  kept = {},
  adapter = "Some GPU",
  routes = true,
} = {}) {
  const items = new Map(Object.entries(kept));
  const idle = [];
  const core = {
    facts: Float64Array.from(facts),
    calibrated: false,
    calibrations: 0,
    info: () => ({
      adapter,
      driver: "42",
      version: "1.2.3",
      routing: routes ? { calibrated: core.calibrated } : undefined,
    }),
    model: () => core.facts,
    set_model(given) {
      // The core refuses numbers that no device can have, and so does this fake.
      if (given.some((fact) => !(fact >= 0))) return;
      core.facts = given;
      core.calibrated = true;
    },
    calibrate(done) {
      core.calibrations += 1;
      core.finish = (measured) => {
        if (measured) core.set_model(Float64Array.from(measured));
        done();
      };
    },
  };
  const store = {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => items.set(key, value),
  };
  const host = { store, whenIdle: (callback) => idle.push(callback) };
  const rest = () => idle.splice(0).forEach((callback) => callback());
  return { core, items, host, rest };
}

test("the devices are measured once, after the first answer, in idle time", () => {
  const { core, items, host, rest } = world();
  const calibrator = new Calibrator(core, host);
  rest();
  assert.equal(core.calibrations, 0, "before the first answer");
  calibrator.returned();
  assert.equal(core.calibrations, 0, "while the page is busy");
  rest();
  calibrator.returned();
  rest();
  assert.equal(core.calibrations, 1);
  core.finish([3.5, 4]);
  assert.deepEqual([...items], [[KEY, "[3.5,4]"]]);
});

test("the next visit goes by what the last one found", () => {
  const { core, host, rest } = world({ kept: { [KEY]: "[3.5,4]" } });
  new Calibrator(core, host).returned();
  rest();
  assert.deepEqual([...core.facts], [3.5, 4]);
  assert.equal(core.calibrations, 0);
});

for (const [about, kept] of [
  ["another adapter", { "framebatch 1.2.3 Other GPU 42 2": "[3.5,4]" }],
  ["another version", { "framebatch 1.2.2 Some GPU 42 2": "[3.5,4]" }],
  ["a model of other numbers", { [KEY]: "[1,2,3]" }],
  ["no numbers", { [KEY]: '["a",{}]' }],
  ["what is no JSON", { [KEY]: "{" }],
  ["what is no array", { [KEY]: "7" }],
  ["what no device can be", { [KEY]: "[-1,2]" }],
]) {
  test(`${about} is measured anew`, () => {
    const { core, host, rest } = world({ kept });
    new Calibrator(core, host).returned();
    rest();
    assert.equal(core.calibrations, 1);
  });
}

test("a session that chooses nothing measures nothing, and goes by what was tuned", () => {
  const { core, items, host, rest } = world({
    kept: { [KEY]: "[1,7]" },
    routes: false,
  });
  const calibrator = new Calibrator(core, host);
  calibrator.returned();
  rest();
  assert.equal(core.calibrations, 0);
  assert.deepEqual([...core.facts], [1, 7]);
  core.facts = Float64Array.of(1, 8);
  calibrator.remember();
  assert.equal(items.get(KEY), "[1,8]");
});

test("what was tuned is remembered once the devices are measured", () => {
  const { core, items, host, rest } = world();
  const calibrator = new Calibrator(core, host);
  calibrator.remember();
  assert.equal(items.size, 0, "the devices are not measured yet");
  calibrator.returned();
  rest();
  core.finish([3.5, 4]);
  core.facts = Float64Array.of(3.5, 5);
  calibrator.remember();
  assert.equal(items.get(KEY), "[3.5,5]");
  calibrator.dispose();
  core.facts = Float64Array.of(3.5, 6);
  calibrator.remember();
  assert.equal(items.get(KEY), "[3.5,5]", "the session is over");
});

test("a page that may not store anything is measured all the same", () => {
  const refuse = () => {
    throw new DOMException("no", "SecurityError");
  };
  for (const store of [undefined, { getItem: refuse, setItem: refuse }]) {
    const { core, host, rest } = world();
    new Calibrator(core, { ...host, store }).returned();
    rest();
    core.finish([3.5, 4]);
    assert.deepEqual([...core.facts], [3.5, 4]);
  }
});

test("what came to nothing is not remembered", () => {
  const { core, items, host, rest } = world();
  new Calibrator(core, host).returned();
  rest();
  core.finish(undefined);
  assert.equal(items.size, 0);
});

test("after its end a session measures nothing", () => {
  const { core, items, host, rest } = world();
  const late = new Calibrator(core, host);
  late.returned();
  late.dispose();
  rest();
  assert.equal(core.calibrations, 0);
  const ended = new Calibrator(core, host);
  ended.returned();
  rest();
  ended.dispose();
  core.finish([3.5, 4]);
  assert.equal(items.size, 0);
});
