// A folder on the web: what is asked of its server, and which of its files are cached.
//
// One load reads one version of a folder: a cached set is revalidated before any of its
// files is read, and a load fails whose files change meanwhile. How files are cached is
// told in `file-cache.ts`.

import { FramebatchError, invalid } from "../checks/errors.js";
import { type Files, FileCache } from "./file-cache.js";
import {
  ABOUT,
  failed,
  type Folder,
  type OpenFile,
  streamed,
} from "./source.js";

/** Milliseconds that a server has to revalidate a cached set. */
const PATIENCE = 10_000;

/** The name of a file that no folder has. */
const NO_FILE = "framebatch-no-such-file.json";

const NOT_MODIFIED = 304;
const MISSING = 404;

/** A file before it is opened; null where there is none. */
interface KnownFile {
  readonly file: Response | null;
  readonly from: "cache" | "server";
}

/** The files that are known when a load begins. */
interface Beginning {
  readonly files: ReadonlyMap<string, KnownFile>;
  /** Where other files come from. */
  readonly others: "server" | "nowhere";
}

/** The answer of a server to the revalidation of a file: unchanged, or the file that it has now. */
type Verdict = "unchanged" | "not asked" | Response | null;

/** The error where a server says nothing of a file, not even that it has none. */
class OutOfReach extends FramebatchError {}

/** One load's view of a folder. */
export class WebFolder implements Folder {
  readonly contents = new Map<string, Promise<Uint8Array | undefined>>();
  private readonly kept: Promise<FileCache | undefined>;
  private readonly beginning: Promise<Beginning>;
  private readonly opened = new Map<string, Response | null>();
  /** Names whose files came from the server. */
  private readonly fetched = new Set<string>();
  private fallback: Promise<boolean> | undefined;
  /** Whether a cached file could not be read. */
  private isDamaged = false;

  get place(): string {
    return this.home.href;
  }

  constructor(
    /** Ends with a slash, without a query. */
    private readonly home: URL,
    private readonly signal: AbortSignal,
    isCached: boolean,
  ) {
    this.kept = isCached ? FileCache.of(home) : Promise.resolve(undefined);
    this.beginning = this.begin();
    // An error is told to whoever opens a file.
    this.beginning.catch(() => {});
  }

  async open(name: string): Promise<OpenFile | undefined> {
    const { files, others } = await this.beginning;
    const known = files.get(name);
    if (known === undefined && others === "nowhere") {
      throw invalid(
        ABOUT,
        `${name} is not among the files kept of ${this.home}; load the model again`,
      );
    }
    const isKept = known?.from === "cache";
    if (!isKept) this.fetched.add(name);
    const file = known === undefined ? await this.fetch(name) : known.file;
    this.opened.set(name, file);
    if (file === null) return undefined;
    const kept = isKept ? undefined : await this.kept;
    if (await kept?.begin()) kept!.put(name, file.clone());
    return this.stream(name, file, isKept);
  }

  async confirm(): Promise<void> {
    // A cached set was revalidated before it was read, as far as that is possible.
    if (this.fetched.size === 0) return;
    const verdicts = (await this.revalidate(this.opened)) ?? new Map();
    let changed: string | undefined;
    for (const [name, verdict] of verdicts) {
      if (verdict === "unchanged" || verdict === "not asked") continue;
      discard(verdict);
      changed = name;
    }
    if (changed === undefined) return;
    throw invalid(
      ABOUT,
      `${changed} changed at ${this.home} while the model was loaded; load it again`,
    );
  }

  keep(): void {
    void this.commit();
  }

  async abandon(): Promise<void> {
    await this.discardRest();
    const kept = await this.kept;
    if (kept === undefined) return;
    // Giving up waits for responses to end, so nobody awaits it here.
    if (this.fetched.size > 0) {
      const left = kept.giveUp();
      if (this.isDamaged) void left.then(() => kept.forget());
      return;
    }
    // A load also fails for what was asked of a folder that is right.
    if (!this.isDamaged) return;
    // Where the server is out of reach, what is kept is all that there is.
    const { others } = await this.beginning;
    if (others === "server") await kept.forget();
  }

  private async commit(): Promise<void> {
    await this.discardRest();
    const kept = await this.kept;
    if (kept === undefined || this.fetched.size === 0) return;
    if (await kept.begin()) await kept.commit(this.opened);
  }

  /** Lets go of files that nobody reads. */
  private async discardRest(): Promise<void> {
    const beginning = await this.beginning.catch(() => undefined);
    for (const { file } of beginning?.files.values() ?? []) discard(file);
  }

  private async begin(): Promise<Beginning> {
    const set = await (await this.kept)?.read();
    if (set === undefined) return { files: new Map(), others: "server" };
    const whole = new Map<string, KnownFile>();
    for (const [name, file] of set) whole.set(name, { file, from: "cache" });
    // Without validators a server cannot say whether files have changed.
    const canAsk = [...set.values()].some((file) => file && validatorOf(file));
    const verdicts = canAsk ? await this.revalidate(set) : undefined;
    if (verdicts === undefined) {
      return { files: whole, others: canAsk ? "nowhere" : "server" };
    }
    const said = [...verdicts.values()];
    if (said.every((verdict) => typeof verdict === "string")) {
      return { files: whole, others: "server" };
    }
    // The server has another version, to which only unchanged cached files belong.
    const files = new Map<string, KnownFile>();
    for (const [name, verdict] of verdicts) {
      if (verdict === "unchanged") files.set(name, whole.get(name)!);
      else if (verdict === "not asked") discard(set.get(name)!);
      else files.set(name, { file: verdict, from: "server" });
    }
    return { files, others: "server" };
  }

