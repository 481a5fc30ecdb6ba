// The hooks on a server: components render, and nothing is opened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement, StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { fake, module } from "./face.mjs";

const before = Object.keys(globalThis);
const { FramebatchProvider, useClip, useGpu, useSpring, useTween } =
  await module("react/index");

test("a server renders where values begin, and opens no session", () => {
  assert.deepEqual(Object.keys(globalThis), before);
  const seen = [];
  const App = () => {
    seen.push(useGpu());
    seen.push(useClip({ tracks: [{ times: [0], values: [1] }] }));
    const opacity = useTween(1, { from: 0.25 });
    const [x, y] = useSpring([3, 4]);
    return createElement("p", { style: { opacity } }, `${x} ${y}`);
  };
  const app = createElement(App);
  for (const element of [
    app,
    createElement(FramebatchProvider, { options: { engine: "gpu" } }, app),
    createElement(StrictMode, null, app),
  ]) {
    assert.equal(renderToString(element), '<p style="opacity:0.25">3 4</p>');
  }
  assert.deepEqual(seen, Array(6).fill(undefined));
  assert.equal(fake.core, undefined);
});
