// Random bodies of kernels: their WGSL, and what they compute.
//
// An expression is its text and a function that computes it in some arithmetic.

import { random } from "/workload.js";
import { BOUNDED, PLAIN } from "./arithmetic.js";

const UNARIES = {
  neg: (x) => `(-${x})`,
  abs: (x) => `abs(${x})`,
  sqrt: (x) => `sqrt(abs(${x}) + 0.5)`,
  exp: (x) => `exp(clamp(${x}, -4.0, 4.0))`,
};

const BINARIES = {
  add: (a, b) => `(${a} + ${b})`,
  sub: (a, b) => `(${a} - ${b})`,
  mul: (a, b) => `(${a} * ${b})`,
  div: (a, b) => `(${a} / (abs(${b}) + 0.5))`,
  min: (a, b) => `min(${a}, ${b})`,
  max: (a, b) => `max(${a}, ${b})`,
};

const PARAMS = { p0: "f32", p1: "i32", p2: "u32" };

/** A body, made of a seed. */
export class Body {
  locals = [];
  helpers = [];
  isHelper = false;
  isLoop = false;
  hasLoops = false;

  constructor(form, seed) {
    this.form = form;
    this.next = random(seed);
    this.inputs = 1 + this.below(3);
    this.isHelper = true;
    const helpers = this.below(3);
    for (let i = 0; i < helpers; i += 1) this.helpers.push(this.expression(2));
    this.isHelper = false;
    const statements = this.below(4);
    for (let i = 0; i < statements; i += 1) this.locals.push(this.statement());
    this.result = this.expression(4);
  }

