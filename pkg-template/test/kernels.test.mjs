// Kernels of one's own: what may stand in their code, what is wrong with a definition or a call,
// and what the core is told.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { manual, module, settled } from "./face.mjs";

await module("kernels/index");
const { readSource, Problem } = await module("kernels/source");
const { KEYWORDS, REFUSED, WGSL } = await module("kernels/words");
const { explain, partsOf, textOf } = await module("kernels/text");
const { checkDefinition } = await module("kernels/check-definition");

const data = (name) =>
  JSON.parse(
    readFileSync(new URL(`../../tests/data/${name}`, import.meta.url), "utf8"),
  );

const names = (values) => values.map(([own, { name }]) => [own, name]);

for (const { name, code, params, constants = {}, read } of data(
  "kernels.json",
)) {
  test(`code: ${name}`, () => {
    let found;
    try {
      const source = readSource(code, { params, constants });
      const { code: made, inputs, results, ...rest } = source;
      // What was added stands between « and » in the table.
      const shown = made.replaceAll("\u0002", "«").replaceAll("\u0003", "»");
      found = {
        made: shown,
        inputs: names(inputs),
        results: names(results),
        ...rest,
      };
    } catch (error) {
      assert.ok(error instanceof Problem, String(error));
      found = { at: error.at, message: error.message };
    }
    assert.deepEqual(found, read);
  });
}

test("the lists of words are those of Rust", () => {
  const { keywords, wgsl, refused } = data("kernel-words.json");
  assert.deepEqual([...KEYWORDS], keywords);
  assert.deepEqual([...WGSL], wgsl);
  assert.deepEqual([...REFUSED], refused);
});

/** What stands for operations that a definition does not count. */
const UNKNOWN = 2 ** 32 - 1;

const definition = {
  name: "decay",
  inputs: { height: "f32", speed: "f32" },
  params: { dt: "f32", n: "i32" },
  output: "f32",
  code: "fn element(speed: f32, height: f32) -> f32 { return height * exp(-speed * params.dt); }",
};

test("what is wrong with a definition is said", async () => {
  const { gpu } = await manual();
  for (const [change, message] of [
    [{ name: "a b" }, /^kernel: name must be letters, .*, got 'a b'/],
    [{ name: 7 }, /^kernel: name must be .*, got '7'/],
    [{ inputs: undefined }, /^decay: inputs must be an object, got undefined/],
    [
      { inputs: { height: "f32" } },
      /inputs are \(height\), but `element` takes \(speed, height\)/,
    ],
    [
      { inputs: { height: "f32", speed: "f16" } },
      /input speed must be 'f32', 'i32', 'u32' or a vector .*, got 'f16'/,
    ],
    [
      { inputs: { height: "f32", speed: "vec2f" } },
      /input speed is 'vec2f', but `element` takes a f32/,
    ],
    [
      { params: { dt: "f16" } },
      /param dt must be 'f32', 'i32' or 'u32', got 'f16'/,
    ],
    [{ params: { "d t": "f32" } }, /names of params .* got 'd t'/],
    [
      { params: {} },
      /^decay:1:82: there is no param `dt`: the definition has none\n {2}fn element/,
    ],
    [
      {
        params: Object.fromEntries(
          Array.from({ length: 17 }, (_, i) => [`p${i}`, "f32"]),
        ),
      },
      /at most 16 params, got 17/,
    ],
    [{ output: "vec2f" }, /output must be what the function gives: 'f32'/],
    [{ output: { x: "f32" } }, /output must be what the function gives: 'f32'/],
    [
      { output: "bool" },
      /output must be 'f32', .*, or an object of these, got 'bool'/,
    ],
    [{ output: "i32" }, /output must be what the function gives: 'f32'/],
    [{ shared: null }, /shared must be an object, got null/],
    [{ shared: { table: "vec5f" } }, /shared table must be 'f32'/],
    [{ shared: { max: "f32" } }, /no word of WGSL, got 'max'/],
    [{ shared: { speed: "f32" } }, /a name of its own .*, got 'speed'/],
    [{ shared: { element: "f32" } }, /no word of WGSL, got 'element'/],
    [
      {
        shared: { a: "f32", b: "f32", c: "f32", d: "f32", e: "f32" },
      },
      /at most 6 tensors, shared ones included, got 7/,
    ],
    [{ constants: null }, /constants must be an object, got null/],
    [
      { constants: { taps: "3" } },
      /constant taps must be a number or a boolean, got string/,
    ],
    [
      { constants: { taps: 3 } },
      /^decay:1:1: there is no override `taps`: the code has none/,
    ],
    [{ output: undefined }, /or an object of these, got 'undefined'/],
    [
      {
        inputs: { x: "vec2f" },
        params: {},
        output: { a: "vec2f", c: "f32" },
        code: "struct Two { a: vec2f, b: f32 } fn element(x: vec2f) -> Two { return Two(x, 1.0); }",
      },
      /output must be what the function gives: { a: 'vec2f', b: 'f32' }/,
    ],
    [{ code: undefined }, /code must be a string of WGSL, got undefined/],
    [{ code: "\n@compute" }, /^decay:2:1: attributes are not allowed/],
    [
      { maxPasses: 0 },
      /maxPasses must be a whole number from 1 to 2\^32 - 1, got 0/,
    ],
    [
      { flops: 1.5 },
      /flops must be a whole number from 0 to 2\^32 - 2, got 1.5/,
    ],
    [{ flops: -1 }, /flops must be a whole number .* got -1/],
    [{ flops: "4" }, /flops must be a whole number .* got 4/],
    [{ cpu: 1 }, /cpu must be a function, got number/],
    [{ cpuAt: 1 }, /cpuAt must be a function, got number/],
    [
      { cpuAt: () => 0 },
      /cpu is for the function `element`, and cpuAt for `at`/,
    ],
    [{ cup: 1 }, /cup/],
  ]) {
    assert.throws(
      () => gpu.kernel({ ...definition, ...change }),
      (error) => error.code === "invalid-input" && message.test(error.message),
      String(message),
    );
  }
});

