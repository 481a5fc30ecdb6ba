// Cuts a text into passages: what is embedded, found and shown.
//
// A passage is of one chapter and made of whole sentences, as far as these are short
// enough; words are what spaces separate. Nothing of the text but headings is left out.

export interface Passage {
  readonly chapter: string;
  /** Paragraphs are apart by a line break. */
  readonly text: string;
}

/** Words of a passage at most: what small models take whole. */
const MOST = 60;
/** Words after which the next paragraph begins a passage of its own. */
const ENOUGH = 30;

const HEADING = /^Chapter \d+$/;
const SENTENCES = /(?<=[.!?]["')]?)(?<!\b(?:Mr|Mrs|Dr|St)\.) /;
const CLAUSES = /(?<=[,;:—]["')]?) /;

/** The passages of a text with a paragraph a line and headings like "Chapter 7". */
export function passagesOf(text: string): Passage[] {
  const passages: Passage[] = [];
  let chapter = "";
  let held = "";
  const end = () => {
    if (held !== "") passages.push({ chapter, text: held });
    held = "";
  };
  for (const line of text.split("\n").filter((line) => line !== "")) {
    const isHeading = HEADING.test(line);
    if (isHeading || wordsIn(held) >= ENOUGH) end();
    if (isHeading) {
      chapter = line;
      continue;
    }
    let gap = "\n";
    for (const piece of piecesOf(line)) {
      if (wordsIn(held) + wordsIn(piece) > MOST) end();
      held += held === "" ? piece : gap + piece;
      gap = " ";
    }
  }
  end();
  return passages;
}

/** A paragraph's sentences; of a sentence that is too long its clauses. */
function piecesOf(paragraph: string): string[] {
  return paragraph
    .split(SENTENCES)
    .flatMap((sentence) =>
      wordsIn(sentence) > MOST ? sentence.split(CLAUSES) : [sentence],
    );
}

const wordsIn = (text: string) =>
  text === "" ? 0 : text.split(/[ \n]/).length;
