/**
 * The API's process: environment -> config -> app -> listen. Everything that ends it is in this file.
 *
 * Run by `start.ts` (with --supervised) it says over IPC when it is ready, leaves the first start's notice to its
 * parent, and ends when the parent is gone.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type Logger, pino } from 'pino';
import { ConfigError } from '#shared/configuration.ts';
import { buildApp } from './app.ts';
import { createAuditLog } from './audit/audit.ts';
import { createPasswords } from './auth/password.ts';
import { createSigner, loadSigningSecret } from './auth/signer.ts';
import { bootstrap, firstStartNotice } from './bootstrap.ts';
import { readConfig } from './config.ts';
import type { Context } from './context.ts';
import { CopyUnfinished, refuseUnfinishedCopy } from './db/copy/note.ts';
import { awaitDatabase, openDatabase } from './db/database.ts';
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable } from './db/faults.ts';
import { createDatabaseHealth } from './db/health.ts';
import { migrate, SchemaTooNew } from './db/migrate.ts';
import { createResolve } from './events/resolve.ts';
import { createSender } from './events/sender.ts';
import { createSignal } from './events/signal.ts';
import { createTargets } from './events/targets.ts';
import { startWorker } from './events/worker.ts';
import { fanOut } from './jobs/fan-out.ts';
import { startReport } from './jobs/limits-report.ts';
import { startScheduledJobs } from './jobs/scheduled-jobs.ts';
import { createLimiter, openCounters } from './limits/limiter.ts';
import { createMailer } from './mail/mailer.ts';
import { openTransport } from './mail/open.ts';
import { createRecaptcha } from './recaptcha.ts';
import { loadSdkScripts } from './sdk-scripts.ts';
import { createStateCache } from './state-cache.ts';
import { stopWithin } from './stop.ts';
import { openStorage } from './storage/open.ts';
import { StorageUnavailable } from './storage/storage.ts';

/** How long requests in flight may take once we were told to stop. */
const REQUESTS_MS = 6_000;
/** Then the process ends, whatever hangs: orchestrators commonly kill after ten seconds. */
const STOP_MS = 8_500;

const isSupervised = process.argv.includes('--supervised');

async function start(): Promise<void> {
  const { config, secrets } = readConfig(process.env, process.cwd());
  const log = pino({ level: config.logLevel, serializers: { req: () => undefined } }, pino.destination(2));
  const sdkScripts = await loadSdkScripts(config.sdkPath);
  const health = createDatabaseHealth(Date.now, log);
  const { synchronous, databaseLimits } = config;
  const db = openDatabase(config.database, {
    ...databaseLimits,
    synchronous,
    onFault: health.note,
    onAway: health.noteAway,
  });
  await awaitDatabase(db, config.database, databaseLimits.waitMs, (reason) =>
    log.warn({ seconds: databaseLimits.waitMs / 1_000 }, `waiting for the database: ${reason.message}`),
  );
  await refuseUnfinishedCopy(db);
  await migrate(db);

  const signer = createSigner(await loadSigningSecret(db, randomBytes, Date.now));
  const counters = await openCounters(secrets.redisUrl, Date.now, log);
  const { isRateLimitingDisabled: isDisabled, isAuditLogEnabled: isEnabled } = config;
  const limits = createLimiter({ counters, signer, isDisabled });
  const transport = await openTransport(secrets.smtpUrl, config.mailFrom);
  const mailer = createMailer({ db, transport, clock: Date.now, random: randomBytes, log });
  const targets = createTargets({
    allowed: config.webhooks.allowedTargets,
    allowsInternal: config.webhooks.allowsInternalTargets,
    resolve: createResolve(),
  });
  const storage = await openStorage({
    location: config.storage,
    credentials: secrets.s3,
    publicUrl: config.publicUrl,
    signer,
    clock: Date.now,
    random: randomBytes,
  });
  const checked = storage.check();
  // A folder is there or is a mistake; a bucket may come back, and until then only uploads fail.
  if (config.storage.kind === 'disk') await checked;
  else
    checked.catch((error: unknown) => log.warn({ err: error }, 'the bucket of the uploaded files is away'));
  const context: Context = {
    config,
    db,
    health,
    clock: Date.now,
    random: randomBytes,
    signer,
    states: createStateCache({ clock: Date.now }),
    storage,
    sdkScripts,
    passwords: createPasswords(randomBytes),
    limits,
    mailer,
    audit: createAuditLog({ isEnabled, db, counters, signer, clock: Date.now, random: randomBytes, log }),
    targets,
    sender: createSender(targets),
    recaptcha: createRecaptcha(secrets.recaptcha),
    outbox: createSignal(),
  };
  // Fastify's own words at level info are one line, which is said below for people to read.
  let isReady = false;
  const appLog = log.level === 'info' ? log.child({}, { level: 'warn' }) : log;
  const app = await buildApp(context, appLog, () => isReady);
  const address = await app.listen({ port: config.port, host: config.host });
  app.makeDescription();
  const worker = startWorker({
    ...context,
    attemptsMax: config.webhooks.attemptsMax,
    fanOut: () => fanOut(context, log),
    log,
  });
  const jobs = startScheduledJobs(context, log);
  const report = startReport(context, log);
  const steps = {
    first: [
      { name: 'requests', stop: () => closeServer(app) },
      { name: 'deliveries', stop: worker.stop },
      { name: 'mails', stop: mailer.close },
      { name: 'jobs', stop: jobs.stop },
    ],
    after: [
      { name: 'storage', stop: storage.close },
      { name: 'sender', stop: context.sender.close },
      { name: 'report', stop: report.stop },
      { name: 'limits', stop: () => counters.close() },
      { name: 'database', stop: () => db.destroy() },
    ],
  };
  stopOnSignals(steps, log);

  // After the port is ours: a start that fails must not use up the one time the credentials are told.
  const first = await bootstrap(context, secrets);
  isReady = true;
  const notice = first === null ? null : firstStartNotice(first, config.publicUrl);
  mailer.start();
  console.log(`API ready on ${address}`);
  if (isSupervised) process.send?.({ kind: 'ready', address, notice });
  else if (notice !== null) console.log(`\n${notice}`);
}

