// The files of models in the browser's cache: of each folder a whole set, or none.
//
// Files lie in Cache Storage, each under the folder's address and the number of the load
// that brought the file, beside a list of the set's names. A new set takes the place of
// the old one at once, when its list is written. Whether a set is still what the server
// has is asked in `web-folder.ts`.

/** The browser's cache of models; `caches.delete` with this name empties it. */
const CACHE = "framebatch-models";

/** Files by name; null is a name of which the folder has none. */
export type Files = ReadonlyMap<string, Response | null>;

/** The load that brought each file of a set; null is a name without a file. */
type List = Readonly<Record<string, string | null>>;

/** The cached set of one folder, and the files that one load of the folder adds. */
export class FileCache {
  /** The number of this load. */
  private readonly load = crypto.randomUUID();
  private readonly writes = new Map<string, Promise<void>>();
  /** The list of the cached set: its text, and what that says. */
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
   * The cache of the folder at this address; undefined where nothing can be cached, as in
   * insecure contexts.
   */
  static async of(home: URL): Promise<FileCache | undefined> {
    try {
      return new FileCache(home, await caches.open(CACHE));
    } catch {
      return undefined;
    }
  }

  /** The files of the cached set; undefined where there is none. */
  async read(): Promise<Files | undefined> {
    try {
      this.found = await this.readList();
      if (this.found === undefined) return undefined;
      this.list = JSON.parse(this.found) as List;
      const files = new Map<string, Response | null>();
      // Matched all at once: a response stays readable although another load deletes its file.
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

  /** Begins to write a file beside the set; {@link commit} waits for it. */
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

  /** Deletes the files that this load has put. */
  async giveUp(): Promise<void> {
    this.isOver = true;
    await this.turn;
    // A file can be deleted only when it is written.
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

/** Takes a lock of the site, and returns the function that releases it; undefined where another load has it. */
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
