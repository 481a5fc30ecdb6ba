// The entry for Vue: composables around the session that a page shares. Importing it, or
// rendering with it on a server, opens nothing.

export {
  type FramebatchProvision,
  provideFramebatch,
  useGpu,
} from "./provider.js";
export {
  useSpring,
  type UseSpringOptions,
  useTween,
  type UseTweenOptions,
} from "./motions.js";
export { useClip } from "./clip.js";
