// What the adapter uses of `@lancedb/lancedb/embedding`, whose native library is not installed
// here. The adapter beside the real one is tested in tests/databases.

/** The functions that were registered. */
export const registered = new Map();

export function register(name) {
  return (constructor) => registered.set(name, constructor);
}

export class TextEmbeddingFunction {
  #config = {};

  resolveVariables(config) {
    this.#config = config;
    return { ...config };
  }

  toJSON() {
    return JSON.parse(JSON.stringify(this.#config));
  }
}
