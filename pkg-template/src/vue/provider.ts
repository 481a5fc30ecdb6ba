// The session that the components below a provider use. No session is opened before a
// component that asks for one is mounted, which servers never do.

import {
  getCurrentInstance,
  hasInjectionContext,
  inject,
  type InjectionKey,
  onMounted,
  provide,
  type ShallowRef,
  shallowRef,
} from "vue";
import { type OpenOptions, type Session, shared } from "../index.js";

/** What {@link provideFramebatch} takes. */
export interface FramebatchProvision {
  /** A session of your own, which you dispose of. Default: the page's. */
  session?: Session;
  /** For the page's session, if nobody opened it before. */
  options?: OpenOptions;
}

/** Gives the session. */
type Source = () => Session;

const KEY: InjectionKey<Source> = Symbol("framebatch");

/**
 * Says, in the setup of a component, which session the components below it use. Without it,
 * they use `shared()`.
 *
 * @example
 * provideFramebatch({ options: { engine: "auto" } });
 */
export function provideFramebatch({
  session,
  options,
}: FramebatchProvision = {}): void {
  provide(KEY, () => session ?? shared(options));
}

/**
 * The session of the page, or of the {@link provideFramebatch} above, once the component is
 * mounted: undefined on a server, and while a page takes over what a server rendered. In a
 * scope outside of components it is there at once.
 *
 * @example
 * const gpu = useGpu();
 * watch([gpu, t], async () => show(await gpu.value?.lerp(from, to, t.value)));
 */
export function useGpu(): Readonly<ShallowRef<Session | undefined>> {
  const source = hasInjectionContext() ? inject(KEY, shared, false) : shared;
  const gpu = shallowRef<Session>();
  const open = (): void => {
    gpu.value = source();
  };
  if (getCurrentInstance() === null) open();
  else onMounted(open);
  return gpu;
}
