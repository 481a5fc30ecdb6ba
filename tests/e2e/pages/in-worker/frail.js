// The package's worker, whose device a test may destroy: a page cannot reach it.

let device;
const { prototype } = GPUAdapter;
const { requestDevice } = prototype;
prototype.requestDevice = async function (...args) {
  device = await requestDevice.apply(this, args);
  return device;
};

await import("/pkg/dist/worker-script.js");

addEventListener("message", ({ data }) => {
  if (data === "destroy") device.destroy();
  if (data === "throw") throw new Error("of the page's own script");
});
postMessage("ready");
