// VitePress's theme with the system's fonts, the colors of the demos, and what pages beside
// the documents need: the doors of the first page, and work without a network.

import Theme from "vitepress/theme-without-fonts";
import { useData, withBase } from "vitepress";
import { h, nextTick, provide } from "vue";
import Doors from "./Doors.vue";
import Entries from "./Entries.vue";
import Missing from "./Missing.vue";
import "./style.css";

export default {
  extends: Theme,
  Layout: {
    setup() {
      const { isDark } = useData();
      provide("toggle-appearance", () => switchColors(isDark));
      return () =>
        h(Theme.Layout, null, {
          "doc-before": () => h(Doors),
          "doc-footer-before": () => h(Entries),
          "not-found": () => h(Missing),
        });
    },
  },
  enhanceApp() {
    if (import.meta.env.SSR || import.meta.env.DEV) return;
    // The pages that it fetches come after the one that somebody waits for.
    if (document.readyState === "complete") keepOffline();
    else addEventListener("load", keepOffline);
  },
};

/** Absent in pages that are not secure; the site works without it. */
function keepOffline() {
  navigator.serviceWorker
    ?.register(withBase("/offline.js"))
    .catch((error) => console.warn(`no pages offline: ${error.message}`));
}

/** Light to dark or back, everything at once: the parts of the theme fade in different times. */
async function switchColors(isDark) {
  const { classList } = document.documentElement;
  classList.add("switching");
  isDark.value = !isDark.value;
  await nextTick();
  // What is asked of a style is computed, and so changed without a transition.
  void getComputedStyle(document.body).color;
  classList.remove("switching");
}
