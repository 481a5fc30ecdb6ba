/** The WebAssembly file, where a bundler or a runtime imports such files as modules. */
declare const module: WebAssembly.Module;
export default module;
