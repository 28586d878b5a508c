/** The requests to send to one server. `wrk.ts` and `paced.ts` send them. */
export interface Load {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** JSON bodies. Each request gets one of them at random. Empty: requests have no body. */
  readonly bodies: readonly string[];
  /** Number of API keys. Each request gets one of them at random. 0: requests have no key. */
  readonly keys: number;
  readonly connections: number;
  /** Requests a second at an even rate. null: as many as the connections can send. */
  readonly rate: number | null;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Number of replies with a status other than 2xx and 3xx. */
  readonly refused: number;
  /** Number of broken connections and of requests without a reply. */
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}
