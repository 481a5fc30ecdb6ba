// An application of React around `framebatch/react`, bundled by the test.

import { createElement, StrictMode } from "react";
import { flushSync } from "react-dom";
import { createRoot, hydrateRoot } from "react-dom/client";
import {
  FramebatchProvider,
  useClip,
  useGpu,
  useSpring,
  useTween,
} from "framebatch/react";

export const hooks = { useClip, useGpu, useSpring, useTween };
export { createElement, flushSync, hydrateRoot };

/** Renders `element` strictly under a provider; what is needed to render again, and to end. */
export function mount(element, props = {}, options = {}) {
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place, options);
  const render = (element) =>
    flushSync(() =>
      root.render(
        createElement(
          StrictMode,
          null,
          createElement(FramebatchProvider, props, element),
        ),
      ),
    );
  render(element);
  return { render, unmount: () => flushSync(() => root.unmount()) };
}
