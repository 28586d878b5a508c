/**
 * The gateway process: reads the configuration, starts the gateway or its workers, and handles signals. Only this file
 * ends the process.
 */
import { randomBytes } from 'node:crypto';
import { isIPv6, type ListenOptions } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { FastifyListenOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Millis } from '#shared/clock.ts';
import { ConfigError } from '#shared/configuration.ts';
import { openLog } from '#shared/log-lines.ts';
import { VERSION } from '#shared/version.ts';
import { WorkerStartError } from '#shared/worker-pool.ts';
import { type Gateway, policyLoader, startGateway } from './app.ts';
import {
  assertPoliciesAreChosen,
  type GatewayConfig,
  type GatewaySecrets,
  readConfig,
  readPolicyFile,
} from './config.ts';
import { ListenError, LOOPBACK } from './listen/listener.ts';
import { type Family, families } from './observe/metrics/exposition.ts';
import type { Second } from './observe/metrics/seconds.ts';
import { Addresses } from './operate/decisions/addresses.ts';
import { openFilesMax } from './operate/doctor/open-files.ts';
import { PolicyFileError } from './policy/problems.ts';
import { FileWatch, loadWatched } from './policy/watched-file.ts';
import {
  type ProcessReport,
  STATE_INTERVAL_MS,
  Supervisor,
  type WorkerMessage,
  type WorkerRequest,
} from './process/supervisor.ts';
import { StoreRefusedError } from './store/fault.ts';

/**
 * Milliseconds since the epoch, on a monotonic clock. A correction of the wall clock must not end or lengthen a window.
 */
const clock = (): number => performance.timeOrigin + performance.now();

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

const PUBLIC_VARIABLES = { portVariable: 'GATEWAY_PORT', hostVariable: 'GATEWAY_HOST' };

