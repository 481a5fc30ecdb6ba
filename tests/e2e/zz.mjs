import { launch, openPage } from "../../tools/browser.mjs";
import { serve } from "../../tools/serve.mjs";
const server = await serve({ "/pkg/": "pkg", "/": "tests/e2e/pages" });
const browser = await launch();
const page = await openPage(browser);
await page.goto(`http://127.0.0.1:${server.port}/`);
await page.waitForFunction(() => "framebatch" in window);
console.log(await page.evaluate(async () => {
  const { Property } = await import("/chains/property.js");
  const { graph } = await import("/chains/random.js");
  const { random } = await import("/workload.js");
  const p = await Property.open("cpu");
  const out = [];
  const ask = p.ask;
  p.ask = async function (graphs, held) {
    window.plan = this.gpu.explain(() => {
      for (const own of graphs) this.gpu.readAll(graph(this.gpu, this.shared, { ...own }).map(({ tensor }) => tensor)).catch(() => {});
    });
    window.graphs = JSON.stringify(graphs);
    return ask.call(this, graphs, held);
  };
  try { await p.run(26, 1); } catch (e) { return [e.message, window.graphs, window.plan].join("\n"); }
}));
await browser.close(); await server.close();
