// What vite.config.mjs makes of benches/record: the records that measured one of the five rows.

declare module "kept-records" {
  /** A record, with the medians of its rows by workload and system. */
  export interface KeptRecord {
    readonly name: string;
    readonly adapter: string;
    readonly browser: string;
    readonly medians: Readonly<
      Record<string, Readonly<Record<string, number>>>
    >;
  }
  export const RECORDS: readonly KeptRecord[];
}
