// Turns wasm-bindgen's glue into a function that makes an instance of it.
//
// As a module the glue has one WebAssembly instance for ever. After a trap that
// instance cannot be trusted, and whatever still calls into it, a promise of the
// browser's or a finalizer, must not reach its successor. So each instance gets
// the whole glue to itself.

/** The text of a module that exports `instantiate(): { init, Core }`. */
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
  const made = ["init: __wbg_init", ...classes].join(", ");
  return `export function instantiate() {\n${body}\nreturn { ${made} };\n}\n`;
}
