// React's hooks in a real page, under StrictMode, which mounts everything twice.

import assert from "node:assert/strict";
import { resolve } from "node:path";
import { before } from "node:test";
import { rolldown } from "rolldown";
import { BROWSER } from "../../tools/browser.mjs";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

// React is published for bundlers only. The package stays what the page has.
before(async () => {
  const elsewhere = { "./index.js": "index", "./animation.js": "animation" };
  const bundle = await rolldown({
    input: "tests/e2e/pages/react.js",
    platform: "browser",
    plugins: [
      {
        name: "package",
        resolveId(id) {
          if (id === "framebatch/react") return resolve("pkg/dist/react.js");
          const name = elsewhere[id];
          return name && { id: `/pkg/dist/${name}.js`, external: "absolute" };
        },
      },
    ],
    checks: { moduleLevelDirective: false },
    transform: { define: { "process.env.NODE_ENV": '"development"' } },
  });
  await bundle.write({ dir: `target/e2e/${BROWSER}` });
  await bundle.close();
});

/** Opens a page that counts its devices and the frames that are still asked for. */
const page = (use) =>
  site.page(use, {
    prepare: () => {
      window.devices = 0;
      const { requestDevice } = GPUAdapter.prototype;
      GPUAdapter.prototype.requestDevice = function (...terms) {
        window.devices += 1;
        return requestDevice.apply(this, terms);
      };
      const asked = new Set();
      const { requestAnimationFrame, cancelAnimationFrame } = window;
      window.requestAnimationFrame = (callback) => {
        const id = requestAnimationFrame.call(window, (now) => {
          asked.delete(id);
          callback(now);
        });
        asked.add(id);
        return id;
      };
      window.cancelAnimationFrame = (id) => {
        asked.delete(id);
        cancelAnimationFrame.call(window, id);
      };
      window.framesAsked = () => asked.size;
    },
  });

const COMPONENTS = times(2000, 10_000);

for (const engine of ["cpu", "gpu"]) {
  test(`${COMPONENTS} components with tweens, mounted and unmounted, values by the ${engine}: nothing is left`, () =>
    page(async (page) => {
      const found = await page.evaluate(
        async (engine, components) => {
          const { createElement, hooks, mount } =
            await import("/built/react.js");
          const { useGpu, useSpring, useTween } = hooks;
          const sessions = new Set();
          const heard = new Set();
          const Item = ({ to, i }) => {
            const gpu = useGpu();
            if (gpu !== undefined) sessions.add(gpu);
            const onUpdate = () => heard.add(i);
            const use = i % 10 === 0 ? useSpring : useTween;
            use(to, { from: 0, engine, onUpdate });
            return null;
          };
          const all = (to) =>
            Array.from({ length: components }, (_, i) =>
              createElement(Item, { key: i, to, i }),
            );
          const options = { engine: "gpu" };
          const frames = async (count) => {
            for (let n = 0; n < count; n++)
              await new Promise(requestAnimationFrame);
          };
          const app = mount(all(1), { options });
          await framebatch.shared(options).ready;
          while (heard.size < components) await frames(1);
          app.render(all(2)); // While they move.
          heard.clear();
          while (heard.size < components) await frames(1);
          const moving = framesAsked();
          app.unmount();
          // Frames that motions ask for; a call that is queued asks for a frame of its own.
          const asked = engine === "cpu" ? framesAsked() : 0;
          // What was on its way lands.
          await new Promise((done) => setTimeout(done, 1000));
          heard.clear();
          await frames(3);
          const gpu = framebatch.shared(options);
          const { pending, rejected, tensors, submits } = gpu.stats();
          return {
            sessions: sessions.size,
            isShared: sessions.has(gpu),
            devices,
            isMoving: moving > 0,
            asked,
            heard: heard.size,
            pending,
            rejected,
            bytes: tensors.bytes,
            isOnGpu: submits > 0,
            frames: framesAsked(),
          };
        },
        engine,
        COMPONENTS,
      );
      assert.deepEqual(found, {
        sessions: 1,
        isShared: true,
        devices: 1,
        isMoving: true,
        asked: 0,
        heard: 0,
        pending: 0,
        rejected: 0,
        bytes: 0,
        isOnGpu: engine === "gpu",
        frames: 0,
      });
    }));
}

