/** Everything that routes may use. It is built once, from the settings; tests replace parts of it. */
import type { FastifyPluginAsync, FastifyTypeProvider, RawServerDefault } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { AuditLog } from '#api/audit/audit.ts';
import type { Passwords } from '#api/auth/password.ts';
import type { Recaptcha } from '#api/auth/recaptcha.ts';
import type { Signer } from '#api/auth/signer.ts';
import type { StateCache } from '#api/cache/state-cache.ts';
import type { Config } from '#api/config.ts';
import type { DatabaseHealth } from '#api/db/health.ts';
import type { Database } from '#api/db/schema.ts';
import type { Signal } from '#api/events/outbox.ts';
import type { Sender } from '#api/events/sender.ts';
import type { Targets } from '#api/events/targets.ts';
import type { Counters } from '#api/limits/counters.ts';
import type { Limiter } from '#api/limits/limiter.ts';
import type { Mailer } from '#api/mail/mailer.ts';
import type { Storage } from '#api/storage/storage.ts';
import type { Random } from '#api/values/ids.ts';
import type { ReplyOf } from '#api/values/schemas.ts';
import type { Background } from '#api/work/background.ts';
import type { Clock } from '#shared/clock.ts';

export interface Context {
  readonly config: Config;
  readonly db: Database;
  readonly health: DatabaseHealth;
  readonly clock: Clock;
  readonly random: Random;
  readonly signer: Signer;
  /** The cached states of workspaces. Code that changes the content of a state purges it. */
  readonly states: StateCache;
  readonly storage: Storage;
  readonly passwords: Passwords;
  /**
   * The limits of the application. The surface and the options of a route decide which one applies. Other code calls
   * this.
   */
  readonly limits: Limiter;
  /** The counters behind the limits. They can also be used for other purposes, and are shared in the same way. */
  readonly counters: Counters;
  /** Accepts mails in the transaction of a change, and sends them after it. */
  readonly mailer: Mailer;
  readonly audit: AuditLog;
  /** Verifies tokens that tell people from programs. */
  readonly recaptcha: Recaptcha;
  /** Decides which addresses webhooks may have. */
  readonly targets: Targets;
  /** Sends messages to webhooks. */
  readonly sender: Sender;
  /** Runs work whose duration must not be visible in a reply. */
  readonly background: Background;
  /** Notify it after a commit that wrote events or made a delivery due, see events/outbox.ts. */
  readonly outbox: Signal;
}

/** The schemas of a route give the types of its request and of its replies. */
interface TypesOfSchemas extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? ReplyOf<this['schema']> : unknown;
}

export type Routes = FastifyPluginAsync<{ readonly context: Context }, RawServerDefault, TypesOfSchemas>;
