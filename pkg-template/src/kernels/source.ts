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

/** Code that may become part of a kernel. */
export interface Source {
  /** The code with its names marked and its loops counted. */
  readonly code: string;
  /** Whether the function is of values, or of a place. */
  readonly form: "element" | "at";
  /** The names of the values that `element` takes. */
  readonly inputs: readonly string[];
  readonly hasLoops: boolean;
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

/** Checks code; `params` are the names of the numbers that come with a call. Throws a {@link Problem}. */
export function readSource(code: string, params: readonly string[]): Source {
  return new Reader(code, params).read();
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
  private form: Source["form"] | undefined;
  private inputs: readonly string[] = [];

  constructor(
    code: string,
    private readonly params: readonly string[],
  ) {
    this.code = withoutComments(code);
    this.tokens = tokensOf(this.code);
  }

  read(): Source {
    while (this.next < this.tokens.length) this.step(this.tokens[this.next++]);
    this.copyTo(this.code.length);
    const { made: code, form, inputs, hasLoops } = this;
    if (form !== undefined) return { code, form, inputs, hasLoops };
    throw new Problem(
      0,
      "there is no function `element`; write `fn element(x: f32) -> f32 { … }`, or `fn at(i: i32) -> f32 { … }`",
    );
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
      this.awaitsBody = true;
    }
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
    if (WGSL.has(name.text)) {
      throw new Problem(
        name.at,
        `\`${name.text}\` is a word of WGSL; choose another name`,
      );
    }
    this.isStruct = what === "struct";
    if (what !== "fn") return;
    this.result = undefined;
    this.signature(name);
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
    if (this.form !== undefined) {
      throw new Problem(
        name.at,
        "there is one function `element`, or one `at`, and not both",
      );
    }
    if (this.result !== "f32") {
      throw new Problem(name.at, `\`${form}\` must give an f32: \`-> f32\``);
    }
    this.form = form;
    const taken = tokens.slice(2, Math.max(end - 1, 2));
    if (form === "at") {
      const [, colon, type, comma] = taken;
      const isEnd = comma === undefined || comma.text === ",";
      const isPlace = colon?.text === ":" && type?.text === "i32";
      if (isPlace && isEnd && taken.length < 5) return;
      throw new Problem(name.at, "`at` takes a place: `fn at(i: i32) -> f32`");
    }
    this.inputs = inputsOf(taken);
    if (this.inputs.length < 1 || this.inputs.length > MAX_INPUTS) {
      throw new Problem(name.at, "`element` takes 1 to 6 values");
    }
  }

  // Checks the name behind `params.`.
  private checkParam(word: string): void {
    if (word !== "params" || this.ahead(0) !== ".") return;
    const name = this.tokens[this.next + 1];
    if (name === undefined || this.params.includes(name.text)) return;
    const known =
      this.params.length === 0
        ? "the definition has none"
        : `the definition has ${this.params.join(", ")}`;
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
    this.depth = Math.max(this.depth - 1, 0);
    this.isStruct &&= this.depth > 0;
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

function inputsOf(tokens: readonly Token[]): readonly string[] {
  const inputs: string[] = [];
  for (let at = 0; at < tokens.length; at += 4) {
    const [name, colon, type, comma] = tokens.slice(at, at + 4);
    const isInput =
      colon?.text === ":" &&
      type?.text === "f32" &&
      (comma === undefined || comma.text === ",");
    if (!isInput) {
      throw new Problem(
        name.at,
        "`element` takes values of type f32: `x: f32`",
      );
    }
    inputs.push(name.text);
  }
  return inputs;
}

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
    return "overrides are not allowed; declare a `const`, or a param";
  }
  return `\`${word}\` is not at hand in a kernel`;
}