test("a tween and a spring follow their target, render once a frame, and arrive", () =>
  page(async (page) => {
    const found = await page.evaluate(async () => {
      const { createElement, hooks, mount } = await import("/built/react.js");
      const seen = { tween: [], spring: [], several: [], quiet: [] };
      const heard = [];
      const App = ({ to }) => {
        seen.tween.push(hooks.useTween(to, { duration: 1, easing: "linear" }));
        seen.spring.push(hooks.useSpring(to, { stiffness: 50, damping: 12 }));
        const many = hooks.useTween([to, -to], { duration: 0.1, from: [3, 3] });
        seen.several.push(many.join());
        const onUpdate = (x) => heard.push(x);
        seen.quiet.push(hooks.useTween(to, { duration: 1, onUpdate }));
        return null;
      };
      const app = mount(createElement(App, { to: 1 }));
      const until = async (test) => {
        while (!test()) await new Promise(requestAnimationFrame);
      };
      await until(() => seen.several.at(-1) === "1,-1");
      app.render(createElement(App, { to: 5 }));
      const at = () => Object.values(seen).map((values) => values.at(-1));
      await until(() => at().join() === "5,5,5,-5,5");
      // At rest: another array of the same numbers is the same target.
      const count = seen.tween.length;
      await new Promise((done) => setTimeout(done, 100));
      const idle = seen.tween.length - count;
      app.unmount();
      return { ...seen, heard, idle, asked: framesAsked() };
    });
    assert.equal(found.idle, 0);
    assert.equal(found.asked, 0);
    for (const name of ["tween", "spring"]) {
      assert.equal(found[name][0], 1, "without `from` it begins at its target");
      const between = found[name].filter((x) => x > 1 && x < 5);
      assert.ok(between.length > 0, `${name}: ${found[name]}`);
    }
    assert.equal(found.several[0], "3,3");
    assert.deepEqual(
      [...new Set(found.quiet)],
      [1, 5],
      "it renders at its end",
    );
    assert.ok(found.heard.some((x) => x > 1 && x < 5));
    assert.equal(found.heard.at(-1), 5);
  }));

test("a panel fades in although the WebAssembly does not load, and the console says why", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const warnings = [];
      console.warn = (text) => warnings.push(text);
      let asked = 0;
      const { fetch } = window;
      window.fetch = (address, ...terms) => {
        if (!`${address}`.endsWith(".wasm")) return fetch(address, ...terms);
        asked += 1;
        return Promise.resolve(new Response("", { status: 404 }));
      };
      const { createElement, hooks, mount } = await import("/built/react.js");
      const Panel = ({ isOpen }) => {
        const opacity = hooks.useTween(isOpen ? 1 : 0, { duration: 0.2 });
        const x = hooks.useSpring(isOpen ? 240 : 0, { stiffness: 300 });
        return createElement("p", { style: { opacity }, id: "panel" }, x);
      };
      const panels = (isOpen) => {
        const panel = createElement(Panel, { isOpen });
        return createElement("div", null, panel, panel);
      };
      const app = mount(panels(false));
      app.render(panels(true));
      const { style } = document.getElementById("panel");
      const between = new Set();
      while (style.opacity !== "1") {
        between.add(style.opacity);
        await new Promise(requestAnimationFrame);
      }
      while (document.getElementById("panel").innerText !== "240") {
        await new Promise(requestAnimationFrame);
      }
      app.unmount();
      return { isSmooth: between.size > 2, asked, warnings };
    });
    assert.equal(found.isSmooth, true);
    assert.equal(found.warnings.length, 1, found.warnings.join());
    assert.match(
      found.warnings[0],
      /^framebatch: tweens and springs are .*the server answers with HTTP 404/,
    );
    // The file at its address, and once beside the script.
    assert.ok(found.asked <= 2, `${found.asked} requests`);
  }));

