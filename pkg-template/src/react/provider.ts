// The session that the components below a provider use. No session is opened before a
// component that asks for one renders in a browser.

import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useContext,
  useMemo,
  useState,
  useSyncExternalStore,
} from "react";
import { type OpenOptions, type Session, shared } from "../index.js";

/** What {@link FramebatchProvider} takes. */
export interface FramebatchProviderProps {
  /** A session of your own, which you dispose of. Default: the page's. */
  session?: Session;
  /** For the page's session, if nobody opened it before. Those of the first render count. */
  options?: OpenOptions;
  children?: ReactNode;
}

/** Gives the session; the same one until it has ended. */
type Source = () => Session;

const Context = createContext<Source>(() => shared());

/**
 * Says which session the components below use. Without it, they use `shared()`.
 *
 * @example
 * createRoot(element).render(
 *   <FramebatchProvider options={{ engine: "auto" }}><App /></FramebatchProvider>,
 * );
 */
export function FramebatchProvider({
  session,
  options,
  children,
}: FramebatchProviderProps): ReactElement {
  const [first] = useState(options);
  const value = useMemo(
    (): Source => (session ? () => session : () => shared(first)),
    [session, first],
  );
  return createElement(Context.Provider, { value }, children);
}

/**
 * The session of the page, or of the {@link FramebatchProvider} above. Undefined on a
 * server, and while a page takes over what a server rendered.
 *
 * @example
 * const gpu = useGpu();
 * useEffect(() => {
 *   void gpu?.lerp(from, to, t).then(show);
 * }, [gpu, t]);
 */
export function useGpu(): Session | undefined {
  return useSyncExternalStore(never, useContext(Context), nothing);
}

const never = (): (() => void) => nothing;
const nothing = (): undefined => undefined;
