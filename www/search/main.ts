// The search page: a novel, indexed and searched in the page by what sentences mean.
//
//   ?model=ADDRESS   another model's folder; otherwise `model/` beside the page
//   ?reranker=ADDRESS   a folder of a cross-encoder; otherwise `reranker/` beside the page
//   ?engine=, ?dtype=   as `open` and `gpu.embedder` take them

import {
  FramebatchError,
  open,
  type OpenOptions,
  type Session,
} from "framebatch";
import type {
  Embedder,
  EmbedderOptions,
  Reranker,
} from "framebatch/embeddings";
import "framebatch/embeddings";
import "framebatch/search";
import { Library } from "./library.ts";
import { count, Panel } from "./panel.ts";
import { type Passage, passagesOf } from "./passages.ts";
import { Rate } from "./rate.ts";

const query = new URLSearchParams(location.search);
const panel = new Panel();
let opened: { gpu: Session; embedder: Embedder; passages: Passage[] };
let library: Library | undefined;
/** The reranker, once somebody has wanted it. */
let reranker: Promise<Reranker> | undefined;
/** The same while it orders what is found. */
let wanted: Reranker | undefined;
let stop: AbortController | undefined;
/** When indexing began, on the clock of `performance.now()`. */
let start = 0;
/** Whether the index has grown since it was asked, and whether it is being asked. */
let hasGrown = false;
let isAskingAgain = false;

panel.onQuestion(() => void ask());
panel.onRerank(() => void rerank());
panel.onRun(() => {
  if (stop !== undefined) stop.abort("stopped");
  else if (opened === undefined) void begin();
  else void fill();
});
void begin();

/** Opens the device and brings the model; the text comes meanwhile. */
async function begin(): Promise<void> {
  panel.offer(undefined);
  panel.complain(undefined);
  panel.say("Loading the model and the text…");
  let gpu: Session | undefined;
  try {
    gpu = await open({
      engine: (query.get("engine") ?? "auto") as OpenOptions["engine"],
    });
    const [embedder, text] = await Promise.all([
      gpu.embedder(query.get("model") ?? "./model/", {
        dtype: (query.get("dtype") ?? "auto") as EmbedderOptions["dtype"],
        onProgress: ({ loaded, total }) => panel.progress(loaded, total),
      }),
      fetchText(),
    ]);
    opened = { gpu, embedder, passages: passagesOf(text) };
  } catch (problem) {
    void gpu?.dispose();
    panel.progress(1, 1);
    panel.say("Nothing can be searched yet.");
    const isOfModel = gpu !== undefined && problem instanceof FramebatchError;
    panel.complain(problem, isOfModel);
    panel.offer("Try again");
    return;
  }
  panel.offerReranker();
  opened.gpu.on("fallback", ({ message }) => panel.complain({ message }));
  await fill();
}

/** Indexes all of it from the start, until it is done or stopped. */
async function fill(): Promise<void> {
  const { gpu, embedder, passages } = opened;
  library?.dispose();
  const own = (library = new Library(gpu, embedder, passages));
  own.reranker = wanted;
  stop = new AbortController();
  start = performance.now();
  const rate = new Rate(start);
  panel.speed.clear();
  panel.batches.clear();
  panel.complain(undefined);
  panel.say("Indexing: what is there can be searched already.");
  panel.offer("Stop");
  void ask();
  let end = "Stopped";
  try {
    await own.fill(stop.signal, ({ texts, tokens }) => {
      const now = performance.now();
      const speed = rate.add(now, texts, tokens);
      panel.speed.push(seconds(now), speed.tokens);
      panel.batches.push(seconds(now), texts, null);
      panel.tellFigures(own.size, passages.length, speed, texts);
      panel.tellModel(gpu, embedder);
      void askAgain();
    });
    end = "Indexed";
  } catch (problem) {
    if (problem !== "stopped") panel.complain(problem);
  }
  stop = undefined;
  const { texts, tokens } = rate.whole;
  panel.say(
    `${end} after ${count(seconds(performance.now()))} s: ${count(own.size)} passages, ` +
      `${count(texts)} texts and ${count(tokens)} tokens a second.`,
  );
  panel.offer("Index again");
  await askAgain();
}

/** Answers what is typed. Every key is a question; batching takes care of the rest. */
async function ask(): Promise<void> {
  const { question } = panel;
  if (library === undefined) return;
  if (question === "") {
    library.forget();
    panel.list(undefined);
    panel.tellFound("");
    return;
  }
  const own = library;
  const asked = performance.now();
  try {
    const hits = await own.ask(question, ({ calls }) => {
      panel.batches.push(seconds(performance.now()), null, calls);
    });
    if (hits === undefined || own !== library) return;
    panel.list(hits);
    tellFound(hits.length, `, after ${count(performance.now() - asked)} ms`);
    panel.tellModel(opened.gpu, opened.embedder);
  } catch (problem) {
    if (own === library) panel.complain(problem);
  }
}

/** Has what is found ordered by a reranker, or no longer. */
async function rerank(): Promise<void> {
  panel.complain(undefined);
  let loaded: Reranker | undefined;
  try {
    if (panel.isRerankerWanted) loaded = await loadReranker();
  } catch (problem) {
    reranker = undefined;
    panel.refuseReranker();
    panel.complain(problem, problem instanceof FramebatchError);
  }
  wanted = panel.isRerankerWanted ? loaded : undefined;
  if (library === undefined) return;
  library.reranker = wanted;
  await askAgain();
}

function loadReranker(): Promise<Reranker> {
  return (reranker ??= opened.gpu.reranker(
    query.get("reranker") ?? "./reranker/",
    {
      dtype: (query.get("dtype") ?? "auto") as EmbedderOptions["dtype"],
      onProgress: ({ loaded, total }) => panel.progress(loaded, total),
    },
  ));
}

/** The index has grown: what is found may have, too. */
async function askAgain(): Promise<void> {
  hasGrown = true;
  if (isAskingAgain) return;
  isAskingAgain = true;
  while (hasGrown) {
    hasGrown = false;
    const own = library!;
    try {
      const hits = await own.askAgain();
      if (hits === undefined || own !== library) continue;
      panel.list(hits);
      // Screen readers read the count out, so it is not told with every slice.
      if (stop === undefined || panel.found === "") tellFound(hits.length, "");
    } catch (problem) {
      if (own === library) panel.complain(problem);
    }
  }
  isAskingAgain = false;
}

function tellFound(hits: number, when: string): void {
  if (hits === 0) return panel.tellFound("");
  const among =
    stop === undefined ? `of ${count(library!.size)} passages` : "so far";
  panel.tellFound(`The best ${hits} ${among}${when}.`);
}

async function fetchText(): Promise<string> {
  const address = new URL("./text.txt", import.meta.url);
  const response = await fetch(address);
  if (response.ok) return response.text();
  throw new Error(`${address} was answered with status ${response.status}`);
}

const seconds = (now: number) => (now - start) / 1000;
