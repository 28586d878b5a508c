/** Everything a route may use: built once, from config, and replaceable part by part in tests. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Kysely } from 'kysely';
import type { AuditLog } from '#api/audit/audit.ts';
import type { Passwords } from '#api/auth/password.ts';
import type { Signer } from '#api/auth/signer.ts';
import type { Background } from '#api/background.ts';
import type { Config } from '#api/config.ts';
import type { DatabaseHealth } from '#api/db/health.ts';
import type { Database } from '#api/db/schema.ts';
import type { Sender } from '#api/events/sender.ts';
import type { Signal } from '#api/events/signal.ts';
import type { Targets } from '#api/events/targets.ts';
import type { Random } from '#api/ids.ts';
import type { Counters } from '#api/limits/counters.ts';
import type { Limiter } from '#api/limits/limiter.ts';
import type { Mailer } from '#api/mail/mailer.ts';
import type { Recaptcha } from '#api/recaptcha.ts';
import type { SdkScripts } from '#api/sdk-scripts.ts';
import type { Storage } from '#api/storage/storage.ts';
import type { Clock } from '#shared/clock.ts';
import type { StateCache } from './state-cache.ts';

export interface Context {
  readonly config: Config;
  readonly db: Kysely<Database>;
  /** Whether the database can do its work. */
  readonly health: DatabaseHealth;
  readonly clock: Clock;
  readonly random: Random;
  readonly signer: Signer;
  /** What the environment route answers, per workspace. Whoever changes what is in there purges it. */
  readonly states: StateCache;
  /** Where uploaded files live. */
  readonly storage: Storage;
  /** What is served at `/js/`. */
  readonly sdkScripts: SdkScripts;
  readonly passwords: Passwords;
  /** The application's limits. Routes are limited by their surface and their options; what is no route asks here. */
  readonly limits: Limiter;
  /** What the limits count in, for what is limited otherwise. Shared as far as the limits are. */
  readonly counters: Counters;
  /** Mails are accepted inside the transaction of what they are about, and sent right after. */
  readonly mailer: Mailer;
  /** Who did what. */
  readonly audit: AuditLog;
  /** Tells respondents that are persons from others. */
  readonly recaptcha: Recaptcha;
  /** Where webhooks may point. */
  readonly targets: Targets;
  /** Hands messages to receivers of webhooks. */
  readonly sender: Sender;
  /** Work that must not delay an answer, because its time would tell something. */
  readonly background: Background;
  /** To be notified after a commit that wrote events or made a delivery due, see events/outbox.ts. */
  readonly outbox: Signal;
}

/** A plugin that adds the routes of a resource. */
export type Routes = FastifyPluginAsyncTypebox<{ readonly context: Context }>;