/** Stops listening, and lets requests in flight finish within a bound. */
async function closeServer(app: FastifyInstance): Promise<void> {
  const deadline = setTimeout(() => app.server.closeAllConnections(), REQUESTS_MS);
  await app.close();
  clearTimeout(deadline);
}

/** Ends with 0 in any case: what is cut off is done by the next process. */
function stopOnSignals(steps: Parameters<typeof stopWithin>[1], log: Logger): void {
  let isStopping = false;
  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    const open = await stopWithin(STOP_MS, steps, (name, error) =>
      log.error({ err: error, name }, 'something could not be closed'),
    );
    if (open.length > 0) {
      log.warn(
        { open },
        'the process ends although something hangs; what is cut off is done after the next start',
      );
    }
    process.exit(0);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  if (isSupervised) process.on('disconnect', stop);
}

/** One sentence for what an operator can fix; everything else is a fault of ours and comes with its stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return `The API cannot start. ${error.problems.join('; ')}`;
  if (
    error instanceof DatabaseUnavailable ||
    error instanceof DatabaseFault ||
    error instanceof SchemaTooNew ||
    error instanceof CopyUnfinished
  ) {
    return `The API cannot start. ${error.message}`;
  }
  if (error instanceof DatabaseBusy)
    return `The API cannot start. DATABASE_URL: ${error.message}; end it first`;
  if (error instanceof StorageUnavailable) return `The API cannot start. ${error.message}`;
  if (error instanceof Error && 'syscall' in error && error.syscall === 'listen') {
    return `The API cannot start. ${listenProblem(error)}`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function listenProblem(error: Error): string {
  const code = 'code' in error ? error.code : undefined;
  const port = 'port' in error ? error.port : '';
  const address = 'address' in error ? error.address : '';
  switch (code) {
    case 'EADDRINUSE':
      return `API_PORT: another program listens on ${address}:${port}; end it or choose another port`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `API_HOST: ${address} is no address of this machine; give one such as 127.0.0.1 or 0.0.0.0`;
    case 'EACCES':
      return `API_PORT: this user may not listen on port ${port}; choose one above 1023`;
    default:
      return error.message;
  }
}

start().catch((error: unknown) => {
  console.error(explain(error));
  process.exit(1);
});
