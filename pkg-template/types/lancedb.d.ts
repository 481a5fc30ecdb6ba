// What the adapter uses of `@lancedb/lancedb/embedding`, whose native library is too heavy to
// be installed for types alone. tests/databases holds the adapter to the real declarations.

export declare abstract class TextEmbeddingFunction<Options> {
  protected resolveVariables(options: Partial<Options>): Partial<Options>;
  init?(): Promise<void>;
  ndims(): number | undefined;
  abstract generateEmbeddings(texts: string[]): Promise<Float32Array[]>;
  computeQueryEmbeddings(text: string): Promise<Float32Array>;
}

export declare function register(
  name: string,
): (
  constructor: new (options?: object) => TextEmbeddingFunction<object>,
) => unknown;
