// VitePress's theme with the system's fonts, the colors of the demos, and what pages beside
// the documents need: the doors of the first page, and work without a network.

import Theme from "vitepress/theme-without-fonts";
import { withBase } from "vitepress";
import { h } from "vue";
import Doors from "./Doors.vue";
import Entries from "./Entries.vue";
import Missing from "./Missing.vue";
import "./style.css";

export default {
  extends: Theme,
  Layout: () =>
    h(Theme.Layout, null, {
      "doc-before": () => h(Doors),
      "doc-footer-before": () => h(Entries),
      "not-found": () => h(Missing),
    }),
  enhanceApp() {
    if (import.meta.env.SSR || import.meta.env.DEV) return;
    // Absent in pages that are not secure; the site works without it.
    navigator.serviceWorker
      ?.register(withBase("/offline.js"))
      .catch((error) => console.warn(`no pages offline: ${error.message}`));
  },
};
