/**
 * The gateway process: reads the configuration, starts the gateway or its workers, and handles signals. Only this file
 * ends the process.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import { WorkerStartError } from '#gateway/process/worker-pool.ts';
import { authority } from '#shared/authority.ts';
import { ConfigError, type Environment } from '#shared/configuration.ts';
import { openLog } from '#shared/log-lines.ts';
import { VERSION } from '#shared/version.ts';
import { type Gateway, openPolicyWatch, startGateway, watchProxyFiles } from './app.ts';
import { type GatewaySettings, readConfig } from './config.ts';
import { listenErrorText } from './listen/listener.ts';
import type { RunningGateway } from './operate/admin/context.ts';
import { openFilesMax } from './operate/doctor/open-files.ts';
import { startOrClose, together } from './part/life.ts';
import type { Operated } from './part/part.ts';
import { openParts } from './parts.ts';
import { assertPoliciesAreChosen, readPolicyFile } from './policy/policy-file.ts';
import { PolicyFileError } from './policy/problems.ts';
import { type StopOptions, stopper } from './process/stop.ts';
import { Supervisor, type WorkerMessage } from './process/supervisor.ts';
import { reportTo } from './process/worker.ts';
import { StoreRefusedError } from './store/fault.ts';

// If objects of early requests live on with their connections, V8 allocates such objects in the old generation from then
// on. Collecting those that die young from there made each request a fifth more expensive. NODE_OPTIONS refuses this flag.
setFlagsFromString('--no-allocation-site-pretenuring');

const { timeOrigin } = performance;

/**
 * Milliseconds since the epoch, on a monotonic clock. A correction of the wall clock must not end or lengthen a window.
 */
const clock = (): number => timeOrigin + performance.now();

const isWorker = process.argv.includes('--worker');

// Without a listener, SIGHUP would end the process. Ignore it until the start is complete.
process.on('SIGHUP', () => undefined);

/** Exits if the parent process dies during the start, because nobody could stop this process afterwards. */
const abandoned = (): never => process.exit(1);
process.on('disconnect', abandoned);
if (isWorker && !process.connected) abandoned();

function giveUp(error: unknown): never {
  if (!(error instanceof WorkerStartError))
    process.stderr.write(`Gateway cannot start: ${reasonOf(error)}\n`);
  process.exit(1);
}

function reasonOf(error: unknown): string {
  if (error instanceof PolicyFileError) return `the policy file has mistakes.\n${error.message}`;
  if (error instanceof ConfigError || error instanceof StoreRefusedError) return error.message;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return listenErrorText(error) ?? text;
}

/** A running gateway, either in this process or in workers. */
interface Running extends RunningGateway, Pick<Gateway, 'port' | 'addresses' | 'reload' | 'close'> {}

/** Name of this process among all that share the store. */
const REPLICA = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;

