// WebAssembly files that a bundler compiles and imports as modules. It is not shipped.

declare module "*.wasm?module" {
  const module: WebAssembly.Module;
  export default module;
}
