// The code of a kernel: what may stand in it, and how it is made part of other code.
//
// Each name that the code gives is marked, so that the code can name nothing of a kernel that
// it becomes part of. Each pass of a loop is counted, so that every loop ends. Rust has the
// same rules in `src/native/kernels/source.rs`; `tests/data/kernels.json` holds both to one
// table.

import { REFUSED, WGSL } from "./words.js";

/** Stands in front of each name that a caller gave; no character of WGSL. */
export const MARK = "#";
/** Stands in front of each name beside these; no character of WGSL. */
export const BESIDE = "$";
/** Stand before and behind what is added to a caller's text; no characters of WGSL. */
export const ADDED = ["\u0002", "\u0003"] as const;

/** The most values that `element` takes. */
export const MAX_INPUTS = 6;

/** The most fields of what `element` gives. */
const MAX_RESULTS = 8;

/** A scalar type of WGSL: a float, or a whole number with or without a sign. */
export type Scalar = "f32" | "i32" | "u32";

/** The type of a value: a scalar, or a vector along a tensor's last axis. */
export interface Type {
  /** The name in WGSL. */
  readonly name: string;
  readonly scalar: Scalar;
  /** How many components there are, 1 to 4. */
  readonly lanes: number;
}

/** The scalar types, in the order of their numbers on the wire. */
export const SCALARS: readonly Scalar[] = ["f32", "i32", "u32"];

/** The type of a name, as WGSL and definitions have it; undefined for other types. */
export function typeOf(name: unknown): Type | undefined {
  return typeof name === "string" && Object.hasOwn(TYPES, name)
    ? TYPES[name]
    : undefined;
}

const TYPES: Record<string, Type> = {};
for (const scalar of SCALARS) {
  TYPES[scalar] = { name: scalar, scalar, lanes: 1 };
  for (const lanes of [2, 3, 4]) {
    const name = `vec${lanes}${scalar[0]}`;
    TYPES[`vec${lanes}<${scalar}>`] = TYPES[name] = { name, scalar, lanes };
  }
}

/** Something with a name and a type; the name is empty for what a function gives without a struct. */
export type Typed = readonly [name: string, type: Type];

/** Code that may become part of a kernel. */
export interface Source {
  /** The code with its names marked and its loops counted. */
  readonly code: string;
  /** Whether the function is of values, or of a place. */
  readonly form: "element" | "at";
  /** The values that `element` takes. */
  readonly inputs: readonly Typed[];
  /** What the function gives: the fields of a struct, or one value without a name. */
  readonly results: readonly Typed[];
  readonly hasLoops: boolean;
}

/** What a definition has beside its code. */
export interface Beside {
  /** The names of the numbers that come with a call. */
  readonly params: readonly string[];
  /** Values of the code's overrides. */
  readonly constants: Readonly<Record<string, number | boolean>>;
}

/** Why code cannot become part of a kernel: what is wrong, and the character where it is. */
export class Problem extends Error {
  constructor(
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}

/** A word, a number or a sign, and where it begins. */
interface Token {
  readonly text: string;
  readonly at: number;
}

const TOKEN =
  /\s+|[\p{Alphabetic}_][\p{Alphabetic}\p{N}_]*|0[xX](?:[pP][+-]|[\da-zA-Z.])*|\d(?:[eE][+-]|[\da-zA-Z.])*|[^]/uy;
const WORD = /^[\p{Alphabetic}_]/u;
/** Signs that WGSL has, but for the one of attributes. */
const SIGN = /^[\d!%&()*+,\-./:;<=>@[\]^{|}~]/;

/** Checks code. Throws a {@link Problem}. */
export function readSource(code: string, beside: Beside): Source {
  return new Reader(code, beside).read();
}

class Reader {
  private readonly code: string;
  private readonly tokens: readonly Token[];
  /** The token that is read next. */
  private next = 0;
  /** Characters of the code that are in {@link made}. */
  private written = 0;
  private made = "";
  /** Open braces. */
  private depth = 0;
  /** Whether the open braces are those of a struct. */
  private isStruct = false;
  /** The type that the function gives which is open, as it stands in {@link made}. */
  private result: string | undefined;
  /** Whether the next brace opens the body of a loop. */
  private awaitsBody = false;
  private hasLoops = false;
  /** Whether there are loops in the function that is open. */
  private isLooping = false;
  /** The structs so far, with the names and types of their fields. */
  private readonly structs = new Map<string, [string, string][]>();
  /** The function that was asked for, and the type that it gives. */
  private found:
    | { form: Source["form"]; name: Token; inputs: Typed[]; result: string }
    | undefined;
  /** The names of the overrides so far. */
  private readonly overrides: string[] = [];
  /** The braces around the block `continuing` that is open. */
  private continuing: number | undefined;

