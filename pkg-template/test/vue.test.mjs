// The composables of Vue: on a server, in components of a renderer without a page, and in
// scopes of their own.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createRenderer,
  createSSRApp,
  effectScope,
  h,
  nextTick,
  ref,
  shallowRef,
} from "vue";
import { renderToString } from "vue/server-renderer";
import { frame, frames, near } from "./animation-frames.mjs";
import { face, fake, manual, module } from "./face.mjs";

const before = Object.keys(globalThis);
const { provideFramebatch, useClip, useGpu, useSpring, useTween } =
  await module("vue/index");
const imported = Object.keys(globalThis);
const { stepperOf } = await module("animation/motion");
const { callsOf } = await module("session/session");

const RISE = { tracks: [{ times: [0, 1], values: [0, 10] }] };

/** Mounts what `setup` makes below a provider of `session`, in a tree of plain objects. */
function mounted(session, setup) {
  const node = (type) => ({ type, children: [], parent: null });
  const renderer = createRenderer({
    createElement: node,
    createText: node,
    createComment: node,
    insert(child, parent) {
      child.parent = parent;
      parent.children.push(child);
    },
    remove: ({ parent }) => (parent.children = []),
    parentNode: ({ parent }) => parent,
    nextSibling: () => null,
    patchProp() {},
    setText() {},
    setElementText() {},
  });
  const Inner = {
    setup() {
      setup();
      return () => h("b");
    },
  };
  const app = renderer.createApp({
    setup() {
      provideFramebatch({ session });
      return () => h(Inner);
    },
  });
  app.mount(node("root"));
  return app;
}

test("a server renders where values begin, and opens no session", async () => {
  assert.deepEqual(imported, before);
  const seen = [];
  const App = {
    setup() {
      provideFramebatch({ options: { engine: "gpu" } });
      seen.push(useGpu().value, useClip(RISE).value);
      const opacity = useTween(1, { from: 0.25 });
      const place = useSpring(() => [3, 4]);
      const style = () => ({ opacity: opacity.value });
      return () => h("p", { style: style() }, [...place.value].join(" "));
    },
  };
  const html = await renderToString(createSSRApp(App));
  assert.equal(html, '<p style="opacity:0.25;">3 4</p>');
  assert.deepEqual(seen, [undefined, undefined]);
  assert.equal(fake.core, undefined);
});

test("refs follow their targets while a component is mounted, and leave nothing", async () => {
  const { gpu } = await manual();
  const to = ref(1);
  const heard = [];
  let tween, spring, several, quiet, session;
  const app = mounted(gpu, () => {
    session = useGpu();
    assert.equal(session.value, undefined);
    tween = useTween(to, { duration: 0.1, easing: "linear" });
    spring = useSpring(() => to.value * 10, { stiffness: 500 });
    several = useTween(() => [to.value, 2], { duration: 0.1, from: [3, 3] });
    const onUpdate = (x) => heard.push(x);
    quiet = useTween(to, { duration: 0.1, easing: "linear", onUpdate });
  });
  assert.equal(session.value, gpu);
  await nextTick();
  assert.deepEqual([tween.value, spring.value], [1, 10]);
  for (const ms of [0, 100]) frame(ms);
  assert.deepEqual([...several.value], [1, 2]);
  to.value = 5;
  await nextTick();
  for (const ms of [0, 50]) frame(ms);
  near(tween.value, 3);
  assert.ok(spring.value > 10 && spring.value < 50);
  assert.equal(quiet.value, 1);
  near(heard.at(-1), 3);
  const array = several.value;
  frame(50);
  assert.notEqual(several.value, array);
  await nextTick();
  assert.deepEqual([tween.value, quiet.value, several.value[0]], [5, 5, 5]);
  for (let i = 0; i < 200 && frames.size > 0; i += 1) frame(50);
  assert.equal(spring.value, 50);
  to.value = 9;
  await nextTick();
  frame(0);
  frame(50);
  app.unmount();
  assert.equal(stepperOf(callsOf(gpu)).size, 0);
  assert.equal(frames.size, 0);
  assert.ok(tween.value < 9);
});

test("a scope of its own uses the page's session at once", async () => {
  const scope = effectScope();
  const to = shallowRef([0, 0]);
  const [gpu, place] = scope.run(() => [
    useGpu(),
    useTween(to, { duration: 0.1 }),
  ]);
  assert.equal(gpu.value, face.shared());
  await face.shared().ready;
  to.value = [1, 2];
  await nextTick();
  frame(0);
  frame(50);
  assert.ok(place.value[1] > 0 && place.value[1] < 2);
  scope.stop();
  assert.equal(stepperOf(callsOf(gpu.value)).size, 0);
  await face.shared().dispose();
});

test("components share a clip by its options; the last one that unmounts disposes of it", async () => {
  const { gpu } = await manual();
  const fall = { tracks: [{ times: [0, 1], values: [10, 0] }] };
  const options = shallowRef(RISE);
  const clips = [];
  const apps = [options, () => RISE, fall].map((given) =>
    mounted(gpu, () => {
      const clip = useClip(given);
      assert.equal(clip.value, undefined);
      clips.push(clip);
    }),
  );
  await nextTick();
  const [rise, same, other] = clips.map(({ value }) => value);
  assert.ok(rise !== undefined && rise === same && rise !== other);
  options.value = fall;
  await nextTick();
  assert.equal(clips[0].value, other);
  const pending = rise.sample(0);
  pending.catch(() => {});
  for (const app of apps) app.unmount();
  for (const clip of [rise, other]) {
    await assert.rejects(clip.sample(0), { code: "disposed" });
  }
  assert.equal(clips[0].value, undefined);
});

test("wrong options throw where Vue tells of errors", async () => {
  const { gpu } = await manual();
  const warn = console.warn;
  console.warn = () => {};
  try {
    const wrong = () =>
      mounted(gpu, () => useTween(1, { from: 0, duraton: 1 }));
    await assert.rejects(async () => {
      wrong();
      await nextTick();
    }, /there is no option 'duraton'/);
  } finally {
    console.warn = warn;
  }
});
