/**
 * The API's process. It reads the settings, builds the app and listens. Everything that ends the process is in this
 * file.
 *
 * A process that `start.ts` has started (--supervised) reports over IPC when it is ready, lets its parent show the notice
 * of the first start, and ends if the parent has ended.
 */
import { randomBytes } from 'node:crypto';
import type { ListenOptions } from 'node:net';
import type { FastifyInstance, FastifyListenOptions } from 'fastify';
import type { Logger } from 'pino';
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable } from '#api/db/faults.ts';
import { SchemaDiffers } from '#api/db/migrate.ts';
import { startWorker } from '#api/events/worker.ts';
import { acceptFollowUps } from '#api/jobs/follow-ups.ts';
import { startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { stopWithin } from '#api/processes/stop.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { ConfigError, type Environment } from '#shared/configuration.ts';
import { openLog } from '#shared/log-lines.ts';
import { buildApp } from './app.ts';
import { bootstrap, firstStartNotice, hasOrganization } from './bootstrap.ts';
import { type Config, readConfig, type Secrets } from './config.ts';
import type { Context } from './context.ts';
import { openContext } from './open-context.ts';

/** Time for requests in progress after the request to stop. */
const REQUESTS_MS = 6_000;
/** The process ends after this time in any case. Orchestrators commonly kill after ten seconds. */
const STOP_MS = 8_500;

/** A message to the parent: the port is open, and the credentials of a first start exist. */
interface ReadyMessage {
  /** Address of the API, such as `http://127.0.0.1:3000`. */
  readonly address: string;
  /** Text that the operator sees once, at the first start. */
  readonly notice: string | null;
}

const isSupervised = process.argv.includes('--supervised');

/** A process that loses its parent before it serves has nothing to stop, so it exits. */
const abandoned = (): never => process.exit(1);
if (isSupervised) process.on('disconnect', abandoned);
if (isSupervised && !process.connected) abandoned();

async function start(): Promise<void> {
  const { config, secrets, warnings } = readConfig(await environment(), process.cwd());
  const log = openLog({ level: config.logLevel, serializers: { req: () => undefined } });
  for (const warning of warnings) log.warn(warning);
  await serve(config, secrets, log);
}

/** Loads the reader of credentials only where there are some. */
async function environment(): Promise<Environment> {
  if (!process.env.CREDENTIALS_DIRECTORY) return process.env;
  const { withCredentials } = await import('#shared/credentials.ts');
  return withCredentials(process.env);
}

async function serve(config: Config, secrets: Secrets, log: Logger): Promise<void> {
  const { context, closing } = await openContext(config, secrets, {
    clock: Date.now,
    random: randomBytes,
    log,
  });
  const { db, mailer } = context;
  await checkStorage(context, log);
  // Fastify's only line at level info is the one about listening, which is logged below in another form.
  let isReady = await hasOrganization(db);
  const appLog = log.level === 'info' ? log.child({}, { level: 'warn' }) : log;
  const app = await buildApp(context, appLog, () => isReady);
  const address = await app.listen(listenOptions(config));
  const worker = startWorker({ ...context, acceptFollowUps: () => acceptFollowUps(context, log), log });
  const jobs = startScheduledJobs(context, log);
  const steps = {
    first: [
      { name: 'requests', stop: () => closeServer(app) },
      { name: 'deliveries', stop: worker.stop },
      { name: 'mails', stop: mailer.close },
      { name: 'jobs', stop: jobs.stop },
    ],
    after: closing,
  };
  stopOnSignals(() => stopAll(steps, log));

  // Show the credentials after the port is open. A start that fails must not use up the only time that they are shown.
  const first = await bootstrap(context, secrets);
  isReady = true;
  mailer.start();
  tellReady({ address, notice: first === null ? null : firstStartNotice(first, config.publicUrl) });
}

async function checkStorage({ config, storage }: Context, log: Logger): Promise<void> {
  const checked = storage.check();
  // A missing folder is a mistake. A bucket may come back, and until then only uploads fail.
  if (config.storage.kind === 'disk') await checked;
  else
    checked.catch((error: unknown) =>
      log.warn({ err: error }, 'the bucket for uploads does not answer; uploads fail until it does'),
    );
}

/** Returns options that Fastify passes on to node:net. */
function listenOptions({
  host,
  port,
  reusePort,
}: Config): FastifyListenOptions & Pick<ListenOptions, 'reusePort'> {
  return { host, port, reusePort };
}

function tellReady({ address, notice }: ReadyMessage): void {
  console.log(`API ready on ${address}`);
  if (isSupervised) process.send?.({ address, notice } satisfies ReadyMessage);
  else if (notice !== null) console.log(`\n${notice}`);
}

/** Stops listening, and waits a bounded time for requests in progress. */
async function closeServer(app: FastifyInstance): Promise<void> {
  const deadline = setTimeout(() => app.server.closeAllConnections(), REQUESTS_MS);
  await app.close();
  clearTimeout(deadline);
}

/** Waits a bounded time. The next process does the interrupted work. */
async function stopAll(steps: Parameters<typeof stopWithin>[1], log: Logger): Promise<void> {
  const open = await stopWithin(STOP_MS, steps, (name, error) =>
    log.error({ err: error, name }, 'a part of the API could not be stopped'),
  );
  if (open.length > 0) {
    log.warn(
      { open },
      'the process ends although some parts hang; the next start does the work that is cut off',
    );
  }
}

/** Ends the process with exit code 0. */
function stopOnSignals(stopEverything: () => Promise<void>): void {
  let isStopping = false;
  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    await stopEverything();
    process.exit(0);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  process.off('disconnect', abandoned);
  if (isSupervised) process.on('disconnect', stop);
}

/**
 * Explains an error in one sentence if an operator can fix it. Any other error is a bug, and is logged with its stack.
 */
function explain(error: unknown): string {
  const isForOperator =
    error instanceof ConfigError ||
    error instanceof DatabaseUnavailable ||
    error instanceof DatabaseFault ||
    error instanceof SchemaDiffers ||
    error instanceof StorageUnavailable;
  if (isForOperator) return `The API cannot start: ${error.message}`;
  if (error instanceof DatabaseBusy)
    return `The API cannot start: DATABASE_URL: ${error.message}; another process uses it, end that first`;
  if (error instanceof Error && 'syscall' in error && /^(listen|getaddrinfo)$/.test(String(error.syscall)))
    return `The API cannot start: API_HOST or API_PORT: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

start().catch((error: unknown) => {
  console.error(explain(error));
  process.exit(1);
});
