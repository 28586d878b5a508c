/** Builds everything that routes may use, from the settings. The process and the tests use it. */
import type { Logger } from 'pino';
import { createAuditLog } from '#api/audit/audit.ts';
import { createPasswords, type Passwords } from '#api/auth/password.ts';
import { createRecaptcha } from '#api/auth/recaptcha.ts';
import { createSigner, loadSigningSecret } from '#api/auth/signer.ts';
import { createStateCache } from '#api/cache/state-cache.ts';
import { awaitDatabase, openDatabase } from '#api/db/database.ts';
import { createDatabaseHealth } from '#api/db/health.ts';
import { migrate } from '#api/db/migrate.ts';
import { createSignal } from '#api/events/outbox.ts';
import { createSender } from '#api/events/sender.ts';
import { createResolve, createTargets, type Resolve } from '#api/events/targets.ts';
import { createLimiter, openCounters } from '#api/limits/limiter.ts';
import { createMailer } from '#api/mail/mailer.ts';
import type { StopStep } from '#api/processes/stop.ts';
import { openStorage } from '#api/storage/open.ts';
import type { Random } from '#api/values/ids.ts';
import { createBackground } from '#api/work/background.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Config, Secrets } from './config.ts';
import type { Context } from './context.ts';

/** These come from outside the program. Tests replace them. */
interface Outside {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Default: the DNS of this machine. */
  readonly resolve?: Resolve;
  /** Default: the key in the database, which the first start makes. */
  readonly signingSecret?: Buffer;
  readonly passwords?: Passwords;
  /** How long a limit waits for Redis. */
  readonly countersWaitMs?: Millis;
}

/** How long a start waits for a database that does not answer yet. */
const DATABASE_WAIT_MS: Millis = 30_000;

export interface OpenContext {
  readonly context: Context;
  /** Closes the parts, in this order, after all work has ended. */
  readonly closing: readonly StopStep[];
}

/** Waits for the database, and brings its schema up to date. */
export async function openContext(
  config: Config,
  secrets: Secrets,
  { clock, random, log, resolve, signingSecret, passwords, countersWaitMs }: Outside,
): Promise<OpenContext> {
  const health = createDatabaseHealth(clock, log);
  const db = openDatabase(config.database, health.note);
  await awaitDatabase(db, DATABASE_WAIT_MS, ({ cause }) =>
    log.warn({ err: cause }, 'waiting for the database'),
  );
  await migrate(db);
  const signer = createSigner(signingSecret ?? (await loadSigningSecret(db, random, clock)));
  const counters = await openCounters(secrets.redisUrl, { clock, signer, log }, countersWaitMs);
  const { smtpUrl } = secrets;
  // nodemailer is loaded only if mails are sent.
  const transport =
    smtpUrl === null
      ? null
      : (await import('#api/mail/smtp.ts')).createSmtpTransport(smtpUrl, config.mailFrom);
  const mailer = createMailer({ db, transport, clock, random, log });
  const targets = createTargets({
    allowed: config.webhooks.allowedTargets,
    allowsInternal: config.webhooks.allowsInternalTargets,
    resolve: resolve ?? createResolve(),
  });
  const { publicUrl, storage: location } = config;
  const storing = { location, credentials: secrets.s3, publicUrl, signer, clock, random };
  const states = createStateCache(clock);
  const context: Context = {
    config,
    db,
    health,
    clock,
    random,
    signer,
    states,
    storage: await openStorage(storing),
    passwords: passwords ?? createPasswords(random),
    limits: createLimiter(counters, config.isRateLimitingDisabled),
    counters,
    mailer,
    audit: createAuditLog({
      ...{ isEnabled: config.isAuditLogEnabled, trustedProxies: config.trustedProxies },
      ...{ db, counters, clock, random, log },
    }),
    targets,
    sender: createSender(targets),
    recaptcha: createRecaptcha(secrets.recaptcha),
    background: createBackground(log),
    outbox: createSignal(),
  };
  return {
    context,
    closing: [
      { name: 'work behind answers', stop: context.background.idle },
      { name: 'storage', stop: context.storage.close },
      { name: 'sender', stop: context.sender.close },
      { name: 'limits', stop: () => counters.close() },
      { name: 'database', stop: () => db.destroy() },
    ],
  };
}
