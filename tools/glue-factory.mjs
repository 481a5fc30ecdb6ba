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

/** Instead of wasm-bindgen's own loading, which fetches: TypeScript brings the compiled module. */
const START = `async function start(module) {
  return __wbg_finalize_init(await WebAssembly.instantiate(module, __wbg_get_imports()), module);
}`;

const LOADING =
  /^(async )?function (__wbg_load|initSync|__wbg_init_once)\([^]*?^}$/gm;

/**
 * wgpu takes `navigator` from the globals of a page or of a worker, and panics where it finds
 * neither, as in Node, to which programs add `navigator.gpu`.
 */
const SCOPE = [/(arg\d)\.Window;/, "$1.Window ?? $1.navigator;"];

/** What the glue takes from its caller instead of from the globals, which lack some here and there. */
const GLOBALS = "{ TextDecoder, TextEncoder, setTimeout }";

/** The text of a module that exports `instantiate(globals): { start, abandon, Core }`. */
export function factory(glue) {
  const classes = [];
  const body = glue
    .replace(/^export class (\w+)/gm, (_, name) => {
      classes.push(name);
      return `class ${name}`;
    })
    .replace(/^export \{ initSync, __wbg_init as default \};$/m, "")
    .replace(...SCOPE)
    .replace(/^let __wbg_init_promise;$/m, "")
    .replace(LOADING, "")
    .replace(/^async function __wbg_init\([^]*?^}$/m, START);
  const left =
    /^(import|export)\b.*$|\b(initSync|__wbg_(load|init)\w*)\b/m.exec(body);
  if (left || body === glue || !body.includes(START)) {
    throw new Error(
      `the glue is not what it was: ${left?.[0] ?? "no exports"}`,
    );
  }
  if (!/^let .*\bwasm;$/m.test(body)) {
    throw new Error("the glue calls its instance something else");
  }
  const made = ["start", "abandon", ...classes].join(", ");
  return `export function instantiate(${GLOBALS}) {\n${body}\n${ABANDON}\nreturn { ${made} };\n}\n`;
}