test("what a kernel of a place looks at has names that no other thing has", async () => {
  const { gpu } = await manual();
  const code = "fn at(i: i32) -> f32 { return 0.0; }";
  const of = (...names) => ({
    name: "looks",
    inputs: Object.fromEntries(names.map((name) => [name, "f32"])),
    output: "f32",
    code,
  });
  for (const names of [
    ["at"],
    ["params"],
    ["max"],
    ["x", "x_at"],
    ["x_len", "x"],
  ]) {
    assert.throws(
      () => gpu.kernel(of(...names)),
      ({ message }) => /^looks: an input has a name of its own/.test(message),
      String(names),
    );
  }
  assert.throws(() => gpu.kernel(of()), /`at` looks at 1 to 6 inputs, got 0/);
  gpu.kernel(of("x", "y_at"));
  // A param is a member of a struct, which may have the name of a function.
  gpu.kernel({ ...of("x"), params: { step: "f32", length: "i32" } });
  assert.throws(
    () => gpu.kernel({ ...of("x"), params: { loop: "f32" } }),
    /names of params .* no keywords of WGSL, got 'loop'/,
  );
});

test("what is wrong with a call is said", async () => {
  const { gpu } = await manual();
  const decay = gpu.kernel(definition);
  const x = gpu.tensor([1, 2]);
  const params = { dt: 1, n: 2 };
  for (const [values, numbers, message] of [
    [undefined, params, /^decay: values must be an object, got undefined/],
    [
      { height: x },
      params,
      /values must be { speed, height }, but speed is missing/,
    ],
    [{ height: x, speed: x, more: x }, params, /but more is none of them/],
    [
      { height: x, speed: x },
      { dt: 1 },
      /params must be { dt, n }, but n is missing/,
    ],
    [{ height: x, speed: x }, { ...params, x: 1 }, /but x is none of them/],
    [
      { height: x, speed: x },
      { dt: "1", n: 2 },
      /^decay: dt must be a number, got string/,
    ],
    [
      { height: x, speed: x },
      { dt: 1, n: 1.5 },
      /n must be a whole number that fits i32, got 1.5/,
    ],
    [
      { height: x, speed: x },
      { dt: 1, n: 2 ** 31 },
      /fits i32, got 2147483648/,
    ],
    [
      { height: x, speed: "x" },
      params,
      /^decay.speed: an operand must be a tensor, got string/,
    ],
    [
      { height: x, speed: [1, 2, 3] },
      params,
      /^decay: shapes \[3\] and \[2\] do not broadcast/,
    ],
    [
      { height: x, speed: x.argmax() },
      params,
      /^decay.speed: the value must hold elements of type f32/,
    ],
    [
      { height: x, speed: Int32Array.of(1, 2) },
      params,
      /^decay.speed: data of f32 must be a Float32Array or numbers, got Int32Array/,
    ],
  ]) {
    assert.throws(
      () => decay(values, numbers),
      (error) => error.code === "invalid-input" && message.test(error.message),
      String(message),
    );
  }
  const made = decay({ height: x, speed: gpu.tensor([[1], [2]]) }, params);
  assert.deepEqual(made.shape, [2, 2]);
  assert.equal(decay.name, "decay");
});

