// Finds what is near a place of the world, whose opposite edges touch.
//
// The grid is filled anew each frame. It knows places and nothing of what lies there.

export interface Placed {
  x: number;
  y: number;
}

export class Grid<Thing extends Placed> {
  private readonly columns: number;
  private readonly lines: number;
  private readonly cells: Thing[][];

  /** Finds things up to `range` away; the world is at least three times as wide and high. */
  constructor(
    private readonly width: number,
    private readonly height: number,
    readonly range: number,
  ) {
    this.columns = Math.floor(width / range);
    this.lines = Math.floor(height / range);
    this.cells = Array.from({ length: this.columns * this.lines }, () => []);
  }

  fill(things: readonly Thing[]): void {
    for (const cell of this.cells) cell.length = 0;
    for (const thing of things) {
      this.cells[this.line(thing) * this.columns + this.column(thing)].push(
        thing,
      );
    }
  }

  /** Hands `notice` all things within the range, each with the way to it. */
  near(
    place: Placed,
    notice: (thing: Thing, dx: number, dy: number, distance: number) => void,
  ): void {
    const { columns, lines, cells, width, height, range } = this;
    const [column, line] = [this.column(place), this.line(place)];
    for (let down = lines - 1; down <= lines + 1; down++) {
      const row = ((line + down) % lines) * columns;
      for (let across = columns - 1; across <= columns + 1; across++) {
        for (const thing of cells[row + ((column + across) % columns)]) {
          const dx = shortest(thing.x - place.x, width);
          const dy = shortest(thing.y - place.y, height);
          const square = dx * dx + dy * dy;
          if (square >= range * range || thing === place) continue;
          notice(thing, dx, dy, Math.sqrt(square));
        }
      }
    }
  }

  private column({ x }: Placed): number {
    return Math.min(
      this.columns - 1,
      Math.floor((x / this.width) * this.columns),
    );
  }

  private line({ y }: Placed): number {
    return Math.min(this.lines - 1, Math.floor((y / this.height) * this.lines));
  }
}

/** The shorter way, where `size` further is the same place. */
const shortest = (way: number, size: number) =>
  way > size / 2 ? way - size : way < -size / 2 ? way + size : way;

/** The same place within the world. */
export const within = (at: number, size: number) => ((at % size) + size) % size;
