/** Keeps the newest records in the process, for gateways without Redis. */
import type { Clock } from '#shared/clock.ts';
import {
  DECISION_KEPT_MS,
  DECISIONS_MAX,
  type DecisionRecord,
  type DecisionStore,
} from './decision-record.ts';

export class MemoryDecisions implements DecisionStore {
  /** Records, oldest first. */
  readonly #records = new Map<string, DecisionRecord>();
  readonly #wallClock: Clock;

  constructor(wallClock: Clock) {
    this.#wallClock = wallClock;
  }

  async write(records: readonly DecisionRecord[]): Promise<void> {
    for (const record of records) this.#records.set(record.id, record);
    for (const id of this.#records.keys()) {
      if (this.#records.size <= DECISIONS_MAX) break;
      this.#records.delete(id);
    }
  }

  async find(id: string): Promise<DecisionRecord | null> {
    const record = this.#records.get(id);
    if (record === undefined) return null;
    return this.#wallClock() - Date.parse(record.at) < DECISION_KEPT_MS ? record : null;
  }

  async list(before: string | null, count: number): Promise<readonly DecisionRecord[]> {
    const oldest = this.#wallClock() - DECISION_KEPT_MS;
    const found: DecisionRecord[] = [];
    let isBefore = before === null;
    for (const record of [...this.#records.values()].reverse()) {
      if (found.length >= count || Date.parse(record.at) <= oldest) break;
      if (isBefore) found.push(record);
      else isBefore = record.id === before;
    }
    return found;
  }

  /** Without a store there is only one gateway. */
  async exchangeDenied(): Promise<readonly never[]> {
    return [];
  }

  close(): void {
    this.#records.clear();
  }
}
