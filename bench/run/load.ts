/** Describes load on one server, and its result. `wrk.ts` and `paced.ts` send it. */
export interface Load {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** Each request gets one of these, as JSON. Empty: requests have no body. */
  readonly bodies: readonly string[];
  /** Each request gets one of so many API keys, drawn at random. 0: requests have no key. */
  readonly keys: number;
  readonly connections: number;
  /** Requests a second at an even pace. null: as many as the connections can send. */
  readonly rate: number | null;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Replies with another status than 2xx and 3xx. */
  readonly refused: number;
  /** Broken connections and requests without a reply. */
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}
