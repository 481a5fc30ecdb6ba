// The field for the code: numbers beside its lines, and a mark on the line that is wrong.

/** Where something is wrong, from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export class Editor {
  private readonly numbers: HTMLElement;
  private readonly mark: HTMLElement;

  /** `frame` holds the text area, and gets the numbers and the mark. */
  constructor(
    frame: HTMLElement,
    private readonly area: HTMLTextAreaElement,
  ) {
    this.numbers = document.createElement("div");
    this.numbers.className = "numbers";
    this.mark = document.createElement("div");
    this.mark.className = "mark";
    this.mark.hidden = true;
    for (const own of [this.numbers, this.mark]) {
      own.setAttribute("aria-hidden", "true");
      frame.prepend(own);
    }
    area.addEventListener("input", () => this.edited());
    this.edited();
  }

  get code(): string {
    return this.area.value;
  }

  set code(code: string) {
    this.area.value = code;
    this.edited();
  }

  /** Marks a line; undefined takes the mark away. */
  tell(place: Place | undefined): void {
    for (const number of this.numbers.children) {
      number.classList.remove("wrong");
    }
    this.mark.hidden = place === undefined;
    this.area.setAttribute("aria-invalid", String(place !== undefined));
    if (place === undefined) return;
    this.mark.style.setProperty("--line-number", String(place.line));
    this.numbers.children[place.line - 1]?.classList.add("wrong");
  }

  /** Puts the cursor on the word at a place. */
  goTo({ line, column }: Place): void {
    const lines = this.area.value.split("\n");
    const before = lines.slice(0, line - 1).join("\n").length;
    const start = before + (line > 1 ? 1 : 0) + column - 1;
    const [word = ""] = /^\w*/.exec(this.area.value.slice(start)) ?? [];
    this.area.focus();
    this.area.setSelectionRange(start, start + Math.max(word.length, 1));
  }

  private edited(): void {
    const lines = this.area.value.split("\n");
    // The area is as high as its lines, so that numbers and the mark need not follow its scrolling.
    this.area.rows = lines.length;
    this.numbers.replaceChildren(
      ...lines.map((_, at) => {
        const number = document.createElement("span");
        number.textContent = String(at + 1);
        return number;
      }),
    );
    this.tell(undefined);
  }
}