function reasonOf(error: unknown): string {
  if (error instanceof PolicyFileError) return `the policy file has mistakes.\n${error.message}`;
  if (error instanceof ConfigError || error instanceof StoreRefusedError) return error.message;
  const isOther = error instanceof ListenError;
  const { code, port } = (isOther ? error.cause : error) as NodeJS.ErrnoException & { port?: number };
  const { portVariable, hostVariable } = isOther ? error : PUBLIC_VARIABLES;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken; stop the program that has it, or set ${portVariable}`;
    case 'EACCES':
      return `port ${port} needs more rights; set ${portVariable} to 1024 or above`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EAI_AGAIN':
    case 'EINVAL':
    case 'ENOTFOUND':
      return `this machine does not have the address in ${hostVariable}`;
    default:
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** A running gateway, either in this process or in workers. */
interface Running
  extends Omit<
    Gateway,
    | 'applyChange'
    | 'limited'
    | 'paths'
    | 'replicas'
    | 'samples'
    | 'storeAvailable'
    | 'storeAwaySince'
    | 'takeSeconds'
  > {
  storeAvailable(): Promise<boolean>;
  families(): Promise<readonly (readonly Family[])[]>;
  /** Reports of the processes that answer in time. */
  processes(): Promise<readonly ProcessReport[]>;
  /** Takes out the counts of past seconds. */
  takeSeconds(): Promise<readonly Second[]>;
  /** Lets all processes keep the addresses of refused clients for this time. */
  showAddresses(forMs: Millis): Promise<void>;
}

/** Name of this process among all that share the store. */
const REPLICA = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;

function startHere(config: GatewayConfig, secrets: GatewaySecrets, log: Logger): Promise<Gateway> {
  return startGateway({
    config,
    secrets,
    clock,
    wallClock: Date.now,
    log,
    newSalt: () => randomBytes(32).toString('base64url'),
    replica: REPLICA,
    readPolicyFile,
    reusePort: isWorker || config.reusePort,
  });
}

async function startSingle(config: GatewayConfig, secrets: GatewaySecrets, log: Logger): Promise<Running> {
  const gateway = await startHere(config, secrets, log);
  return {
    ...gateway,
    storeAvailable: async () => gateway.storeAvailable(),
    families: async () => [families(gateway.samples())],
    processes: async () => [reportOf(gateway, true)],
    takeSeconds: async () => gateway.takeSeconds(),
    showAddresses: async (forMs) => gateway.addresses.show(forMs),
  };
}

function reportOf(gateway: Gateway, withRankings: boolean): ProcessReport {
  return {
    storeAvailable: gateway.storeAvailable(),
    storeAwaySince: gateway.storeAwaySince(),
    replicas: gateway.replicas(),
    limited: withRankings ? gateway.limited() : [],
    paths: withRankings ? gateway.paths() : [],
  };
}

async function startWorkers(
  config: GatewayConfig,
  { store, identitySecret }: GatewaySecrets,
  log: Logger,
): Promise<Running> {
  if (store === null) throw new Error('the configuration asks for a store where there are workers');
  // The supervisor needs the policies only for its admin API.
  const text = readPolicyFile(config.policiesFile);
  const { decisionListener } = config;
  const load = await policyLoader(decisionListener);
  const { loaded: first, inUse } = loadWatched(text, config.policiesFile, load);
  let set = first;
  const watch = new FileWatch(inUse, {
    file: config.policiesFile,
    read: readPolicyFile,
    load,
    clock,
    onLoaded: (loaded) => {
      set = loaded;
    },
    // The workers watch the same file and log the reason.
    onRefused: () => undefined,
  });
  if (decisionListener !== null && !config.reusePort) {
    const { assertDecisionPortsFree } = await import('./decision-listener/listeners.ts');
    await assertDecisionPortsFree(decisionListener);
  }
  const addresses = new Addresses(config.showAddressesMs, clock);
  const supervisor = new Supervisor({
    addresses,
    main: fileURLToPath(import.meta.url),
    execArgv: process.execArgv,
    env: process.env,
    workers: config.workers,
    host: config.host,
    port: config.port,
    reusePort: config.reusePort,
    clock,
    drainTimeoutMs: config.drainTimeoutMs,
    log,
  });
  await supervisor.start().catch(async (error) => {
    await supervisor.close();
    throw error;
  });
  watch.start();
  const { StoreControl } = await import('./operate/control/store-control.ts');
  const { RedisDecisions } = await import('./operate/decisions/redis-decisions.ts');
  const control = new StoreControl(store, identitySecret, clock, (change) => supervisor.applyChange(change));
  const decisions = new RedisDecisions(store);
  return {
    port: supervisor.port,
    policies: supervisor.policies,
    control,
    policySet: () => set,
    policyText: () => watch.text,
    referencedTexts: () => watch.referenced,
    policyRefusal: () => watch.refusal,
    ready: () => supervisor.ready(),
    storeAvailable: () => supervisor.storeAvailable(),
    families: () => supervisor.families(),
    findDecision: (id) => decisions.find(id),
    listDecisions: (before, count) => decisions.list(before, count),
    exchangeDenied: (own) => decisions.exchangeDenied(REPLICA, own),
    processes: () => supervisor.processes(),
    takeSeconds: () => supervisor.takeSeconds(),
    addresses,
    showAddresses: (forMs) => supervisor.showAddresses(forMs),
    reload() {
      supervisor.reload();
      watch.reload();
    },
    async close() {
      watch.stop();
      control.close();
      decisions.close();
      addresses.close();
      await supervisor.close();
    },
  };
}

/**
 * @param delayMs how long the gateway goes on as before after the first signal; 0 for not at all
 * @param onDelay called when this time begins
 */
function onStop(stop: () => Promise<void>, log: Logger, delayMs: Millis, onDelay: () => void): void {
  let phase: 'running' | 'delayed' | 'draining' = 'running';
  let delay: NodeJS.Timeout | undefined;
  const drain = (signal: string): void => {
    phase = 'draining';
    log.info({ signal }, 'draining');
    stop().then(
      () => process.exit(0),
      (error) => {
        log.error(error, 'the shutdown failed');
        process.exit(1);
      },
    );
  };
  const handler = (signal: string): void => {
    // A second signal means: do not wait for requests in flight.
    if (phase === 'draining') process.exit(1);
    clearTimeout(delay);
    if (phase === 'delayed' || delayMs === 0) {
      drain(signal);
      return;
    }
    phase = 'delayed';
    log.info({ signal, delayMs }, 'reports that it is not ready, and drains after a delay');
    onDelay();
    delay = setTimeout(drain, delayMs, signal);
  };
  process.on('SIGTERM', handler);
  process.on('SIGINT', handler);
  process.off('disconnect', abandoned);
  process.on('disconnect', () => handler('disconnect'));
}

async function runWorker(config: GatewayConfig, secrets: GatewaySecrets, log: Logger): Promise<void> {
  const gateway = await startHere(config, secrets, log);
  const sendState = (id: number): void => {
    // If the supervisor is gone, the 'disconnect' handler stops this worker.
    if (!process.connected) return;
    const state: WorkerMessage = {
      type: 'state',
      id,
      families: families(gateway.samples()),
      seconds: gateway.takeSeconds(),
      addresses: gateway.addresses.fresh(),
      // Regular reports (id 0) do not need the clients denied most often and the paths.
      ...reportOf(gateway, id !== 0),
    };
    process.send?.(state);
  };
  let isReported = false;
  process.on('message', async (request: WorkerRequest) => {
    const { id } = request;
    if (request.type !== 'state') {
      if (request.type === 'change') await gateway.applyChange(request.change);
      else gateway.addresses.show(request.forMs);
      if (process.connected) process.send?.({ type: 'applied', id } satisfies WorkerMessage);
      return;
    }
    sendState(id);
    isReported = true;
  });
  setInterval(() => {
    // Skip the regular report after an answer. With a thousand policies, a report takes a few milliseconds.
    if (!isReported) sendState(0);
    isReported = false;
  }, STATE_INTERVAL_MS).unref();
  process.on('SIGHUP', () => gateway.reload());
  // The supervisor has waited already.
  onStop(
    () => gateway.close(),
    log,
    0,
    () => undefined,
  );
  process.send?.({ type: 'ready', port: gateway.port, policies: gateway.policies } satisfies WorkerMessage);
}

async function run(config: GatewayConfig, secrets: GatewaySecrets, log: Logger): Promise<void> {
  for (const warning of config.warnings) log.warn(warning);
  const single = config.workers === 1;
  const running = single ? await startSingle(config, secrets, log) : await startWorkers(config, secrets, log);
  const stopping = new AbortController();
  // Do not import the admin listener at the top, because workers do not need it.
  const { buildAdmin } = await import('./operate/admin/admin.ts');
  const admin = buildAdmin({
    ready: () => !stopping.signal.aborted && running.ready(),
    storeAvailable: () => running.storeAvailable(),
    families: () => running.families(),
    token: secrets.adminToken,
    api: {
      findDecision: (id) => running.findDecision(id),
      listDecisions: (before, count) => running.listDecisions(before, count),
      addresses: running.addresses,
      showAddresses: (forMs) => running.showAddresses(forMs),
      token: secrets.adminToken,
      isLoopback: LOOPBACK.test(config.adminHost),
      log,
      clock,
      trust: config.trust,
      policies: () => running.policySet(),
      policyText: () => running.policyText(),
      referencedTexts: () => running.referencedTexts(),
      temporaryFolder: tmpdir(),
      stopping: stopping.signal,
      policyRefusal: () => running.policyRefusal(),
      newSecret: () => randomBytes(32).toString('base64url'),
      control: running.control,
      doctor: {
        config,
        readPolicyFile,
        openFilesMax,
        version: VERSION,
        nodeVersion: process.versions.node,
        publicPort: () => running.port,
      },
      top: {
        kind: secrets.store === null ? 'memory' : 'redis',
        processes: () => running.processes(),
        takeSeconds: () => running.takeSeconds(),
        exchangeDenied: (own) => running.exchangeDenied(own),
        families: () => running.families(),
      },
    },
  });
  // Fastify passes `reusePort` on to node:net, but its types lack it.
  const listenOptions: FastifyListenOptions & Pick<ListenOptions, 'reusePort'> = {
    host: config.adminHost,
    port: config.adminPort,
    reusePort: config.reusePort,
  };
  const adminAddress = await admin.listen(listenOptions).catch(async (cause) => {
    await running.close();
    throw new ListenError('GATEWAY_ADMIN_PORT', 'GATEWAY_ADMIN_HOST', cause);
  });
  if (secrets.adminToken === null && !LOOPBACK.test(config.adminHost)) {
    log.warn(
      { host: config.adminHost },
      'anyone who reaches GATEWAY_ADMIN_HOST can read the metrics; set GATEWAY_ADMIN_TOKEN',
    );
  }
  process.on('SIGHUP', () => running.reload());
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running.close();
    await admin.close();
  };
  onStop(stop, log, config.drainDelayMs, () => stopping.abort());
  const store = secrets.store === null ? 'in-process memory' : 'Redis';
  const { decisionListener } = config;
  const decisions = [
    decisionListener?.port == null
      ? ''
      : `, decisions on http://${authority(decisionListener.host, decisionListener.port)}`,
    decisionListener?.grpcPort == null
      ? ''
      : `, decisions over gRPC on ${authority(decisionListener.host, decisionListener.grpcPort)}`,
  ].join('');
  process.stdout.write(
    `Gateway ready on ${config.tls === null ? 'http' : 'https'}://${authority(config.host, running.port)}, forwarding to ${config.upstream} ` +
      `(${running.policies} policies, ${config.workers} process${single ? '' : 'es'}, store: ${store}, admin on ${adminAddress}${decisions})\n`,
  );
  process.send?.('ready');
}

function authority(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

try {
  const { config, secrets } = readConfig(process.env);
  assertPoliciesAreChosen(process.env);
  // The log goes to stderr. stdout gets a single line for the person who started the program.
  const log = openLog({ level: config.logLevel, base: { service: 'gateway' } });
  if (isWorker) await runWorker(config, secrets, log);
  else await run(config, secrets, log);
} catch (error) {
  giveUp(error);
}
