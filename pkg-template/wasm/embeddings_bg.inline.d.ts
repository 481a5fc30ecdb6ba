// The WebAssembly file as base64 of gzip, which the package's tools write. It is not shipped.

declare const file: string;
export default file;
