/**
 * Bans clients that a policy with `ban` denies again and again.
 *
 * The store counts denials, so all gateways count together. A process collects denials for a tenth of a second, and
 * sends one number for each client and policy, so that a flood of denials costs the store little. Denials that the store
 * does not take are lost: then a ban comes later, and no denial counts twice.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import type { Control } from './control.ts';

const BATCH_MS: Millis = 100;
/** Maximum number of pairs of client and policy in one batch. Denials of further pairs are not counted. */
const BATCH_MAX = 4096;
const CALLS_AT_ONCE = 8;

interface Denials {
  readonly ban: PolicyBan;
  readonly identity: Identity;
  readonly mode: 'enforce' | 'shadow';
  count: number;
}

interface OffendersOptions {
  readonly control: Pick<Control, 'countDenials'>;
  /** @param row name of the row in the policy file */
  readonly onBan: (row: string, mode: Denials['mode']) => void;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
}

export class Offenders {
  readonly #options: OffendersOptions;
  readonly #warn: (reason: string) => void;
  #denials = new Map<string, Denials>();
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: OffendersOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#warn = onceAMinute(clock, (reason: string) => log.warn({ reason }, 'clients could not be banned'));
  }

  /** Called when a policy with `ban` has denied a request, or would have in shadow mode. */
  note(ban: PolicyBan, identity: Identity, mode: Denials['mode']): void {
    const key = `${identity.digest} ${ban.bucket}`;
    const known = this.#denials.get(key);
    if (known !== undefined) known.count++;
    else if (this.#denials.size < BATCH_MAX) this.#denials.set(key, { ban, identity, mode, count: 1 });
    this.#flushLater();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const batch = [...this.#denials.values()];
    this.#denials = new Map();
    while (batch.length > 0)
      await Promise.all(batch.splice(-CALLS_AT_ONCE).map((denials) => this.#count(denials)));
    this.#timer = null;
    if (this.#denials.size > 0) this.#flushLater();
  }

  async #count({ ban, identity, mode, count }: Denials): Promise<void> {
    const { control, onBan, log } = this.#options;
    const reason = `policy ${ban.bucket} denied it ${ban.after} times within ${ban.withinMs / 1000} s`;
    try {
      const ms = await control.countDenials(identity, ban, count, mode === 'enforce' ? reason : '');
      if (ms === 0) return;
      onBan(ban.bucket, mode);
      const fields = { policy: ban.bucket, identity: identity.digest, seconds: Math.round(ms / 1000) };
      log.warn(fields, mode === 'enforce' ? 'a client is banned' : 'a client would be banned');
    } catch (error) {
      this.#warn((error as Error).message);
    }
  }

  #flushLater(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.#flush(), BATCH_MS).unref();
  }
}
