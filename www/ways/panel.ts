// What pages share that answer the same calls in several ways: the switch, the live
// figures, and what is said where there is no GPU.
//
// The panel shows what it is told and says what is chosen; it makes no call and counts nothing.

/** Figures change no more often, in milliseconds, so that one can read them. */
const READABLE = 200;

export class Panel<WayName extends string> {
  private lastFigures = -Infinity;

  canvas(id: string): HTMLCanvasElement {
    return element<HTMLCanvasElement>(`canvas#${id}`);
  }

  /** The way that is chosen. */
  get way(): WayName {
    return element<HTMLInputElement>("#ways :checked").value as WayName;
  }

  color(way: WayName): string {
    return getComputedStyle(document.documentElement)
      .getPropertyValue(`--${way}`)
      .trim();
  }

  /** Says plainly that there is no GPU and what is done instead; leaves the ways that work. */
  tellProblem(problem: unknown, ways: object, instead: string): void {
    const { code, message } = problem as { code?: string; message?: string };
    const notice = element("#notice");
    notice.hidden = false;
    notice.textContent = `No WebGPU here (${code ?? "error"}): ${message ?? problem}. ${instead}`;
    for (const input of document.querySelectorAll<HTMLInputElement>(
      "#ways input",
    )) {
      input.disabled = !(input.value in ways);
      input.checked = input.value === "loop";
    }
  }

  /** Shows a frame's figures: counts, and times in milliseconds. False where it is too early. */
  tellFigures(
    counts: Record<string, number>,
    times: Record<string, number>,
  ): boolean {
    const now = performance.now();
    if (now - this.lastFigures < READABLE) return false;
    this.lastFigures = now;
    for (const [name, count] of Object.entries(counts)) {
      figure(name).textContent = count.toLocaleString("en");
    }
    for (const [name, time] of Object.entries(times)) {
      figure(name).textContent = `${rounded(time)} ms`;
    }
    return true;
  }
}

/** Two digits for small numbers, none for large ones. */
export function rounded(value: number): string {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

const figure = (name: string) => element(`[data-figure="${name}"]`);

export function element<T extends HTMLElement = HTMLElement>(
  selector: string,
): T {
  return document.querySelector<T>(selector)!;
}
