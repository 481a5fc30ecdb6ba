// Weights at random, and what both systems load of them.
//
// Equal models have equal weights in every run. Nothing here knows what computes with them.

/** The floats of a tensor, the same for the same name: uniform, with this standard deviation. */
function draw(name, floats, { mean, deviation }) {
  let state = 0x811c9dc5;
  for (const letter of name) {
    state = Math.imul(state ^ letter.charCodeAt(0), 0x01000193);
  }
  state |= 1;
  const scale = (deviation * Math.sqrt(12)) / 2 ** 32;
  for (let i = 0; i < floats.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    floats[i] = mean + state * scale;
  }
}

const termsOf = ({ name, plus }) =>
  /norm\.weight$/i.test(name)
    ? { mean: 1 - plus, deviation: 0.1 }
    : /relative_attention_bias/.test(name)
      ? { mean: 0, deviation: 1 }
      : { mean: 0, deviation: 0.04 };

/** A `model.safetensors` of tensors drawn, and a view of each in it. */
export function drawn(tensors) {
  const header = {};
  let length = 0;
  for (const { name, shape } of tensors) {
    const bytes = 4 * shape.reduce((a, b) => a * b);
    header[name] = {
      dtype: "F32",
      shape,
      data_offsets: [length, length + bytes],
    };
    length += bytes;
  }
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const file = new Uint8Array(8 + text.length + length);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  new TextEncoder().encodeInto(text, file.subarray(8));
  const views = new Map();
  for (const tensor of tensors) {
    const { name } = tensor;
    const [from, to] = header[name].data_offsets;
    const at = 8 + text.length + from;
    const floats = new Float32Array(file.buffer, at, (to - from) / 4);
    draw(name, floats, termsOf(tensor));
    views.set(name, floats);
  }
  return { file, views };
}

/** The tensors as files of ONNX's external data. */
export function externalData(tensors, views, dtype) {
  return tensors.map(({ name, shape, transposed, plus }) => {
    const floats = views.get(name);
    let kept = transposed ? transpose(floats, shape) : floats;
    if (plus !== 0) kept = kept.map((weight) => weight + plus);
    if (dtype === "f16") kept = new Float16Array(kept);
    return {
      path: name,
      data: new Uint8Array(kept.buffer, kept.byteOffset, kept.byteLength),
    };
  });
}

function transpose(floats, [rows, columns]) {
  const turned = new Float32Array(floats.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      turned[j * rows + i] = floats[i * columns + j];
    }
  }
  return turned;
}
