// Why a WebAssembly file did not load, in the words of whoever has to mend it.
//
// Every reason comes with the advice that fits it. How files are found and read is in
// `wasm-file.ts`.

/** Why one source of a file gave no module. */
export class LoadFailure extends Error {
  constructor(
    /** What happened. */
    readonly reason: string,
    /** What to do about it. */
    readonly advice: string,
    /** Whether the file may well lie at another place. */
    readonly mayLieElsewhere: boolean,
    options?: { cause?: unknown },
  ) {
    super(reason, options);
  }
}

/** What of a file the advice names. */
interface Named {
  readonly name: string;
  readonly inline: string;
  readonly hasNoOption?: true;
}

function misplaced(
  { name, inline, hasNoOption }: Named,
  reason: string,
  cause?: unknown,
): LoadFailure {
  const ways = `import "${inline}", which holds the file`;
  const serve = `serve the package's wasm/${name} there`;
  const advice = hasNoOption
    ? `${ways}, or ${serve}`
    : `${ways}, ${serve}, or give its address or its bytes as the option wasm`;
  return new LoadFailure(reason, advice, true, { cause });
}

/** A server that answers, but not with the file. */
export function wrongAnswer(
  file: Named,
  { url, status, headers }: Response,
  isHtml: boolean,
): LoadFailure {
  const what =
    status >= 400
      ? `HTTP ${status}`
      : isHtml
        ? "HTML in place of WebAssembly"
        : `what is not WebAssembly (${headers.get("content-type") ?? "of no type"})`;
  return misplaced(file, `${url || "the server"} answers with ${what}`);
}

/** Bytes, of a file or given, that are something else. */
export function wrongBytes(file: Named): LoadFailure {
  return misplaced(file, "what was given is not WebAssembly");
}

/** A path that cannot be read. */
export function unreadable(
  file: Named,
  path: URL | string,
  cause: unknown,
): LoadFailure {
  return misplaced(file, `${path} cannot be read (${saidBy(cause)})`, cause);
}

/** No address in sight. */
export function nowhere(file: Named): LoadFailure {
  return misplaced(file, "the package's scripts have no address here");
}

/** A server that does not answer, or may not be asked. */
export function unfetched(
  { inline }: Named,
  address: string,
  cause: unknown,
): LoadFailure {
  return new LoadFailure(
    `${address} could not be fetched (${saidBy(cause)})`,
    `see that the server runs, that its CORS headers and the connect-src of the page's Content-Security-Policy allow it, or import "${inline}"`,
    true,
    { cause },
  );
}

/** An engine that does not compile the file. */
export function uncompiled({ name }: Named, cause: unknown): LoadFailure {
  const said = saidBy(cause);
  const failure = (reason: string, advice: string) =>
    new LoadFailure(reason, advice, false, { cause });
  if (/Content.Security|\bCSP\b/i.test(said)) {
    return failure(
      "the page's Content-Security-Policy forbids WebAssembly",
      "add 'wasm-unsafe-eval' to its script-src",
    );
  }
  if (/disallowed by embedder/.test(said)) {
    return failure(
      "this runtime compiles no WebAssembly at run time",
      `import module from "framebatch/${name}", and give it as the option wasm`,
    );
  }
  return failure(said, "give another file as the option wasm");
}

function saidBy(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
