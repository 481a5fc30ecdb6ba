// Marks what sessions make, so that messages name it in words: minified classes have no names.
//
// The mark is the same in every copy of the package, so that a tensor of another copy, which
// no class of this one knows, is told from anything else.

/** The version of the package. */
export const VERSION = "0.1.0";

interface Brand {
  /** What it is, with an article. */
  readonly name: string;
  readonly version: string;
  /** An object of the copy of the package that made it. */
  readonly copy: object;
}

const BRAND = Symbol.for("framebatch");
const COPY = {};

/** Marks an object, or the prototype of a class, as `a tensor`. */
export function mark(object: object, name: string): void {
  const brand: Brand = { name, version: VERSION, copy: COPY };
  Object.defineProperty(object, BRAND, { value: brand });
}

/** What a marked value is, in words; undefined for any other value. */
export function markedName(value: object): string | undefined {
  const brand = (value as { [BRAND]?: Brand })[BRAND];
  if (brand === undefined || brand.copy === COPY) return brand?.name;
  return `${brand.name} of another copy of framebatch (${brand.version}); ${ONE_COPY}`;
}

/** What to do about two copies of the package. */
export const ONE_COPY =
  "have the bundler load the package once, as by npm dedupe or resolve.dedupe";
