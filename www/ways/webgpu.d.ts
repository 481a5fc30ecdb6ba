// The namespaces of flags that TypeScript's DOM library (7.0) leaves out of WebGPU.

declare const GPUMapMode: Readonly<Record<"READ" | "WRITE", number>>;
declare const GPUBufferUsage: Readonly<
  Record<"STORAGE" | "COPY_DST" | "COPY_SRC" | "MAP_READ" | "UNIFORM", number>
>;
declare const GPUTextureUsage: Readonly<
  Record<"RENDER_ATTACHMENT" | "COPY_SRC", number>
>;
