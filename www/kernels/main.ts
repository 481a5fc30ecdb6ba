// The playground: a kernel is written, run, drawn, compared and profiled.
//
//   #…   the kernel, as the page writes it to its address while it is edited
//
// What was found of the last run is also `window.__result`. Nothing runs before the button is
// pressed: an address may come from anybody.

import { type Info, open, type Session } from "framebatch";
import { Editor } from "./editor.ts";
import { EXAMPLES } from "./examples.ts";
import { experiment, type Listener } from "./experiment.ts";
import { Fields } from "./fields.ts";
import { type Problem, problemIn } from "./problem.ts";
import { clear, reportTo } from "./report.ts";
import { fromHash, problemOf, type Sketch, toHash } from "./sketch.ts";

const form = element<HTMLFormElement>("kernel");
const example = element<HTMLSelectElement>("example");
const name = element<HTMLInputElement>("name");
const cpu = element<HTMLTextAreaElement>("cpu");
const shape = element<HTMLInputElement>("shape");
const callers = element<HTMLInputElement>("callers");
const places = element<HTMLInputElement>("places");
const run = element<HTMLButtonElement>("run");
const editor = new Editor(
  element("editor"),
  element<HTMLTextAreaElement>("code"),
);
const lookedAt = element<HTMLInputElement>("looked-at");
const fields = new Fields({
  inputs: element("inputs"),
  params: element("params"),
  lookedAt,
});
const panels = {
  drawn: element("drawn"),
  merged: element("merged"),
  verified: element("verified"),
  profiled: element("profiled"),
};

const KEEP_MS = 400;
let keeping: ReturnType<typeof setTimeout> | undefined;
let session: Promise<Session> | undefined;

// What the choice says of code that is no example, and nobody chooses.
const other = new Option("Your own", "");
other.disabled = other.hidden = true;
example.append(
  other,
  ...Object.keys(EXAMPLES).map((title) => new Option(title, title)),
);
example.addEventListener("change", () => {
  show(EXAMPLES[example.value]);
  keep();
  element("stranger").hidden = true;
});
form.addEventListener("input", ({ target }) => {
  if (target === example) return;
  if (target === element("code") || target === lookedAt) {
    fields.follow(editor.code);
  }
  if (target === element("code")) tellProblem(undefined);
  cpu.rows = cpu.value.split("\n").length;
  example.value = "";
  keepSoon();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void start();
});
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
element("share").addEventListener("click", () => void share());
addEventListener("hashchange", openHash);
openHash();

/** Shows the kernel of the address; the first example where it has none. */
function openHash(): void {
  const [first] = Object.keys(EXAMPLES);
  const given = fromHash(location.hash);
  const own = Object.entries(EXAMPLES).find(
    ([, sketch]) => toHash(sketch) === location.hash,
  );
  if (location.hash !== "" && given === undefined) {
    tell("The address holds no kernel that this page can read.");
  }
  show(given ?? EXAMPLES[first]);
  example.value = given === undefined ? first : (own?.[0] ?? "");
  element("stranger").hidden = given === undefined || own !== undefined;
}

function show(sketch: Sketch): void {
  name.value = sketch.name;
  editor.code = sketch.code;
  cpu.value = sketch.cpu;
  cpu.rows = sketch.cpu.split("\n").length;
  shape.value = sketch.shape.join(" x ");
  callers.value = String(sketch.callers);
  places.value = String(sketch.places);
  fields.fill(sketch);
  tellProblem(undefined);
  clear(panels);
}

/** What the form says. */
function entered(): Sketch {
  return {
    name: name.value.trim(),
    code: editor.code,
    cpu: cpu.value,
    ...fields.read(),
    shape: (shape.value.match(/[\d.]+/g) ?? []).map(Number),
    callers: callers.valueAsNumber || 0,
    places: places.valueAsNumber || 0,
  };
}

/** Writes the kernel to the address, without an entry in the history. */
function keep(): void {
  clearTimeout(keeping);
  history.replaceState(null, "", toHash(entered()));
}

/** Writes it soon: browsers refuse to change an address with every key. */
function keepSoon(): void {
  clearTimeout(keeping);
  keeping = setTimeout(keep, KEEP_MS);
}

async function start(): Promise<void> {
  // The keyboard asks for a run without the button.
  if (run.disabled) return;
  const sketch = entered();
  const found: Record<string, unknown> = {};
  run.disabled = true;
  tellProblem(undefined);
  clear(panels);
  tell("Running…");
  Object.assign(window, { __result: undefined });
  const started = performance.now();
  try {
    const wrong = problemOf(sketch);
    if (wrong !== undefined) throw new RangeError(wrong);
    const gpu = await (session ??= openSession());
    await experiment(gpu, sketch, noting(found, reportTo(panels)));
    const seconds = (performance.now() - started) / 1000;
    tell(`Done in ${seconds.toFixed(1)} s.`);
  } catch (error) {
    found.problem = problemIn(error);
    tellProblem(found.problem as Problem);
    tell("");
  } finally {
    run.disabled = false;
    Object.assign(window, { __result: found });
  }
}

/** The same listener, of which what it hears is noted. */
function noting(found: Record<string, unknown>, to: Listener): Listener {
  return {
    drawn: (results) => to.drawn((found.drawn = results) && results),
    merged: (merged) => to.merged((found.merged = merged) && merged),
    verified(verified) {
      found.verified = verified;
      to.verified(verified);
    },
    profiled(profile, of) {
      found.profile = profile;
      to.profiled(profile, of);
    },
  };
}

/** A session on the GPU, in software too; on the CPU where there is none. */
async function openSession(): Promise<Session> {
  const gpu = await open({ engine: "gpu" }).catch((error: unknown) => {
    const notice = element("notice");
    notice.hidden = false;
    notice.textContent = `No WebGPU here (${(error as { code?: string }).code ?? error}): functions for the CPU compute.`;
    return open({ engine: "cpu" });
  });
  element("machine").textContent = machine(gpu.info);
  return gpu;
}

const machine = (info: Info | undefined): string =>
  info === undefined || info.engine === "cpu"
    ? "Computed on the CPU."
    : `Computed on ${info.adapter || "a nameless GPU"}${info.software ? ", in software" : ""}.`;

function tellProblem(problem: Problem | undefined): void {
  const line = element("problem");
  line.hidden = problem === undefined;
  element("found").classList.toggle("stopped", problem !== undefined);
  editor.tell(problem?.place);
  line.replaceChildren();
  if (problem === undefined) return;
  const { code: kind, message, place } = problem;
  if (place !== undefined) {
    const link = document.createElement("button");
    link.type = "button";
    link.textContent = `Line ${place.line}, column ${place.column}`;
    link.addEventListener("click", () => editor.goTo(place));
    line.append(link, " ");
  }
  if (kind !== undefined) {
    const code = document.createElement("code");
    code.textContent = kind;
    line.append(code, " ");
  }
  const [sentence, ...lines] = message.split("\n");
  line.append(sentence);
  if (lines.length === 0) return;
  // Compilers point at a column by what stands below it.
  const code = document.createElement("code");
  code.className = "lines";
  code.textContent = lines.join("\n");
  line.append(code);
}

async function share(): Promise<void> {
  keep();
  try {
    await navigator.clipboard.writeText(location.href);
    tell("The link is in the clipboard.");
  } catch {
    // A page may be refused the clipboard, and then somebody copies by hand.
    tell("The address of this page is the link.");
  }
}

function tell(text: string): void {
  element("state").textContent = text;
}

function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
