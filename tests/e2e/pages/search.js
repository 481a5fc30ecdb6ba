// Searching in float64: every score, sorted.

/** Floats from -1 to 1 that are the same in every run. */
export function floats(count, seed) {
  let state = seed >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/**
 * What is wrong with the results of a query, or undefined. A result may be elsewhere
 * than in the sort only where scores are nearer than they are exact.
 */
export function wrong(vectors, query, metric, { ids, scores }, k) {
  const dim = query.length;
  const length = (floats, at) => {
    let sum = 0;
    for (let i = 0; i < dim; i++) sum += floats[at + i] ** 2;
    return Math.sqrt(sum) || 1;
  };
  const ofQuery = metric === "cosine" ? length(query, 0) : 1;
  const exact = [];
  let bound = 0;
  for (let at = 0; at < vectors.length; at += dim) {
    const by = metric === "cosine" ? length(vectors, at) * ofQuery : 1;
    let sum = 0;
    let size = 0;
    for (let i = 0; i < dim; i++) {
      const [x, q] = [vectors[at + i], query[i]];
      const term = metric === "l2" ? (x - q) ** 2 : (x * q) / by;
      sum += term;
      size += Math.abs(term);
    }
    exact.push({ id: at / dim, score: sum });
    bound = Math.max(bound, (dim + 8) * 2 ** -24 * size);
  }
  const sign = metric === "l2" ? -1 : 1;
  const sorted = [...exact].sort(
    (a, b) => sign * (b.score - a.score) || a.id - b.id,
  );
  if (ids.length !== k || scores.length !== k) return `${ids.length} results`;
  if (new Set(ids).size !== k) return "a result twice";
  for (let i = 0; i < k; i++) {
    const { score } = exact[ids[i]];
    const off = Math.abs(scores[i] - score);
    if (!(off <= bound)) return `${ids[i]}: ${scores[i]} for ${score}`;
    const apart = Math.abs(score - sorted[i].score);
    if (apart > 2 * bound) return `${i}: ${ids[i]}, not ${sorted[i].id}`;
  }
  return undefined;
}
