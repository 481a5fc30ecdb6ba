// What a server does that renders a component which uses the package: it imports it.

const before = new Set(Reflect.ownKeys(globalThis));
const framebatch = await import("framebatch");
const added = Reflect.ownKeys(globalThis).filter((key) => !before.has(key));

console.log(
  JSON.stringify({
    exports: Object.keys(framebatch).sort(),
    added: added.map(String),
    supported: await framebatch.isSupported(),
  }),
);
