/** A gateway's connection to the model store: each call waits until the checker lets it arrive, be answered, or be lost. */
import type { ConnectionOptions, StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { ModelStore } from './model-store.ts';

interface Call {
  readonly script: StoreScript;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (why: StoreFault) => void;
  /** Units that it charges, as long as the gateway waits for the reply; 0 after it has given up. */
  charges: number;
  /** Whether the store has executed the call. */
  isDone: boolean;
  doneAt: Millis;
  reply: unknown;
}

export class ModelConnection implements StoreConnection {
  readonly #store: ModelStore;
  readonly #clock: Clock;
  readonly #options: ConnectionOptions;
  /** Calls that were sent and not answered, in order. */
  #calls: Call[] = [];
  #ready = false;
  #sent = 0;
  /** Time of the store's decision in the last answer. */
  decidedAt: Millis = 0;

  constructor(store: ModelStore, clock: Clock, options: ConnectionOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Number of calls so far. */
  get sent(): number {
    return this.#sent;
  }

  /** Calls without an answer. */
  get pending(): number {
    return this.#calls.length;
  }

  get oldest(): StoreScript | undefined {
    return this.#calls[0]?.script;
  }

  /** Calls that the store has not carried out. */
  get unexecuted(): number {
    return this.#calls.filter(({ isDone }) => !isDone).length;
  }

  whyDown(): StoreFault {
    return new StoreFault('disconnected', 'the model store is away');
  }

  slotOf(): null {
    return null;
  }

  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!this.#ready) return Promise.reject(this.whyDown());
    this.#sent++;
    return new Promise((resolve, reject) =>
      this.#calls.push({
        ...{ script, keys, args, resolve, reject },
        ...{ charges: this.#store.chargedBy(script, keys, args), isDone: false, doneAt: 0, reply: null },
      }),
    );
  }

  async connect(): Promise<void> {
    this.open();
  }

  open(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#options.onChange(true);
  }

  /** The store carries out the oldest call that it has not carried out. The reply stays on its way. */
  execute(): void {
    const call = this.#calls.find(({ isDone }) => !isDone);
    if (call === undefined) return;
    call.isDone = true;
    call.doneAt = this.#clock();
    call.reply = this.#store.execute(call.script, call.keys, call.args);
  }

  /** The reply to the oldest call arrives. @returns it, for telling states apart */
  hear(): string {
    const call = this.#calls.shift();
    if (call === undefined) throw new Error('nothing was asked');
    this.decidedAt = call.doneAt;
    call.resolve(call.reply);
    return JSON.stringify(call.reply).replace(/\d{9,}/g, 'time');
  }

  /** The reply to the oldest call is an error, although the store may have carried it out. */
  fail(): void {
    this.#calls.shift()?.reject(new StoreFault('error', 'the model store fails'));
  }

  /** The gateway waits for no reply any more. @returns the units of all calls on their way, each counted once */
  giveUp(): number {
    let charges = 0;
    for (const call of this.#calls) {
      charges += call.charges;
      call.charges = 0;
    }
    return charges;
  }

  /** The connection breaks. Calls that have not arrived are lost, and replies on their way too. */
  close(): void {
    if (!this.#ready) return;
    this.#ready = false;
    const calls = this.#calls;
    this.#calls = [];
    this.#options.onChange(false);
    for (const { reject } of calls) reject(this.whyDown());
  }

  /** Lists the calls and replies on their way, to tell states apart. */
  get contents(): string {
    return this.#calls
      .map(
        ({ script, args, charges, isDone, reply }) =>
          `${script.sha1.slice(0, 4)}${args}${charges}${isDone} ${JSON.stringify(reply)}`,
      )
      .join('|')
      .replace(/\d{9,}/g, 'time');
  }
}
