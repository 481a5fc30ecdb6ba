// What a page and its worker tell each other: the shapes of their messages, written down once.
//
// A page sends requests, each a log of what its face asked of the core; the worker answers by
// reports. Nothing is sent or read here.

import type { Code } from "../checks/errors.js";
import type { CoreFacts, DeviceEvent } from "../core/core.js";
import type { Info, Stats } from "../metrics/stats.js";
import type { OpenOptions } from "../session/open-options.js";

/** Page and script have to be of one version of these messages. */
export const PROTOCOL = 1;

/** The first message of a session, which brings the port of all others. */
export interface Opening {
  readonly framebatch: typeof PROTOCOL;
  readonly options: OpenOptions;
  /** What the page keeps from one visit to the next, by key. */
  readonly kept: readonly (readonly [string, string])[];
  readonly port: MessagePort;
}

/** What was asked since the last request. */
export interface Request {
  /**
   * {@link ORDER}, for the next of `orders`; or a call: {@link callOf} its engine and priority,
   * then its structure, its rows, the bits of its scalar, its key and how many words it has in
   * the arena.
   */
  readonly log: Uint32Array;
  readonly orders: readonly Order[];
  /** The words of all calls, one call after the other from {@link ARENA} on. */
  readonly arena: ArrayBuffer | undefined;
  /** The words of the arena that are numbers of tensors, in order. */
  readonly names: Uint32Array;
  /** Whether the page has heard of another device: all tensors are filled that can be. */
  readonly isRestored: boolean;
}

/** The page is through with the session. */
export type Leaving = "leave";

/** Marks an order in a log. */
export const ORDER = 0;

/** Words of a call in a log. */
export const CALL_WORDS = 6;

/** Words of an arena in front of the first call: the header of `Core.header`. */
export const ARENA = 4;

/** Engine and priority of a call, as one word that is not {@link ORDER}. */
export const callOf = (engine: number, priority: number): number =>
  1 | (engine << 2) | (priority << 4);
export const engineOf = (call: number): number => (call >> 2) & 3;
export const priorityOf = (call: number): number => call >> 4;

/** A structure, as the method of the core that gives its number, and what that takes. */
export type Structure =
  | readonly ["structure", op: string, width: number, each: boolean]
  | readonly ["field_gradients", formula: string]
  | readonly ["chain", words: Uint32Array]
  | readonly ["sampling" | "searching" | "insertion", sizes: Uint32Array];

/**
 * How what is queued goes: when the core says that it is due; now, as far as the device keeps
 * up; or now.
 */
export type Sending = "due" | "now" | "at once";

/** What is asked of a core besides calls. Structures, tensors and fences have the page's numbers. */
export type Order =
  | readonly ["make", number: number, structure: Structure]
  | readonly ["forget", structures: Uint32Array]
  | readonly [
      "kernel",
      number: number,
      name: string,
      code: string,
      sizes: Uint32Array,
    ]
  | readonly ["hold", number: number, words?: number, apart?: Uint32Array]
  | readonly [
      "fill",
      number: number,
      data: Uint32Array,
      home: number,
      row: number | undefined,
    ]
  | readonly ["allocate" | "clear", number: number, words: number]
  | readonly ["patch", number: number, at: number, data: Uint32Array]
  | readonly ["heal" | "refuse_readers" | "release" | "fence", number: number]
  | readonly ["abort", ticket: number]
  | readonly ["send", sending: Sending]
  | readonly ["measure", on: boolean]
  | readonly ["plan"]
  | readonly ["explain", question: number]
  | readonly ["warmup", ticket: number]
  | readonly ["explains"]
  | readonly ["explained", question: number, text: string | undefined]
  | readonly ["begin_restoration" | "end_restoration" | "trim"];

/** What a compiler says of a line of a text. */
export type CompilerMessage = Pick<
  GPUCompilationMessage,
  "type" | "lineNum" | "linePos" | "message"
>;

/** An error on its way. */
export interface Failure {
  readonly code: Code;
  readonly message: string;
}

/** What the worker has to say, and how the session is at that moment. */
export interface Report {
  readonly news: readonly News[];
  readonly state: State | undefined;
  /** Arenas of requests, for the next ones. */
  readonly arenas: readonly ArrayBuffer[];
}

/** The numbers of a session. */
export interface State {
  /** Calls that were entered. */
  readonly seen: number;
  /** Calls that still fit into the queue, and batches in flight. */
  readonly room: number;
  readonly flights: number;
  /** The newest fence that has passed. */
  readonly passed: number;
  /** Tensors whose readers are refused, of those that were cleared. */
  readonly lost: readonly number[];
  readonly stats: Stats;
  readonly info: Info;
}

/** What happened, in order. */
export type News =
  | { readonly type: "hello"; readonly lock: string | undefined }
  | { readonly type: "opened"; readonly opened: Opened }
  | { readonly type: "settled"; readonly settled: Settled }
  | {
      readonly type: "event";
      readonly event: DeviceEvent | "relieved" | "regained";
      readonly message: string;
    }
  | {
      readonly type: "explained";
      readonly question: number;
      readonly text: string | Failure;
    }
  | {
      /** To be answered by the order `explained`. */
      readonly type: "compiled";
      readonly question: number;
      readonly source: string;
      readonly messages: readonly CompilerMessage[];
    }
  | { readonly type: "keep"; readonly key: string; readonly text: string }
  | { readonly type: "ended"; readonly failure: Failure };

/** What a page knows of its core for good. */
export interface Opened {
  /** `performance.timeOrigin` of the worker. */
  readonly timeOrigin: number;
  /** Bytes that live data may take, and items of a batch at most. */
  readonly liveBytes: number;
  readonly mostItems: number;
}

/** Answers of a chunk of a batch. */
export interface Settled {
  /** Of each call its ticket, the word where its result begins, its words, and a status. */
  readonly table: Uint32Array;
  readonly results: ArrayBuffer;
  /** A status is 0, or the place of an error from 1. */
  readonly errors: readonly Failure[];
  /** Whether no more chunks of the batch are in flight. */
  readonly last: boolean;
  readonly facts: CoreFacts | undefined;
}
