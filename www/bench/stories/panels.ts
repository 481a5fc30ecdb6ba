// The five rows on the page: a panel each, with the bars that were measured, here and in a
// kept record beside it.

import { type KeptRecord, RECORDS } from "kept-records";
import type { Row } from "../record.ts";
import { type Bar, barsOf, lengthOf, SCALE, timeText } from "./bars.ts";
import { STORIES, type Story } from "./stories.ts";

export class StoryPanels {
  private rows: readonly Row[] = [];
  private readonly panels = STORIES.map((story) => new Panel(story));
  private readonly beside = document.createElement("select");

  constructor(into: HTMLElement) {
    const label = document.createElement("label");
    label.className = "beside";
    label.append("Beside a record of ", this.beside);
    this.beside.append(...options());
    this.beside.addEventListener("change", () => this.draw());
    const scale = document.createElement("p");
    scale.className = "quiet";
    scale.textContent = `${SCALE} Pale bars are those of the record.`;
    const list = document.createElement("div");
    list.className = "stories";
    list.append(...this.panels.map(({ element }) => element));
    into.append(label, scale, list);
    this.draw();
  }

  /** The record that is shown beside. */
  get kept(): KeptRecord | undefined {
    return RECORDS.find(({ name }) => name === this.beside.value);
  }

  show(rows: readonly Row[]): void {
    this.rows = rows;
    this.draw();
  }

  private draw(): void {
    for (const panel of this.panels) panel.draw(this.rows, this.kept);
  }
}

function options(): HTMLOptionElement[] {
  const none = new Option("none", "");
  const kept = RECORDS.map(({ name, adapter, browser }) => {
    // A file's name is its day, its machine and what it is about.
    const about = name.replace(adapter.replaceAll(" ", "-"), "");
    const [, day, run] = /^(\d+-\d+-\d+)-*(.*)$/.exec(about) ?? [];
    return new Option(`${adapter}, ${browser}, ${day}: ${run}`, name);
  });
  // The one that measured the most comes first.
  if (kept.length > 0) kept[0].selected = true;
  return [none, ...kept];
}

class Panel {
  readonly element = document.createElement("section");
  private readonly bars = document.createElement("ul");

  constructor(private readonly story: Story) {
    const title = document.createElement("h2");
    title.textContent = story.title;
    const about = document.createElement("p");
    about.className = "quiet";
    about.textContent = story.about;
    this.bars.className = "bars";
    this.element.className = "panel";
    this.element.append(title, about, this.bars);
  }

  draw(rows: readonly Row[], kept: KeptRecord | undefined): void {
    const bars = barsOf(this.story, rows, kept);
    const lines = bars.map((bar) => line(bar, bars));
    if (lines.length === 0) lines.push(empty());
    this.bars.replaceChildren(...lines);
  }
}

function line(bar: Bar, all: readonly Bar[]): HTMLElement {
  const { system, name, here, there, problem } = bar;
  const item = document.createElement("li");
  item.style.setProperty("--way", `var(--${system})`);
  const title = document.createElement("span");
  title.textContent = name;
  item.append(title);
  if (problem !== undefined) item.append(text("problem", problem));
  if (here !== undefined) item.append(amount("here", here, all));
  if (there !== undefined) item.append(amount("there", there, all));
  return item;
}

function amount(
  where: "here" | "there",
  time: number,
  all: readonly Bar[],
): HTMLElement {
  const element = text(`amount ${where}`, timeText(time));
  element.style.setProperty("--share", `${100 * lengthOf(time, all)}%`);
  if (where === "there") element.title = "of the record beside";
  return element;
}

function text(className: string, content: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = content;
  return element;
}

function empty(): HTMLElement {
  const item = document.createElement("li");
  item.textContent = "Not measured yet.";
  return item;
}
