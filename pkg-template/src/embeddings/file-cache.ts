// The files of folders that the browser keeps: of each folder a whole good set, or none.
//
// Files lie in Cache Storage, each under the folder's address and a number of the load that
// brought it, beside a list of the set's names. A set takes the place of the one before
// when its list is written, all at once. Whether a set is still what the server has is not
// known here.

/** The browser's cache of models; `caches.delete` with this name empties it. */
const CACHE = "framebatch-models";

/** Files by name; null is a name of which the folder has none. */
export type Files = ReadonlyMap<string, Response | null>;

/** The load that brought each file of a set; null is a name without a file. */
type List = Readonly<Record<string, string | null>>;

/** What is kept of one folder, and what one load of it brings. */
export class FileCache {
  /** The number of this load. */
  private readonly load = crypto.randomUUID();
  private readonly writes = new Map<string, Promise<void>>();
  /** The list as it was read, and what it says. */
  private found: string | undefined;
  private list: List = {};
  private turn: Promise<boolean> | undefined;
  private release: (() => void) | undefined;
  /** Whether this load has given up. */
  private isOver = false;

  private constructor(
    private readonly home: URL,
    private readonly cache: Cache,
  ) {}

  /**
   * What is kept of the folder at this address; undefined where nothing can be, as in
   * insecure contexts.
   */
  static async of(home: URL): Promise<FileCache | undefined> {
    try {
      return new FileCache(home, await caches.open(CACHE));
    } catch {
      return undefined;
    }
  }

  /** The whole set; undefined where there is none. */
  async read(): Promise<Files | undefined> {
    try {
      this.found = await this.readList();
      if (this.found === undefined) return undefined;
      this.list = JSON.parse(this.found) as List;
      const files = new Map<string, Response | null>();
      // All at once: a response that is there stays readable if another load deletes it.
      const all = Object.entries(this.list).map(async ([name, load]) => {
        const file = load === null ? null : await this.match(name, load);
        if (file !== undefined) files.set(name, file);
        return file !== undefined;
      });
      return (await Promise.all(all)).every(Boolean) ? files : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * Whether this load may write: one load of a folder does at a time, and only while the
   * set is the one that this load has read.
   */
  async begin(): Promise<boolean> {
    if (this.isOver) return false;
    return (this.turn ??= this.takeTurn());
  }

  /** Writes a file beside the set, as far as it is there; `commit` says how that ended. */
  put(name: string, file: Response): void {
    if (this.isOver) return;
    const write = this.cache.put(this.key(name, this.load), file);
    this.writes.set(name, write);
    write.catch(() => {});
  }

  /**
   * Makes these names the set, of files that were put or read. Where one could not be
   * written, the set before stays.
   */
  async commit(names: Files): Promise<void> {
    const list = [...names].map(([name, file]): [string, string | null] => {
      if (file === null) return [name, null];
      return [name, this.writes.has(name) ? this.load : this.list[name]];
    });
    try {
      await Promise.all(this.writes.values());
      const body = JSON.stringify(Object.fromEntries(list));
      await this.cache.put(this.listKey, new Response(body));
      const keys = list.map(([name, load]) => load && this.key(name, load));
      await this.deleteAllBut([this.listKey, ...keys]);
      this.end();
    } catch {
      await this.giveUp();
    }
  }

  /** Nothing that was put is wanted. */
  async giveUp(): Promise<void> {
    this.isOver = true;
    await this.turn;
    // A write ends before what it wrote can be deleted.
    await Promise.allSettled(this.writes.values());
    for (const name of this.writes.keys()) {
      await this.cache.delete(this.key(name, this.load)).catch(() => {});
    }
    this.end();
  }

  /** Deletes the set, unless another load has replaced it. */
  async forget(): Promise<void> {
    if (await this.takeTurn()) await this.deleteAllBut([]).catch(() => {});
    this.end();
  }

  private async takeTurn(): Promise<boolean> {
    try {
      this.release = await lock(`${CACHE} ${this.home}`);
      if (this.release === undefined) return false;
      if ((await this.readList()) === this.found) return true;
    } catch {
      // A browser without locks keeps nothing, as one without a cache.
    }
    this.end();
    return false;
  }

  private end(): void {
    this.release?.();
    this.release = undefined;
    this.writes.clear();
  }

  private get listKey(): string {
    return new URL("?framebatch-files", this.home).href;
  }

  private key(name: string, load: string): string {
    const query = `?framebatch-file=${load}/${encodeURIComponent(name)}`;
    return new URL(query, this.home).href;
  }

  private match(name: string, load: string): Promise<Response | undefined> {
    return this.cache.match(this.key(name, load));
  }

  private async readList(): Promise<string | undefined> {
    return (await this.cache.match(this.listKey))?.text();
  }

  private async deleteAllBut(
    wanted: readonly (string | null)[],
  ): Promise<void> {
    const keys = await this.cache.keys(this.home, { ignoreSearch: true });
    for (const { url } of keys) {
      if (!wanted.includes(url)) await this.cache.delete(url);
    }
  }
}

/** Takes a lock of the site, and returns what gives it back; undefined where it is taken. */
function lock(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(name, { ifAvailable: true }, (lock) =>
      lock === null
        ? resolve(undefined)
        : new Promise<void>((release) => resolve(release)),
    );
    held.catch(reject);
  });
}