test("components share a clip by its options; the last one that unmounts disposes of it", () =>
  page(async (page) => {
    const found = await page.evaluate(async () => {
      const { createElement, hooks, mount } = await import("/built/react.js");
      const rise = { tracks: [{ times: [0, 1], values: [0, 10] }] };
      const fall = { tracks: [{ times: [0, 1], values: [10, 0] }] };
      const seen = []; // By the component.
      const firsts = [];
      const Bar = ({ options, at }) => {
        const clip = hooks.useClip(options);
        if (!(at in seen)) firsts.push(clip);
        seen[at] = clip;
        return null;
      };
      const options = { engine: "gpu" };
      const bars = (...all) =>
        all.map((options, at) => createElement(Bar, { key: at, options, at }));
      const app = mount(bars(rise, rise, fall), { options });
      const made = async () => {
        while (seen.includes(undefined)) {
          await new Promise(requestAnimationFrame);
        }
      };
      await made();
      const [first, second, third] = seen;
      const one = first === second && first !== third;
      const values = await Promise.all([
        ...[first, third].map((clip) => clip.sample(0.25)),
      ]);
      app.render(bars(fall, rise, fall));
      const kept = await second.sample(0.5);
      await made();
      const moved = seen[0] === third && seen[1] === first;
      app.unmount();
      const gone = await Promise.allSettled([
        ...[first, third].map((clip) => clip.sample(0)),
      ]);
      return {
        one,
        moved,
        values: values.map(([x]) => x),
        kept: kept[0],
        gone: gone.map(({ reason }) => reason?.code),
        begin: firsts.every((clip) => clip === undefined),
      };
    });
    assert.deepEqual(found, {
      one: true,
      moved: true,
      values: [2.5, 7.5],
      kept: 5,
      gone: ["disposed", "disposed"],
      begin: true,
    });
  }));

test("a page takes over what a server rendered, without a word", () =>
  page(async (page) => {
    const found = await page.evaluate(async () => {
      const { createElement, flushSync, hooks, hydrateRoot } =
        await import("/built/react.js");
      const seen = [];
      const App = () => {
        seen.push(hooks.useGpu());
        return createElement("b", null, hooks.useTween(1, { from: 0.5 }));
      };
      const element = document.body.appendChild(document.createElement("p"));
      element.innerHTML = "<b>0.5</b>";
      const complaints = [];
      let root;
      flushSync(() => {
        const onRecoverableError = (error) => complaints.push(String(error));
        root = hydrateRoot(element, createElement(App), { onRecoverableError });
      });
      while (element.textContent !== "1") {
        await new Promise(requestAnimationFrame);
      }
      const isShared = seen.at(-1) === framebatch.shared();
      flushSync(() => root.unmount());
      return { complaints, first: seen[0] === undefined, isShared };
    });
    assert.deepEqual(found, { complaints: [], first: true, isShared: true });
  }));

test("a session of one's own, and a wrong option", () =>
  page(async (page) => {
    const found = await page.evaluate(async () => {
      const { createElement, hooks, mount } = await import("/built/react.js");
      const session = await framebatch.open({ engine: "cpu" });
      let seen;
      const App = () => {
        seen = hooks.useGpu();
        return null;
      };
      mount(createElement(App), { session }).unmount();
      const isOwn = seen === session;
      const Wrong = () => hooks.useTween(1, { from: 0, duraton: 1 });
      const message = await new Promise((resolve) => {
        const onUncaughtError = (error) => resolve(error.message);
        mount(createElement(Wrong), { session }, { onUncaughtError });
      });
      await session.dispose();
      return { isOwn, message };
    });
    assert.equal(found.isOwn, true);
    assert.match(found.message, /there is no option 'duraton'/);
  }));
