// three.js's WebGPURenderer on the session's device: 20,000 instances whose poses are
// sampled into a tensor and copied, on the GPU, to the attribute that is drawn.
//
//   ?clip=gltf   the clip of wave.gltf instead of one made here
//   ?still       nothing moves: whoever asks gets pixels, for browsers that compute in
//                software and cannot show a canvas of WebGPU

import { open } from "framebatch";
import { RenderTarget, WebGPURenderer } from "three/webgpu";
import { gltfClip, threeClip } from "./clips.js";
import { Crowd } from "./crowd.js";
import { byFramebatch, byMixer } from "./ways.js";

const COUNT = 20_000;

const query = new URLSearchParams(location.search);
const element = (selector) => document.querySelector(selector);
const isStill = query.has("still");
const canvas = isStill ? new OffscreenCanvas(1, 1) : element("#scene");

/** What the page, and its test, draws with. */
async function start() {
  const clip = await (query.get("clip") === "gltf" ? gltfClip() : threeClip());
  const gpu = await open({ engine: "gpu" });
  const renderer = new WebGPURenderer({ canvas, device: gpu.device });
  await renderer.init();
  const crowd = new Crowd(COUNT);
  const ways = {
    framebatch: await byFramebatch({ gpu, clip, crowd, renderer }),
    loop: byMixer({ clip, crowd }),
  };
  return {
    gpu,
    /** The pixels of everybody at a time, rgba, from the bottom up or the top down. */
    async pixels(name, seconds, [width, height]) {
      const target = new RenderTarget(width, height);
      crowd.fit(renderer, { clientWidth: width, clientHeight: height });
      ways[name].pose(seconds);
      renderer.setRenderTarget(target);
      renderer.render(ways[name].scene, crowd.camera);
      const area = [0, 0, width, height];
      const rgba = await renderer.readRenderTargetPixelsAsync(target, ...area);
      target.dispose();
      return rgba;
    },
    /** Draws everybody at a time in seconds; milliseconds of it that went to poses. */
    draw(name, seconds) {
      crowd.fit(renderer, canvas);
      const begin = performance.now();
      ways[name].pose(seconds);
      const spent = performance.now() - begin;
      renderer.render(ways[name].scene, crowd.camera);
      return spent;
    },
  };
}

try {
  const stage = await start();
  const frame = (now) => {
    requestAnimationFrame(frame);
    const way = element("#ways :checked").value;
    const spent = stage.draw(way, now / 1000);
    element("#pose").textContent = `${spent.toFixed(2)} ms`;
  };
  if (!isStill) requestAnimationFrame(frame);
  Object.assign(window, { stage });
} catch (error) {
  element("#notice").hidden = false;
  element("#notice").textContent = `This page needs WebGPU: ${error.message}`;
}