  below(count) {
    return Math.floor(this.next() * count);
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  between(least, most) {
    return least + this.below(most - least + 1);
  }

  expression(depth) {
    if (depth === 0) return this.leaf();
    const which = this.below(12);
    if (which < 2) return this.leaf();
    const make = () => this.expression(depth - 1);
    if (which < 4) {
      const name = this.pick(Object.keys(UNARIES));
      const of = make();
      return {
        text: UNARIES[name](of.text),
        value: (real, scope) => real[name](of.value(real, scope)),
      };
    }
    if (which === 4) {
      const [a, b, then, other] = [make(), make(), make(), make()];
      return {
        text: `select(${other.text}, ${then.text}, ${a.text} < ${b.text})`,
        value: (real, scope) =>
          real.below(...[a, b, then, other].map((x) => x.value(real, scope))),
      };
    }
    const [a, b] = [make(), make()];
    if (which < 7 && this.helpers.length > 0) {
      const at = this.below(this.helpers.length);
      const helper = this.helpers[at];
      const place = this.form === "at" ? "i, " : "";
      return {
        text: `helper${at}(${place}${a.text}, ${b.text})`,
        value: (real, scope) => {
          const given = [a, b].map((x) => x.value(real, scope));
          return helper.value(real, { ...scope, given });
        },
      };
    }
    const name = this.pick(Object.keys(BINARIES));
    return {
      text: BINARIES[name](a.text, b.text),
      value: (real, scope) =>
        real[name](a.value(real, scope), b.value(real, scope)),
    };
  }

  leaf() {
    const which = this.below(10);
    if (which === 0) {
      const number = this.between(-16, 16) / 4;
      return {
        text: `f32(${number})`,
        value: (real) => real.exactly(number),
      };
    }
    if (which === 1) {
      const name = this.pick(Object.keys(PARAMS));
      return {
        text: `f32(params.${name})`,
        value: (real, { params }) => real.exactly(params[name]),
      };
    }
    if (which < 4 && this.isLoop) {
      return { text: "carried", value: (_, { carried }) => carried };
    }
    if (which === 4 && this.isLoop) {
      const value = (real, { pass }) => real.exactly(pass);
      return { text: "f32(k)", value };
    }
    if (which < 7 && this.locals.length > 0) {
      const at = this.below(this.locals.length);
      return { text: `l${at}`, value: (_, { locals }) => locals[at] };
    }
    if (this.isHelper && (which < 9 || this.form === "element")) {
      const at = this.below(2);
      return { text: `x${at}`, value: (_, { given }) => given[at] };
    }
    const at = this.below(this.inputs);
    if (this.form === "element") {
      return {
        text: `x${at}`,
        value: (real, { read }) => real.exactly(read(at)),
      };
    }
    return this.look(at);
  }

  /** A place of an input that is looked at. */
  look(at) {
    const name = `a${at}`;
    const [times, more] = this.pick([
      [1, 0],
      [1, this.between(-3, 3)],
      [this.between(-2, 3), this.between(-100, 100)],
    ]);
    const [down, right] = [this.between(-2, 2), this.between(-2, 2)];
    const along = (place) => ({
      text: `${name}(${place})`,
      value: (real, { read, i, params }) =>
        real.exactly(
          read(at, {
            along: place === "i + params.p1" ? i + params.p1 : i * times + more,
          }),
        ),
    });
    switch (this.below(4)) {
      case 0:
        return along("i + params.p1");
      case 1:
        return along(`i * ${times} + ${more}`);
      default:
        return {
          text: `${name}_at(i / ${name}_cols() + ${down}, i % ${name}_cols() + ${right})`,
          value: (real, { read }) => real.exactly(read(at, { down, right })),
        };
    }
  }

  statement() {
    const name = `l${this.locals.length}`;
    const which = this.below(4);
    if (which < 2) {
      const { text, value } = this.expression(3);
      return { text: `let ${name} = ${text};`, value };
    }
    const make = () => this.expression(2);
    if (which === 2) {
      const all = [make(), make(), make(), make()];
      const [a, b, then, other] = all.map(({ text }) => text);
      return {
        text: `var ${name} = 0.0;
  if ${a} < ${b} { ${name} = ${then}; } else { let x = ${other}; ${name} = x; }`,
        value: (real, scope) =>
          real.below(...all.map((x) => x.value(real, scope))),
      };
    }
    return this.loop(name, make());
  }

  loop(name, start) {
    this.hasLoops = true;
    this.isLoop = true;
    const step = this.expression(2);
    this.isLoop = false;
    const passes = this.between(1, 5);
    const skipped = this.below(2 * passes);
    const skip = skipped < passes ? `if k == ${skipped} { continue; } ` : "";
    const work = `${skip}let carried = ${name}; ${name} = ${step.text};`;
    const loop = this.pick([
      `for (var k = 0; k < ${passes}; k++) { ${work} }`,
      `{ var n = 0; while n < ${passes} { let k = n; n++; ${work} } }`,
      `{ var k = 0; loop { if k >= ${passes} { break; } ${work} continuing { k++; } } }`,
    ]);
    return {
      text: `var ${name} = ${start.text};\n  ${loop}`,
      value: (real, scope) => {
        let carried = start.value(real, scope);
        for (let pass = 0; pass < passes; pass += 1) {
          if (pass !== skipped) {
            carried = step.value(real, { ...scope, carried, pass });
          }
        }
        return carried;
      },
    };
  }

  get code() {
    const isAt = this.form === "at";
    const helpers = this.helpers.map(
      ({ text }, at) =>
        `fn helper${at}(${isAt ? "i: i32, " : ""}x0: f32, x1: f32) -> f32 { return ${text}; }`,
    );
    const values = Array.from(
      { length: this.inputs },
      (_, at) => `x${at}: f32`,
    );
    return [
      ...helpers,
      isAt ? "fn at(i: i32) -> f32 {" : `fn element(${values}) -> f32 {`,
      ...this.locals.map(({ text }) => `  ${text}`),
      `  return ${this.result.text};`,
      "}",
    ].join("\n");
  }

  /** What the body computes of what it reads. */
  value(real, leaves) {
    const scope = { ...leaves, locals: [] };
    for (const { value } of this.locals) scope.locals.push(value(real, scope));
    return this.result.value(real, scope);
  }

  kernel(gpu) {
    const { form, inputs, code } = this;
    const isAt = form === "at";
    const names = Array.from(
      { length: inputs },
      (_, at) => `${isAt ? "a" : "x"}${at}`,
    );
    const definition = {
      name: "random",
      inputs: Object.fromEntries(names.map((name) => [name, "f32"])),
      params: PARAMS,
      output: "f32",
      code,
    };
    if (!isAt) {
      definition.cpu = (values, params) =>
        this.value(PLAIN, { params, read: (at) => values[names[at]] });
    } else {
      definition.cpuAt = (i, inputs, params) => {
        const read = (at, { along, down, right }) => {
          const input = inputs[names[at]];
          if (along !== undefined) return input(along);
          const { columns } = input;
          return input.at(
            Math.floor(i / columns) + down,
            (i % columns) + right,
          );
        };
        return this.value(PLAIN, { i, params, read });
      };
    }
    const kernel = gpu.kernel(definition);
    const call = ({ arrays, params }) => {
      const tensors = arrays.map(({ floats, shape }, at) => [
        names[at],
        gpu.tensor(floats, shape),
      ]);
      return kernel(Object.fromEntries(tensors), params);
    };
    return call;
  }

  /** The data of a call; the third value of `element` is one for all elements. */
  data() {
    const [rows, columns] = [this.between(2, 13), this.between(1, 9)];
    const shapes =
      this.form === "at"
        ? [[rows, columns], [columns + 2], [3, rows]]
        : [[rows * columns], [rows * columns], [1]];
    const arrays = shapes.slice(0, this.inputs).map((shape) => ({
      shape,
      floats: Float32Array.from(
        { length: shape.reduce((product, dim) => product * dim, 1) },
        () => {
          const drawn = this.next() * 6 - 3;
          // Quarters, so that there are equal ones, and others.
          return this.below(4) === 0 ? Math.round(drawn * 4) / 4 : drawn;
        },
      ),
    }));
    const params = {
      p0: Math.fround(this.between(-8, 8) / 3),
      p1: this.between(-5, 5),
      p2: this.below(4),
    };
    return { arrays, params };
  }

  /** What an element of a call should be. */
  expected({ arrays, params }, i) {
    const read = (at, place) => {
      const { floats, shape } = arrays[at];
      if (place === undefined) return floats[i % floats.length];
      const columns = shape[shape.length - 1];
      const within = (x, count) => Math.min(Math.max(x, 0), count - 1);
      if (place.along !== undefined)
        return floats[within(place.along, floats.length)];
      const row = Math.floor(i / columns) + place.down;
      const column = (i % columns) + place.right;
      return floats[
        within(row, floats.length / columns) * columns + within(column, columns)
      ];
    };
    return this.value(BOUNDED, { i, params, read });
  }
}
