// Applications around the examples of docs/libraries.md, bundled by the test.

import { createRoot, extend } from "@react-three/fiber";
import { createElement } from "react";
import { mount, unmount } from "svelte";
import * as THREE from "three";
import { createApp, h, ref } from "vue";
import { Fleet } from "example:fleet.jsx";
import SvelteApp from "example:app.svelte.js";
import VuePanel from "example:panel.vue.js";

export const vue = {
  mount(place) {
    const isOpen = ref(false);
    const app = createApp(() => h(VuePanel, { isOpen: isOpen.value }));
    app.mount(place);
    return {
      setOpen: (open) => (isOpen.value = open),
      unmount: () => app.unmount(),
    };
  },
};

export const svelte = {
  mount(target) {
    const app = mount(SvelteApp, { target });
    return { setOpen: app.setOpen, unmount: () => unmount(app) };
  },
};

extend(THREE);

/** What draws nothing: the example is about what moves. */
const renderer = {
  ...{ xr: { addEventListener() {}, removeEventListener() {} } },
  ...{ shadowMap: {}, render() {}, setPixelRatio() {}, setSize() {} },
  ...{ forceContextLoss() {}, dispose() {} },
};

export const fiber = {
  async mount(count) {
    const track = new THREE.VectorKeyframeTrack(
      ".position",
      [0, 1],
      [0, 0, 0, 0, 4, 0],
    );
    const animation = new THREE.AnimationClip("rise", 1, [track]);
    const root = createRoot(document.createElement("canvas"));
    const size = { width: 8, height: 8, top: 0, left: 0 };
    await root.configure({ gl: renderer, frameloop: "never", size });
    const store = root.render(createElement(Fleet, { animation, count }));
    const { scene } = await new Promise((done) => {
      const look = () => {
        const state = store.getState();
        if (state.scene.children.length === count) done(state);
        else setTimeout(look, 5);
      };
      look();
    });
    let time = 0;
    return {
      /** Draws a frame so many seconds later. */
      advance(seconds) {
        time += seconds;
        store.getState().advance(time);
      },
      heights: () => scene.children.map(({ position }) => position.y),
      unmount: () => root.unmount(),
    };
  },
};
