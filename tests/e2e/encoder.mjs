// An encoder in float64, by plain loops over a model's files: what embeddings must be.
//
// Written from Devlin and others (2018) and from Hugging Face's names, not from the
// package. Ids go in; it splits no texts.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The encoder of a folder; a function from ids to their mean, which has the length 1 if
 * it `normalizes`.
 */
export function encoder(folder, normalizes = true) {
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  const tensors = read(join(folder, "model.safetensors"));
  const tensor = (name) => tensors.get(name) ?? tensors.get(`bert.${name}`);
  const { hidden_size: hidden, num_attention_heads: heads } = config;
  const linear = (rows, name) => {
    const [weight, bias] = [tensor(`${name}.weight`), tensor(`${name}.bias`)];
    return rows.map((row) =>
      Array.from(bias, (b, i) => {
        let sum = b;
        for (let k = 0; k < row.length; k += 1)
          sum += row[k] * weight[i * row.length + k];
        return sum;
      }),
    );
  };
  const norm = (rows, name) => {
    const [weight, bias] = [tensor(`${name}.weight`), tensor(`${name}.bias`)];
    return rows.map((row) => {
      const mean = total(row) / row.length;
      const variance = total(row.map((x) => (x - mean) ** 2)) / row.length;
      const scale = 1 / Math.sqrt(variance + config.layer_norm_eps);
      return row.map((x, i) => (x - mean) * scale * weight[i] + bias[i]);
    });
  };
  const add = (a, b) => a.map((row, i) => row.map((x, k) => x + b[i][k]));
  return (ids) => {
    const at = (table, row, i) =>
      tensor(`embeddings.${table}`)[row * hidden + i];
    let x = ids.map((id, place) =>
      Array.from(
        { length: hidden },
        (_, i) =>
          at("word_embeddings.weight", id, i) +
          at("position_embeddings.weight", place, i) +
          at("token_type_embeddings.weight", 0, i),
      ),
    );
    x = norm(x, "embeddings.LayerNorm");
    for (let layer = 0; layer < config.num_hidden_layers; layer += 1) {
      const name = `encoder.layer.${layer}`;
      const [q, k, v] = ["query", "key", "value"].map((part) =>
        linear(x, `${name}.attention.self.${part}`),
      );
      const seen = linear(
        attend(q, k, v, heads),
        `${name}.attention.output.dense`,
      );
      x = norm(add(seen, x), `${name}.attention.output.LayerNorm`);
      const inner = linear(x, `${name}.intermediate.dense`).map((row) =>
        row.map(gelu),
      );
      const outer = linear(inner, `${name}.output.dense`);
      x = norm(add(outer, x), `${name}.output.LayerNorm`);
    }
    const mean = x[0].map((_, i) => total(x.map((row) => row[i])) / x.length);
    if (!normalizes) return mean;
    const length = Math.hypot(...mean);
    return mean.map((value) => value / length);
  };
}

const total = (values) => values.reduce((sum, value) => sum + value, 0);

function attend(q, k, v, heads) {
  const size = q[0].length / heads;
  return q.map((query) =>
    Array.from(query, (_, i) => {
      const first = Math.floor(i / size) * size;
      const scores = k.map((key) => {
        let sum = 0;
        for (let d = first; d < first + size; d += 1) sum += query[d] * key[d];
        return sum / Math.sqrt(size);
      });
      const top = Math.max(...scores);
      const powers = scores.map((score) => Math.exp(score - top));
      return total(powers.map((power, j) => power * v[j][i])) / total(powers);
    }),
  );
}

/** x · Φ(x), by the series of the error function. */
function gelu(x) {
  const z = x / Math.SQRT2;
  if (Math.abs(z) > 5) return x > 0 ? x : 0;
  let [term, sum] = [z, z];
  for (let n = 1; n < 200; n += 1) {
    term *= (-z * z) / n;
    sum += term / (2 * n + 1);
  }
  return x * (0.5 + sum / Math.sqrt(Math.PI));
}

/** The tensors of 32-bit floats in a file. */
function read(file) {
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const tensors = new Map();
  for (const [name, { dtype, data_offsets }] of Object.entries(header)) {
    if (dtype !== "F32") continue;
    const [begin, end] = data_offsets.map((offset) => 8 + length + offset);
    const own = Uint8Array.from(bytes.subarray(begin, end));
    tensors.set(name, new Float32Array(own.buffer));
  }
  return tensors;
}
