/** Keeps the newest records in the process, for gateways without Redis. */
import type { Clock } from '#shared/clock.ts';
import {
  DECISION_KEPT_MS,
  DECISIONS_MAX,
  type DecisionRecord,
  type DecisionStore,
} from './decision-record.ts';

export class MemoryDecisions implements DecisionStore {
  /** Newest first. */
  #records: readonly DecisionRecord[] = [];
  readonly #wallClock: Clock;

  constructor(wallClock: Clock) {
    this.#wallClock = wallClock;
  }

  async write(records: readonly DecisionRecord[]): Promise<void> {
    this.#records = [...records.toReversed(), ...this.#records].slice(0, DECISIONS_MAX);
  }

  async find(id: string): Promise<DecisionRecord | null> {
    return this.#recent.find((record) => record.id === id) ?? null;
  }

  async list(before: string | null, count: number): Promise<readonly DecisionRecord[]> {
    const at = this.#recent.findIndex(({ id }) => id === before);
    if (before !== null && at < 0) return [];
    return this.#recent.slice(at + 1, at + 1 + count);
  }

  /** Without a store there is only one gateway. */
  async exchangeDenied(): Promise<readonly never[]> {
    return [];
  }

  close(): void {
    this.#records = [];
  }

  get #recent(): readonly DecisionRecord[] {
    const oldest = this.#wallClock() - DECISION_KEPT_MS;
    return this.#records.filter(({ at }) => Date.parse(at) > oldest);
  }
}
