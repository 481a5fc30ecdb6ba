// A plugin of TypeDoc: modules are called as programs import them, not by their source's file.

import { Converter } from "typedoc";
import { entryName } from "./pages.mjs";

export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const entry of project.children ?? []) {
      entry.name = entryName(entry.name);
    }
  });
}