  /** What the server says of these files; undefined where it is out of reach. */
  private async revalidate(
    files: Files,
  ): Promise<ReadonlyMap<string, Verdict> | undefined> {
    this.signal.throwIfAborted();
    const asking = new AbortController();
    // Responses may be read long after this method has returned.
    const abort = (): void => asking.abort(this.signal.reason);
    this.signal.addEventListener("abort", abort);
    const patience = setTimeout(() => asking.abort(), PATIENCE);
    try {
      const all = [...files].map(
        async ([name, file]): Promise<[string, Verdict]> => [
          name,
          await this.judge(name, file, asking.signal),
        ],
      );
      return new Map(await Promise.all(all));
    } catch (error) {
      asking.abort(error);
      this.signal.throwIfAborted();
      if (error instanceof OutOfReach) return undefined;
      throw error;
    } finally {
      clearTimeout(patience);
    }
  }

  private async judge(
    name: string,
    file: Response | null,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const conditions = file === null ? undefined : conditionsOf(file);
    if (file !== null && validatorOf(file) === undefined) return "not asked";
    // A request with conditions goes by the browser's own cache, which may not keep files of
    // this size. Other origins would have to allow conditions, so there that cache asks.
    const answer = await this.ask(
      name,
      conditions === undefined
        ? { signal, cache: "no-cache" }
        : { signal, cache: "no-store", headers: conditions },
    );
    if (answer === null) return file === null ? "unchanged" : null;
    if (file === null || !isSame(file, answer)) return answer;
    discard(answer);
    return "unchanged";
  }

  private fetch(name: string): Promise<Response | null> {
    // The browser's own cache may have an older version, so files in it are revalidated, too.
    return this.ask(name, { signal: this.signal, cache: "no-cache" });
  }

  /** Asks for a file; null where the folder has none. */
  private async ask(name: string, init: RequestInit): Promise<Response | null> {
    const url = new URL(name, this.home);
    let answer: Response;
    try {
      answer = await fetch(url, init);
    } catch (cause) {
      this.signal.throwIfAborted();
      const { message } = failed(
        `${name} could not be fetched from ${url}`,
        cause,
      );
      throw new OutOfReach("invalid-input", message, { cause });
    }
    const { status, ok } = answer;
    if (ok && !isPage(answer)) return answer;
    if (status === NOT_MODIFIED && init.headers !== undefined) return answer;
    discard(answer);
    if (status === MISSING) return null;
    if (ok) {
      if (await (this.fallback ??= this.answersAll())) return null;
      throw invalid(
        ABOUT,
        `${name}: ${url} was answered with a page of HTML and status ${status}`,
      );
    }
    const problem = `${ABOUT}: ${name}: ${url} was answered with status ${status}`;
    // RFC 9111, 4.3.3: a cache may take a server's own errors for no answer at all.
    throw status >= 500
      ? new OutOfReach("invalid-input", problem)
      : new FramebatchError("invalid-input", problem);
  }

  /** Whether the server has a page for everything, as those of applications have. */
  private async answersAll(): Promise<boolean> {
    const url = new URL(NO_FILE, this.home);
    try {
      const { signal } = this;
      const answer = await fetch(url, { signal, cache: "no-cache" });
      discard(answer);
      return answer.ok && isPage(answer);
    } catch (cause) {
      this.signal.throwIfAborted();
      const { message } = failed(`${url} could not be fetched`, cause);
      throw new OutOfReach("invalid-input", message, { cause });
    }
  }

  private stream(name: string, file: Response, isKept: boolean): OpenFile {
    const { body, headers, type } = file;
    // Compressed on the way, the length is not that of the file. Of another origin the
    // length is to be seen, and whether it is compressed is not.
    const length =
      headers.has("content-encoding") || type === "cors"
        ? null
        : headers.get("content-length");
    return streamed(
      body ?? new Blob([]).stream(),
      length === null ? undefined : +length,
      (cause) => {
        this.signal.throwIfAborted();
        this.isDamaged ||= isKept;
        return failed(
          isKept
            ? `${name} could not be read from the browser's cache`
            : `${name} broke off on its way from ${new URL(name, this.home)}`,
          cause,
        );
      },
    );
  }
}

const isPage = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/html") === true;

/** What tells versions of a file apart; servers of other origins may not let it be seen. */
function validatorOf({ headers }: Response): string | undefined {
  return headers.get("etag") ?? headers.get("last-modified") ?? undefined;
}

/** The header that asks for a file unless it is still this one. */
function conditionsOf({
  headers,
  url,
}: Response): Record<string, string> | undefined {
  const { origin } = globalThis.location ?? {};
  // A response has the address that a request was redirected to.
  if (origin === undefined || url === "" || new URL(url).origin !== origin) {
    return undefined;
  }
  const etag = headers.get("etag");
  const modified = headers.get("last-modified");
  if (etag !== null) return { "if-none-match": etag };
  return modified === null ? undefined : { "if-modified-since": modified };
}

/** Whether an answer is of the version that a file is of. */
function isSame(file: Response, answer: Response): boolean {
  if (answer.status === NOT_MODIFIED) return true;
  // A server that compresses a file calls its validator weak.
  const etag = ({ headers }: Response) =>
    headers.get("etag")?.replace(/^W\//, "");
  const [before, now] = [etag(file), etag(answer)];
  if (before !== undefined || now !== undefined) return before === now;
  return validatorOf(file) === validatorOf(answer);
}

/** Cancels a response that nobody reads. */
function discard(answer: Response | null): void {
  // A response that is being read is locked, and its reader cancels it.
  answer?.body?.cancel().catch(() => {});
}