  constructor(
    code: string,
    private readonly beside: Beside,
  ) {
    this.code = withoutComments(code);
    this.tokens = tokensOf(this.code);
  }

  read(): Source {
    while (this.next < this.tokens.length) this.step(this.tokens[this.next++]);
    this.copyTo(this.code.length);
    const { made: code, found, hasLoops } = this;
    if (found === undefined) {
      throw new Problem(
        0,
        "there is no function `element`; write `fn element(x: f32) -> f32 { … }`, or `fn at(i: i32) -> f32 { … }`",
      );
    }
    if (this.depth > 0) throw new Problem(0, BRACES);
    this.checkConstants();
    const results = this.results(found.name, found.result);
    const { form, inputs } = found;
    return { code, form, inputs, results, hasLoops };
  }

  private step(token: Token): void {
    const { text } = token;
    if (WORD.test(text)) return this.word(token);
    if (text === "{") return this.open(token);
    if (text === "}") return this.close(token);
    if (text === "@") {
      throw new Problem(
        token.at,
        "attributes are not allowed: the code is a body, which gets entry points and bindings of ours",
      );
    }
    if (!SIGN.test(text)) throw new Problem(token.at, "no character of WGSL");
  }

  private word(token: Token): void {
    const { text, at } = token;
    const isMember =
      this.ahead(-2) === "." || (this.isStruct && this.ahead(0) === ":");
    if (isMember || text === "_") return;
    if (text === "override" && this.depth === 0) return this.override(token);
    if (REFUSED.has(text)) throw new Problem(at, refusal(text));
    if (!WGSL.has(text)) {
      this.checkParam(text);
      this.copyTo(at);
      this.made += MARK;
      return;
    }
    if (this.depth === 0 && /^(?:fn|struct|alias|const)$/.test(text)) {
      this.declares(text);
    } else if (this.depth === 0 && text === "var") {
      throw new Problem(
        at,
        "variables outside of functions are not allowed; declare a `const`, or a `var` in a function",
      );
    } else if (text === "var" || text === "ptr") {
      this.checkMemory(at);
    } else if (/^(?:for|while|loop)$/.test(text)) {
      if (this.continuing !== undefined) {
        throw new Problem(
          at,
          "loops inside of `continuing` are not allowed; put the loop in a function of its own",
        );
      }
      this.awaitsBody = true;
    } else if (text === "continuing") {
      this.continuing = this.depth;
    }
  }

  // Makes an override a constant: of the value that the definition gives, or else of its own.
  private override({ text, at }: Token): void {
    const [name, colon, type, behind] = this.tokens.slice(this.next);
    const isWhole =
      behind !== undefined && WORD.test(name.text) && colon.text === ":";
    if (!isWhole) throw new Problem(at, OVERRIDE);
    if (WGSL.has(name.text) || REFUSED.has(name.text)) throw wordOfWgsl(name);
    if (type.text !== "bool" && !SCALARS.includes(type.text as Scalar)) {
      throw new Problem(type.at, OVERRIDE);
    }
    this.overrides.push(name.text);
    const { constants } = this.beside;
    const isGiven = Object.hasOwn(constants, name.text);
    const value = isGiven
      ? literal(type.text, Number(constants[name.text]))
      : undefined;
    if (isGiven && value === undefined) {
      throw new Problem(
        name.at,
        `the constant \`${name.text}\` is no ${type.text}`,
      );
    }
    const isValued = behind.text === "=";
    if (!isGiven && !isValued) {
      throw new Problem(
        name.at,
        `the override \`${name.text}\` has no value; give it one in the code, or as a constant`,
      );
    }
    this.add(at, "const/*");
    this.add(at + text.length, "*/");
    this.copyTo(name.at);
    this.made += MARK;
    this.next += 3;
    if (!isGiven) return;
    const end = this.tokens.findIndex(
      ({ text }, place) => place >= this.next && text === ";",
    );
    if (end < 0) throw new Problem(at, OVERRIDE);
    this.add(type.at + type.text.length, ` = ${value}`);
    // Invariant: a compiler sees nothing that this reader has not read. The code's own value is
    // read by neither.
    const { at: behindValue } = this.tokens[end];
    this.made += this.code
      .slice(this.written, behindValue)
      .replace(/[^\n]/g, " ");
    this.written = behindValue;
    this.next = end;
  }

  private checkConstants(): void {
    const { overrides } = this;
    const names = Object.keys(this.beside.constants);
    const unknown = names.find((name) => !overrides.includes(name));
    if (unknown === undefined) return;
    const known =
      overrides.length === 0
        ? "the code has none"
        : `the code has ${overrides.join(", ")}`;
    throw new Problem(0, `there is no override \`${unknown}\`: ${known}`);
  }

