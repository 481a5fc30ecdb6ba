// What is wrong with a run of the demo page: answers, and how framebatch sent its calls.
//
// Figures come in, texts go out; no page is opened and nothing is measured.

// How far unit quaternions may be from a slerp in double precision. WGSL promises little of
// the acos that the per-call way uses, so its answers get more room.
const SLERPS = { framebatch: 1e-6, "per-call": 1e-3, loop: 1e-6 };
// How far a network's values, of magnitudes up to 20, may be from double precision.
const CREATURES = { framebatch: 1e-4, awaited: 1e-4, tfjs: 1e-4, loop: 1e-4 };

/**
 * What is wrong with the answers, and with how framebatch sent its calls. Where `webgpu` is
 * "absent" rather than "expected", only the loop has slerps.
 */
export function problemsOf({ rows, apart, slerps }, webgpu = "expected") {
  const { loop } = SLERPS;
  const problems = [
    ...misses("creatures", rows, CREATURES),
    ...misses("slerps", slerps, webgpu === "absent" ? { loop } : SLERPS),
  ];
  if (!isWithin(apart, 2 * CREATURES.tfjs)) {
    problems.push(`creatures: two ways are ${apart} apart`);
  }
  for (const row of rows.filter(({ way }) => way === "framebatch")) {
    if (row.batches !== 1 || row.submissions > 1 || row.readbacks > 1) {
      problems.push("creatures: framebatch needed more than one batch");
    }
  }
  const batched = slerps.find((row) => row.way === "framebatch");
  if (batched && (batched.submissions !== 1 || batched.readbacks !== 1)) {
    problems.push("framebatch needed more than one submission or read-back");
  }
  return problems;
}

function misses(table, rows, bounds) {
  return Object.entries(bounds).flatMap(([way, bound]) => {
    const own = rows.filter((row) => row.way === way);
    if (own.length === 0) return [`${table}, ${way}: it did not run`];
    return own
      .filter(({ error }) => !isWithin(error, bound))
      .map(({ error }) => `${table}, ${way}: an answer is wrong by ${error}`);
  });
}

/** What is not a number arrives from the page as null, and null is less than any bound. */
function isWithin(error, bound) {
  return Number.isFinite(error) && error <= bound;
}