function startHere(settings: GatewaySettings, log: Logger): Promise<Gateway> {
  return startGateway({
    settings,
    clock,
    wallClock: Date.now,
    log,
    newSalt: newSecret,
    randomInt: (end) => randomInt(end),
    replica: REPLICA,
    readPolicyFile,
  });
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

async function startWorkers(settings: GatewaySettings, log: Logger): Promise<Running> {
  const { config, secrets, gathered } = settings;
  const { host, port, workers, reusePort, drainTimeoutMs } = config;
  const { store, identitySecret } = secrets;
  if (store === null) throw new Error('the configuration asks for a store where there are workers');
  // The supervisor needs the policies and the files of proxies only for its admin API. The workers watch the same files,
  // and log why they refuse one.
  const unheard = { onLoaded: () => undefined, onRefused: () => undefined };
  const watch = await openPolicyWatch({ settings, readPolicyFile, clock }, unheard);
  const proxyFiles = await watchProxyFiles(config.trust, clock, null);
  const surroundings = { gathered, clock, wallClock: Date.now, replica: REPLICA, log };
  const parts = await openParts(settings.parts, surroundings, 'supervisor');
  const { addresses } = parts.slots;
  const supervisor = new Supervisor({
    ...{ addresses, clock, log, host, port, workers, reusePort, drainTimeoutMs },
    main: fileURLToPath(import.meta.url),
    execArgv: process.execArgv,
    env: process.env,
  });
  const { StoreControl } = await import('#gateway/bans/store-control.ts');
  const { RedisDecisions } = await import('#gateway/refusals/redis-decisions.ts');
  const control = new StoreControl(store, identitySecret, clock, (row) => supervisor.applyChange(row));
  const decisions = new RedisDecisions(store);
  // The parts of the supervisor have no listeners of their own.
  const lives = together([
    supervisor,
    watch,
    ...proxyFiles,
    { close: () => parts.close() },
    control,
    decisions,
  ]);
  await startOrClose(lives);
  return {
    ...lives,
    control,
    addresses,
    port: supervisor.port,
    policies: () => watch.loaded,
    policyText: () => watch.text,
    policyRefusal: () => watch.refusal,
    ready: () => supervisor.ready(),
    families: () => supervisor.families(),
    findDecision: (id) => decisions.find(id),
    listDecisions: (before, count) => decisions.list(before, count),
    exchangeDenied: (own) => decisions.exchangeDenied(REPLICA, own),
    processes: () => supervisor.processes(),
  };
}

/** Stops the gateway on a signal, and when the parent process dies. */
function onStop(options: Omit<StopOptions, 'exit'>): void {
  const stop = stopper({ ...options, exit: (code) => process.exit(code) });
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.off('disconnect', abandoned);
  process.on('disconnect', () => stop('disconnect'));
}

async function runWorker(settings: GatewaySettings, log: Logger): Promise<void> {
  const gateway = await startHere(settings, log);
  reportTo(process, gateway);
  process.on('SIGHUP', () => gateway.reload());
  // The supervisor has waited already.
  onStop({ stop: () => gateway.close(), log, delayMs: 0, onDelay: () => undefined });
  process.send?.({ type: 'ready', port: gateway.port } satisfies WorkerMessage);
}

async function run(settings: GatewaySettings, log: Logger): Promise<void> {
  const { config, secrets, gathered } = settings;
  for (const warning of gathered.warnings) log.warn(warning);
  const single = config.workers === 1;
  const running = single ? await startHere(settings, log) : await startWorkers(settings, log);
  const stopping = new AbortController();
  const operated = await operate(settings, running, stopping.signal, log).catch(async (error: Error) => {
    await running.close();
    throw error;
  });
  process.on('SIGHUP', () => running.reload());
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running.close();
    for (const { close } of operated) await close();
  };
  onStop({ stop, log, delayMs: config.drainDelayMs, onDelay: () => stopping.abort() });
  const store = secrets.store === null ? 'in-process memory' : 'Redis';
  const ready = [
    `${running.policies().policies.length} policies`,
    `${config.workers} process${single ? '' : 'es'}`,
    `store: ${store}`,
    ...operated.map((part) => part.ready),
    ...settings.parts.flatMap((part) => part.ready?.() ?? []),
  ];
  process.stdout.write(
    `Gateway ready on ${gathered.scheme}://${authority(config.host, running.port)}, forwarding to ${config.upstream} (${ready.join(', ')})\n`,
  );
  process.send?.('ready');
}

/** Starts the parts that operators talk to. */
async function operate(
  { config, secrets, parts, gathered }: GatewaySettings,
  running: Running,
  stopping: AbortSignal,
  log: Logger,
): Promise<Operated[]> {
  const operated: Operated[] = [];
  for (const part of parts) {
    const started = await part.operate?.({
      ...running,
      ready: () => !stopping.aborted && running.ready(),
      storeKind: secrets.store === null ? 'memory' : 'redis',
      reusePort: config.reusePort,
      log,
      clock,
      trust: config.trust,
      newSecret,
      doctor: {
        config,
        certificate: gathered.certificate,
        readPolicyFile,
        openFilesMax,
        version: VERSION,
        nodeVersion: process.versions.node,
        publicPort: () => running.port,
      },
    });
    if (started !== undefined) operated.push(started);
  }
  return operated;
}

/** Loads the reader of credentials only where there are some. */
async function environment(): Promise<Environment> {
  if (!process.env.CREDENTIALS_DIRECTORY) return process.env;
  const { withCredentials } = await import('#shared/credentials.ts');
  return withCredentials(process.env);
}

try {
  const env = await environment();
  const settings = readConfig(env);
  assertPoliciesAreChosen(env);
  // The log goes to stderr. stdout gets a single line for the person who started the program.
  const log = openLog({ level: settings.config.logLevel, base: { service: 'gateway' } });
  if (isWorker) await runWorker(settings, log);
  else await run(settings, log);
} catch (error) {
  giveUp(error);
}