test("vectors broadcast in front of their axis, and a struct gives a tensor for each field", async () => {
  const { gpu, core } = await manual();
  const told = [];
  core.kernel = (...of) => told.push(of);
  const moved = gpu.kernel({
    name: "moved",
    inputs: { p: "vec3f", t: "f32" },
    output: { at: "vec2f", length: "f32" },
    code: "struct Moved { at: vec2f, length: f32 } fn element(p: vec3f, t: f32) -> Moved { return Moved(p.xy * t, length(p)); }",
  });
  const rows = gpu.tensor(new Float32Array(12), [4, 3]);
  const { at, length } = moved({ p: rows, t: gpu.tensor([[1], [2]]) });
  assert.deepEqual(
    [at.shape, length.shape],
    [
      [2, 4, 2],
      [2, 4],
    ],
  );
  assert.deepEqual(moved({ p: [1, 2, 3], t: 1 }).at.shape, [2]);
  assert.throws(() => moved({ p: rows.transpose(), t: 1 }), {
    message:
      /^moved: the last axis of a vec3 has 3 elements, got shape \[3, 4\]/,
  });
  const deep = gpu.tensor(new Float32Array(4), [1, 1, 1, 1, 1, 1, 2, 2]);
  assert.throws(
    () => moved({ p: gpu.tensor(new Float32Array(6), [2, 1, 3]), t: deep }),
    {
      message: /at most 8 dimensions/,
    },
  );
  assert.throws(() => moved({ p: 2, t: 1 }), /has 3 elements, got shape \[\]/);
  assert.throws(
    () => moved({ p: rows, t: [1, 2, 3] }),
    /\[4\] and \[3\] do not broadcast/,
  );
  assert.deepEqual(
    told.map(([, , , sizes]) => [...sizes]),
    [
      [0, 0, UNKNOWN, 0, 8, 2, 12, 4],
      [0, 0, UNKNOWN, 0, 4, 2, 12, 4],
    ],
  );
  const [, , text] = told[1];
  assert.match(
    text,
    /fn c\d+_result\(i: i32\) -> f32 { let p = i \/ 1; return k\d+_element\(.*\)\.length; }/,
  );
  // A struct of single numbers is element by element.
  gpu.kernel({
    name: "two",
    inputs: { x: "f32" },
    output: { a: "f32", b: "f32" },
    code: "struct Two { a: f32, b: f32 } fn element(x: f32) -> Two { return Two(x, x); } fn elements() {}",
  });
  assert.deepEqual([...told[3][3]], [0, 0, UNKNOWN, 0, 4, 1, 4]);
  assert.match(
    told[3][2],
    /fn c\d+_result\(a0: f32\) -> f32 { return k\d+_element\(a0\)\.b; }/,
  );
  assert.match(told[3][2], /fn k\d+_elements\(\)/);
});

