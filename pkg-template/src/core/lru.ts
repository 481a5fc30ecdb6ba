// What was asked for lately: a map that lets go of what was not, so that a page may
// use as many shapes as it likes.

/** Entries of a generation; there are two. */
const GENERATION = 512;

/** A map of at most twice {@link GENERATION} entries, those used last. */
export class LruMap<K, V> {
  private young = new Map<K, V>();
  private old = new Map<K, V>();

  /** `drop` hears of the entries that are let go. */
  constructor(private readonly drop: (values: V[]) => void) {}

  /** The value of a key, which is used by this. */
  get(key: K): V | undefined {
    const known = this.young.get(key);
    if (known !== undefined) return known;
    const value = this.old.get(key);
    if (value !== undefined) {
      this.old.delete(key);
      this.add(key, value);
    }
    return value;
  }

  /** Adds a key that is new, or was just found and gets another value. */
  add(key: K, value: V): void {
    if (this.young.size === GENERATION && !this.young.has(key)) {
      const { old } = this;
      this.old = this.young;
      this.young = new Map();
      if (old.size > 0) this.drop([...old.values()]);
    }
    this.young.set(key, value);
  }
}
