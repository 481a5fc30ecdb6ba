// Everything that is seen: the field, the list, the figures, the words.
//
// The panel shows what it is told and says what is typed; it makes no call.

import type { Embedder } from "framebatch/embeddings";
import type { Session } from "framebatch";
import { Chart } from "./charts.ts";
import type { Hit } from "./library.ts";
import type { Speed } from "./rate.ts";

const DEVICES = { gpu: "GPU", cpu: "CPU" };

export class Panel {
  readonly speed = new Chart(
    element("#speed"),
    [{ label: "tokens a second", color: "--framebatch" }],
    "line",
  );
  readonly batches = new Chart(
    element("#batches"),
    [
      { label: "indexing", color: "--framebatch" },
      { label: "your questions", color: "--per-call" },
    ],
    "points",
  );
  private readonly field = element<HTMLInputElement>("#question");
  private readonly run = element<HTMLButtonElement>("#run");
  private readonly rerank = element<HTMLInputElement>("#rerank");
  private shown: readonly Hit[] = [];

  get question(): string {
    return this.field.value.trim();
  }

  /** Every change of the field, and every example that is taken. */
  onQuestion(ask: () => void): void {
    this.field.addEventListener("input", ask);
    element("#ask").addEventListener("submit", (event) =>
      event.preventDefault(),
    );
    for (const example of document.querySelectorAll<HTMLElement>(".example")) {
      example.addEventListener("click", () => {
        this.field.value = example.innerText;
        ask();
      });
    }
  }

  onRun(press: () => void): void {
    this.run.addEventListener("click", press);
  }

  /** Every change of whether a reranker is wanted. */
  onRerank(change: () => void): void {
    this.rerank.addEventListener("change", change);
  }

  /** There is a session, so there may be a reranker. */
  offerReranker(): void {
    this.rerank.disabled = false;
  }

  get isRerankerWanted(): boolean {
    return this.rerank.checked;
  }

  /** Takes the switch back: there is no reranker. */
  refuseReranker(): void {
    this.rerank.checked = false;
  }

  /** What the button does next; nothing while there is nothing to do. */
  offer(next: "Stop" | "Index again" | "Try again" | undefined): void {
    this.run.disabled = next === undefined;
    if (next !== undefined) this.run.textContent = next;
  }

  /** What the page is at, in a sentence. */
  say(sentence: string): void {
    element("#state").textContent = sentence;
  }

  /** What went wrong, if anything did; with the model, also where models come from. */
  complain(problem: unknown, isOfModel = false): void {
    const { code, message } = (problem ?? {}) as {
      code?: string;
      message?: string;
    };
    const line = element("#problem");
    line.hidden = problem === undefined;
    line.textContent =
      problem === undefined
        ? ""
        : `${message ?? String(problem)}${code ? ` (${code})` : ""}`;
    element("#fetching").hidden = !isOfModel;
  }

  progress(loaded: number, total: number): void {
    const bar = element<HTMLProgressElement>("#progress");
    bar.hidden = loaded >= total;
    bar.value = loaded / total;
  }

  /** What the model is, and where it ran so far. */
  tellModel(gpu: Session, { info }: Embedder): void {
    const { adapter, software, engine } = gpu.info!;
    const { ranOn } = gpu.stats();
    const device = `${DEVICES[engine]}${engine === "gpu" ? `, ${adapter}${software ? " (software)" : ""}` : ""}`;
    element("#model").textContent =
      `Engine: ${device}. Matrices in ${info.dtype}, ${info.layers} layers, ${info.dimensions} floats a vector. ` +
      `Calls so far: ${count(ranOn.gpu)} on the GPU, ${count(ranOn.cpu)} on the CPU.`;
  }

  tellFigures(size: number, total: number, speed: Speed, batch: number): void {
    figure("passages").textContent = `${count(size)} / ${count(total)}`;
    figure("texts").textContent = count(speed.texts);
    figure("tokens").textContent = count(speed.tokens);
    figure("batch").textContent = count(batch);
  }

  /** The passages that were found, best first; undefined when nothing was asked. */
  list(hits: readonly Hit[] | undefined): void {
    const same =
      hits?.length === this.shown.length &&
      hits.every(({ passage, before }, i) => {
        const shown = this.shown[i];
        return passage === shown.passage && before === shown.before;
      });
    this.shown = hits ?? [];
    if (same) return;
    element("#results").replaceChildren(...this.shown.map(listed));
  }

  /** What was said of what was found. */
  get found(): string {
    return element("#found").textContent!;
  }

  /** Says what was found, for those who do not see the list change. */
  tellFound(sentence: string): void {
    element("#found").textContent = sentence;
  }
}

function listed({ passage, score, before }: Hit, at: number): HTMLLIElement {
  const out = document.createElement("li");
  const where = document.createElement("p");
  where.className = "where";
  const moved =
    before === undefined
      ? ""
      : before === at + 1
        ? " · where it was"
        : ` · ${before > at + 1 ? "up" : "down"} from ${before}`;
  where.textContent = `${passage.chapter} · ${score.toFixed(2)}${moved}`;
  const text = document.createElement("blockquote");
  text.textContent = passage.text;
  out.append(where, text);
  return out;
}

/** Whole numbers; of small ones one decimal. */
export function count(value: number): string {
  const isSmall = value < 10 && !Number.isInteger(value);
  return value.toLocaleString("en", {
    maximumFractionDigits: isSmall ? 1 : 0,
  });
}

const figure = (name: string) => element(`[data-figure="${name}"]`);

function element<T extends HTMLElement = HTMLElement>(selector: string): T {
  return document.querySelector<T>(selector)!;
}