test("whole numbers, shared tensors and overrides are told to the core by their types", async () => {
  const { gpu, core } = await manual();
  const told = [];
  core.kernel = (...of) => told.push(of);
  const define = (constants) =>
    gpu.kernel({
      name: "counted",
      inputs: { n: "u32", p: "vec2i" },
      shared: { table: "f32" },
      output: "vec3i",
      constants,
      code: `override most: i32 = 8;
        fn element(p: vec2i, n: u32) -> vec3i {
          var i = 0;
          loop { i += 1; if (i > most) { break; } }
          return vec3i(p, i32(n) + i + table_len());
        }`,
    });
  const counted = define({ most: 3 });
  const values = { n: new Uint32Array(4), p: Int32Array.of(-1, 2), table: [1] };
  const made = counted(values);
  assert.deepEqual(made.shape, [4, 3]);
  assert.equal(made.dtype, "int32");
  const ofRows = counted({
    ...values,
    n: 7,
    p: [
      [-1, 2],
      [3, 4],
    ],
  });
  assert.deepEqual(ofRows.shape, [2, 3]);
  // Loops are told of by a kernel of floats, which has as many lanes.
  const [[toldBy], [number]] = told;
  assert.notEqual(toldBy, number);
  const types = [1 | (2 << 2), 2 | (1 << 2), 32 | (1 << 2)];
  assert.deepEqual(
    told.map(([, , , sizes]) => [...sizes]),
    [
      [0, 2 ** 20, UNKNOWN, 0, 3 << 2, 3, ...types],
      [0, 2 ** 20, UNKNOWN, toldBy + 1, 1 | (3 << 2), 3, ...types],
    ],
  );
  assert.match(told[0][2], /let value = .*; return f32\(\); }/);
  assert.match(
    told[1][2],
    /const\/\*override\*\/ k\d+_most: i32 = i32\(3\) +;/,
  );
  define({ most: 4 });
  assert.equal(told.length, 4);
  define({ most: 3 });
  assert.equal(told.length, 4);
  for (const [change, message] of [
    [{ n: Int32Array.of(1) }, /^counted.n: data of u32 must be a Uint32Array/],
    [{ n: [1, 2.5] }, /^counted.n: data must be whole numbers of 32 bits/],
    [{ n: [-1] }, /^counted.n: data must be whole numbers of 32 bits/],
    [
      { p: new Float32Array(2) },
      /^counted.p: data of i32 must be an Int32Array/,
    ],
    [{ n: -1 }, /^counted.n: the value must be a whole number that fits u32/],
    [{ n: 1.5 }, /a whole number that fits u32, got 1.5/],
    [{ p: 3 }, /the last axis of a vec2 has 2 elements, got shape \[\]/],
    [{ table: [] }, /a tensor that is looked at holds nothing/],
    [{ n: gpu.tensor([1]) }, /must hold elements of type u32/],
    [{ table: undefined }, /but table is missing/],
  ]) {
    assert.throws(() => counted({ ...values, ...change }), { message });
  }
});

test("equal definitions are one kernel, of which the core is told once", async () => {
  const { gpu, core } = await manual();
  const told = [];
  core.kernel = (...told_) => told.push(told_);
  const own = { ...definition, name: "once" };
  gpu.kernel(own);
  gpu.kernel({ ...own, code: own.code });
  gpu.kernel({ ...own, name: "other" });
  // A function for the CPU is something that the core has not heard of.
  gpu.kernel({ ...own, cpu: () => 0 });
  // Counts are of a kernel's own, so that one kernel has one of them.
  gpu.kernel({ ...own, flops: 4 });
  gpu.kernel({ ...own, flops: 0 });
  const [first, other, withTwin, counted, moving] = told;
  assert.equal(told.length, 5);
  assert.notEqual(counted[0], first[0]);
  assert.deepEqual([...counted[3]], [0, 0, 4, 0, 4, 2, 4, 4, 0, 1]);
  assert.deepEqual([...moving[3]], [0, 0, 0, 0, 4, 2, 4, 4, 0, 1]);
  assert.deepEqual(
    [first[1], other[1], withTwin[1]],
    ["once", "other", "once"],
  );
  assert.equal(first[0], withTwin[0]);
  assert.notEqual(first[0], other[0]);
  assert.deepEqual([...first[3]], [0, 0, UNKNOWN, 0, 4, 2, 4, 4, 0, 1]);
  assert.equal(first[4], undefined);
  assert.equal(typeof withTwin[4], "function");
});

