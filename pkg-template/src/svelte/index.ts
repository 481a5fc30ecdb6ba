// The entry for Svelte: stores around the session that a page shares, by the contract of
// stores that Svelte 4 and 5 have in common. Importing it, or rendering with it on a server,
// opens nothing.

export { clip, gpu, type GpuStoreOptions, type Readable } from "./stores.js";
export {
  type MotionStore,
  spring,
  type SpringStoreOptions,
  tween,
  type TweenStoreOptions,
} from "./motions.js";
