// The numbers that stand for the caller's keys in the core.
//
// A key lives as long as a call with that key, so a page may use as many keys as it
// likes. What keys are for is decided by the core (`overflow: "latest"`).

/** The keys in use. */
export class Keys {
  private readonly known = new Map<string, { id: number; calls: number }>();
  private last = 0;

  /** The number of a key, from 1; 0 for no key. Each hold needs one {@link release}. */
  hold(key: string | undefined): number {
    if (key === undefined) return 0;
    let entry = this.known.get(key);
    if (entry === undefined) {
      this.last = (this.last % 0xffffffff) + 1;
      entry = { id: this.last, calls: 0 };
      this.known.set(key, entry);
    }
    entry.calls += 1;
    return entry.id;
  }

  /** A call with this key was answered. */
  release(key: string | undefined): void {
    const entry = key === undefined ? undefined : this.known.get(key);
    if (entry === undefined) return;
    entry.calls -= 1;
    if (entry.calls === 0) this.known.delete(key!);
  }
}