test("text has the names of its number, and messages the caller's line", async () => {
  const kernel = checkDefinition({
    name: "lined",
    inputs: { x: "f32" },
    params: { dt: "u32" },
    output: "f32",
    code: "fn element(x: f32) -> f32 {\n  for (;;) { break; } let y = nothing;\n  return x;\n}",
  });
  const [{ number }] = kernel.results;
  const [k, c] = [`k${number}_`, `c${number}_`];
  const [part] = partsOf(kernel);
  const text = textOf(part);
  assert.match(text, new RegExp(`fn ${k}element\\(${k}x: f32\\)`));
  assert.match(text, new RegExp(`struct ${c}Params { dt: u32, }`));
  assert.match(text, new RegExp(`var<private> ${k}params: ${c}Params;`));
  assert.match(text, new RegExp(`if \\(${c}passes == 0u\\)`));
  const source = `// ours\nconst a = 1;\n${text}// ours`;
  const at = source.split("\n")[3].indexOf(`${k}nothing`);
  const found = await explain([part], fakeModule(4, at + 1), source);
  assert.equal(
    found,
    "lined:2:31: no nothing\n  for (;;) { break; } let y = nothing;",
  );
  assert.equal(await explain([part], fakeModule(1, 1), source), undefined);

  function fakeModule(lineNum, linePos) {
    const warning = { type: "warning", lineNum: 3, linePos: 1, message: "w" };
    const error = {
      type: "error",
      lineNum,
      linePos,
      message: `no ${k}nothing`,
    };
    return { getCompilationInfo: async () => ({ messages: [warning, error] }) };
  }
});

test("what is called while the core is at work enters it afterwards, in order", async () => {
  const { callsOf } = await module("session/session");
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  const calls = callsOf(gpu);
  const entered = [];
  const { submit } = core;
  core.submit = (...given) => {
    entered.push(given[0]);
    return submit.apply(core, given);
  };
  const f32 = (...values) => new Float32Array(values);
  calls.pause();
  const first = gpu.lerp(f32(0), f32(4), 0.5);
  const large = gpu.tensor(new Float32Array(20_000).fill(2));
  const second = large.sum().read();
  const aborted = new AbortController();
  const given = gpu.lerp(f32(0), f32(8), 0.5, { signal: aborted.signal });
  given.catch(() => {});
  gpu.flush();
  aborted.abort("no more");
  assert.deepEqual(entered, []);
  assert.equal(gpu.stats().pending, 3);
  calls.resume();
  assert.deepEqual(entered, [], "the core may still be at work");
  // What is made in between goes as it is, a tensor of before among it.
  const third = large.max().read();
  await settled(3);
  gpu.flush();
  assert.deepEqual([...(await first)], [2]);
  assert.deepEqual([...(await second)], [40_000]);
  assert.deepEqual([...(await third)], [2]);
  await assert.rejects(given, (reason) => reason === "no more");
});

test("a session that ends while its core is at work ends behind that work", async () => {
  const { callsOf } = await module("session/session");
  const { gpu, core } = await manual();
  const calls = callsOf(gpu);
  let disposed = 0;
  const { dispose } = core;
  core.dispose = () => {
    disposed += 1;
    return dispose.call(core);
  };
  const pending = gpu.lerp(new Float32Array(1), new Float32Array(1), 0.5);
  pending.catch(() => {});
  calls.pause();
  const within = gpu.lerp(new Float32Array(1), new Float32Array(1), 0.5);
  within.catch(() => {});
  gpu.dispose();
  assert.equal(disposed, 0);
  calls.resume();
  assert.equal(disposed, 0);
  await settled(2);
  assert.equal(disposed, 1);
  for (const call of [pending, within]) {
    await assert.rejects(call, ({ code }) => code === "disposed");
  }
});