  private checkMemory(at: number): void {
    if (this.ahead(0) !== "<" || this.ahead(1) === "function") return;
    throw new Problem(
      at,
      "only memory of the function itself is at hand: leave the address space out, or write `function`",
    );
  }

  // What is declared outside of functions must not have a name of WGSL's.
  private declares(what: string): void {
    const name = this.tokens[this.next];
    if (name === undefined || !WORD.test(name.text)) return; // A compiler says what is wrong.
    if (WGSL.has(name.text)) throw wordOfWgsl(name);
    this.isStruct = what === "struct";
    if (this.isStruct) this.structs.set(name.text, this.fields());
    if (what !== "fn") return;
    this.result = undefined;
    this.signature(name);
  }

  // Reads ahead the names and types of a struct's fields.
  private fields(): [string, string][] {
    const rest = this.tokens.slice(this.next + 2);
    const end = rest.findIndex(({ text }) => text === "}");
    const fields: [string, string][] = [];
    for (const field of split(end < 0 ? rest : rest.slice(0, end))) {
      const [name, colon, ...type] = field;
      if (colon?.text === ":") fields.push([name.text, joined(type)]);
    }
    return fields;
  }

  // What the function gives, once all structs are known.
  private results(name: Token, result: string): readonly Typed[] {
    const type = typeOf(result);
    if (type !== undefined) return [["", type]];
    const fields = result.startsWith(MARK)
      ? (this.structs.get(result.slice(MARK.length)) ?? [])
      : [];
    const results: Typed[] = [];
    for (const [field, of] of fields) {
      const known = typeOf(of);
      if (known !== undefined) results.push([field, known]);
    }
    const isKnown = results.length > 0 && results.length === fields.length;
    if (isKnown && results.length <= MAX_RESULTS) return results;
    throw new Problem(
      name.at,
      `\`${name.text}\` must give a number such as f32, a vector such as vec3f, or a struct of 1 to 8 of these: \`-> f32\``,
    );
  }

  // Reads ahead what a function takes and gives.
  private signature(name: Token): void {
    const rest = this.tokens.slice(this.next);
    const body = rest.findIndex(({ text }) => text === "{");
    const tokens = body < 0 ? rest : rest.slice(0, body);
    let end = tokens.length;
    for (let at = 0; at + 1 < tokens.length; at += 1) {
      if (tokens[at].text !== "-" || tokens[at + 1].text !== ">") continue;
      end = at;
      this.result = tokens
        .slice(at + 2)
        .map(marked)
        .join("");
    }
    const { text: form } = name;
    if (form !== "element" && form !== "at") return;
    if (this.found !== undefined) {
      throw new Problem(
        name.at,
        "there is one function `element`, or one `at`, and not both",
      );
    }
    const result = this.result ?? "";
    const taken = tokens.slice(2, Math.max(end - 1, 2));
    const inputs = form === "at" ? placeOf(name, taken) : inputsOf(name, taken);
    this.found = { form, name, inputs, result };
  }

  // Checks the name behind `params.`.
  private checkParam(word: string): void {
    if (word !== "params" || this.ahead(0) !== ".") return;
    const name = this.tokens[this.next + 1];
    const { params } = this.beside;
    if (name === undefined || params.includes(name.text)) return;
    const known =
      params.length === 0
        ? "the definition has none"
        : `the definition has ${params.join(", ")}`;
    throw new Problem(name.at, `there is no param \`${name.text}\`: ${known}`);
  }

  // Opens braces; counts passes where they are those of a loop.
  private open({ at }: Token): void {
    this.depth += 1;
    if (!this.awaitsBody) return;
    this.awaitsBody = false;
    this.hasLoops = true;
    this.isLooping = true;
    const nothing = this.result === undefined ? "" : `${this.result}()`;
    this.add(
      at + 1,
      `if ($passes == 0u) { $stopped = true; return ${nothing}; } $passes -= 1u;`,
    );
  }

  // Closes braces. Behind a last loop some compilers look for a `return` that none can reach.
  private close({ at }: Token): void {
    if (this.depth === 0) throw new Problem(at, BRACES);
    this.depth -= 1;
    this.isStruct &&= this.depth > 0;
    if (this.depth <= (this.continuing ?? -1)) this.continuing = undefined;
    if (this.depth > 0 || !this.isLooping) return;
    this.isLooping = false;
    if (this.result !== undefined && this.ahead(-2) === "}") {
      this.add(at, `return ${this.result}();`);
    }
  }

  private add(at: number, text: string): void {
    this.copyTo(at);
    this.made += ADDED[0] + text + ADDED[1];
  }

