// A map that drops the entries least recently used, so that a page may use as many
// shapes as it likes.
//
// Entries go by generations, not one by one: a lookup moves nothing but what is old.

/** Entries of a generation; there are two. */
const GENERATION = 512;

/** A map of at most twice {@link GENERATION} entries: those most recently used. */
export class LruMap<K, V> {
  private young = new Map<K, V>();
  private old = new Map<K, V>();

  /** `drop` gets the values of the entries that are dropped. */
  constructor(private readonly drop: (values: V[]) => void) {}

  /** The value of a key, whose entry counts as used. */
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

  /** Sets the value of a key that is new or was just found. */
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
