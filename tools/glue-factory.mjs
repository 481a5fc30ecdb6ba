// Turns wasm-bindgen's glue into a function that makes an instance of it.
//
// The glue, being a module, has one WebAssembly instance for ever. After a trap that
// instance cannot be trusted, and whatever still calls into it, a promise of the
// browser's or a finalizer, must not reach its successor. So each instance gets
// the whole glue to itself, and one that trapped is entered by nobody any more: each
// timer that finds it ruined would be another trap, and nothing says whose.

/** In the glue's own scope. What calls looks at what came back. */
const ABANDON = `function abandon() {
  const nothing = (of) => (typeof of === "function" ? () => [] : of);
  wasm = Object.fromEntries(Object.entries(wasm).map(([name, of]) => [name, nothing(of)]));
}`;

/** The text of a module that exports `instantiate(): { init, abandon, Core }`. */
export function factory(glue) {
  const classes = [];
  const body = glue
    .replace(/^export class (\w+)/gm, (_, name) => {
      classes.push(name);
      return `class ${name}`;
    })
    .replace(/^export \{ initSync, __wbg_init as default \};$/m, "");
  const left = /^(import|export)\b.*$/m.exec(body);
  if (left || body === glue) {
    throw new Error(
      `the glue is not what it was: ${left?.[0] ?? "no exports"}`,
    );
  }
  if (!/^let .*\bwasm;$/m.test(body)) {
    throw new Error("the glue calls its instance something else");
  }
  const made = ["init: __wbg_init", "abandon", ...classes].join(", ");
  return `export function instantiate() {\n${body}\n${ABANDON}\nreturn { ${made} };\n}\n`;
}