  private copyTo(at: number): void {
    this.made += this.code.slice(this.written, at);
    this.written = at;
  }

  private ahead(by: number): string | undefined {
    return this.tokens[this.next + by]?.text;
  }
}

// Checks what `at` takes, which is no input.
function placeOf(name: Token, taken: readonly Token[]): Typed[] {
  const [, colon, type, comma] = taken;
  const isEnd = comma === undefined || comma.text === ",";
  const isPlace = colon?.text === ":" && type?.text === "i32";
  if (isPlace && isEnd && taken.length < 5) return [];
  throw new Problem(name.at, "`at` takes a place: `fn at(i: i32) -> f32`");
}

function inputsOf(name: Token, taken: readonly Token[]): Typed[] {
  const inputs = split(taken).map((input): Typed => {
    const [own, colon, ...type] = input;
    const of = colon?.text === ":" ? typeOf(joined(type)) : undefined;
    if (of !== undefined) return [own.text, of];
    throw new Problem(
      own.at,
      "`element` takes numbers such as f32 and vectors such as vec3f: `x: f32`",
    );
  });
  if (inputs.length >= 1 && inputs.length <= MAX_INPUTS) return inputs;
  throw new Problem(name.at, "`element` takes 1 to 6 values");
}

// What stands between commas.
function split(tokens: readonly Token[]): Token[][] {
  const parts: Token[][] = [[]];
  for (const token of tokens) {
    if (token.text === ",") parts.push([]);
    else parts[parts.length - 1].push(token);
  }
  return parts.filter(({ length }) => length > 0);
}

// The value of a constant in WGSL; undefined where it is no value of the type.
function literal(type: string, value: number): string | undefined {
  switch (type) {
    case "f32":
      return Number.isFinite(Math.fround(value)) ? float(value) : undefined;
    case "i32":
      return value === (value | 0) ? `i32(${value | 0})` : undefined;
    case "u32":
      return value === value >>> 0 ? `${value >>> 0}u` : undefined;
    default:
      return value === 0 || value === 1 ? String(value === 1) : undefined;
  }
}

// A float in WGSL, exactly: a whole number times a power of two.
function float(value: number): string {
  const [bits] = new Uint32Array(Float32Array.of(value).buffer);
  const exponent = (bits >>> 23) & 0xff;
  const whole = (bits & 0x7fffff) | (exponent > 0 ? 0x800000 : 0);
  const sign = bits >= 2 ** 31 ? "-" : "";
  return `${sign}0x${whole.toString(16)}p${Math.max(exponent, 1) - 150}f`;
}

const BRACES = "braces do not match";

const OVERRIDE =
  "an override has a name, a type and a value: `override taps: i32 = 3;`, of type f32, i32, u32 or bool";

const wordOfWgsl = ({ text, at }: Token): Problem =>
  new Problem(at, `\`${text}\` is a word of WGSL; choose another name`);

// A type as it stands in the code that was made.
const joined = (tokens: readonly Token[]): string =>
  tokens.map(marked).join("");

// The tokens of a text without comments.
function tokensOf(code: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < code.length) {
    TOKEN.lastIndex = at;
    const [text] = TOKEN.exec(code)!;
    if (!/^\s/.test(text)) tokens.push({ text, at });
    at += text.length;
  }
  return tokens;
}

// A text whose comments are spaces, so that nobody finds another end of them.
function withoutComments(code: string): string {
  const begin = /\/\/[^\n\v\f\r\u0085\u2028\u2029]*|\/\*/g;
  let made = "";
  let from = 0;
  for (let found = begin.exec(code); found; found = begin.exec(code)) {
    const end =
      found[0] === "/*" ? endOfComment(code, found.index) : begin.lastIndex;
    made += code.slice(from, found.index);
    made += code.slice(found.index, end).replace(/[^\n]/g, " ");
    from = begin.lastIndex = end;
  }
  return made + code.slice(from);
}

function endOfComment(code: string, from: number): number {
  const bounds = /\/\*|\*\//g;
  bounds.lastIndex = from;
  let depth = 0;
  for (let found = bounds.exec(code); found; found = bounds.exec(code)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return bounds.lastIndex;
  }
  return code.length;
}

/** A token as it stands in the code that was made. */
const marked = ({ text }: Token): string =>
  WORD.test(text) && !WGSL.has(text) ? MARK + text : text;

function refusal(word: string): string {
  if (/^(?:enable|requires|diagnostic)$/.test(word)) {
    return "directives are not allowed";
  }
  if (word === "override") {
    return "overrides are declared outside of functions";
  }
  return `\`${word}\` is not at hand in a kernel`;
}
