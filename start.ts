/**
 * `npm start`: the API and, in front of it, the gateway, as two processes with one life.
 *
 * The API starts first, because the gateway forwards to it, and stops last, because the gateway finishes its requests
 * with it. Both run in process groups of their own: Ctrl-C reaches only this process, which then stops them in order.
 * Should this process die, they notice that its channel is closed and stop by themselves. When one of them ends
 * unasked, the other is stopped, and the exit code says that something went wrong.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

interface Ready {
  /** Where the API listens; the gateway's message has none. */
  readonly address?: string;
  /** What the operator reads once, at the first start. */
  readonly notice?: string;
}

interface Service {
  readonly name: string;
  /** Resolves with the service's message, or with null when it ended before it was ready. */
  readonly ready: Promise<Ready | null>;
  readonly ended: Promise<void>;
  /** Sends a signal; harmless when the service is gone. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

/** Where the gateway's program is: the only thing a test replaces, by the first argument. */
const gatewayProgram = process.argv[2] ?? fileURLToPath(new URL('./gateway/main.ts', import.meta.url));
const apiProgram = fileURLToPath(new URL('./api/main.ts', import.meta.url));

function launch(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Service {
  const child = spawn(process.execPath, args, {
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', (error) => {
      console.error(`The ${name} cannot be started: ${error.message}`);
      resolve();
    });
  });
  const ready = new Promise<Ready | null>((resolve) => {
    child.once('message', (message) => resolve(readReady(message)));
    ended.then(() => resolve(null));
  });
  return { name, ready, ended, kill: (signal) => void child.kill(signal) };
}

/** As in gateway/config.ts, which loads too much for the first line that is shown. */
const GATEWAY_PORT_DEFAULT = '8080';

/** Where the gateway will be on this machine; null: the port is none, which the gateway refuses. */
function localUrl({ GATEWAY_PORT, GATEWAY_TLS_CERT }: NodeJS.ProcessEnv): string | null {
  const port = GATEWAY_PORT || GATEWAY_PORT_DEFAULT;
  return /^[1-9]\d{0,4}$/.test(port) ? `${GATEWAY_TLS_CERT ? 'https' : 'http'}://localhost:${port}` : null;
}

/** Where clients reach both, for whoever moves the gateway and says no more. */
function withPublicUrl(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const url = localUrl(env);
  return env.PUBLIC_URL || !env.GATEWAY_PORT || url === null ? env : { ...env, PUBLIC_URL: url };
}

/** Resolves when it is gone: each service bounds the time it gives its own requests in flight. */
async function stop(service: Service): Promise<void> {
  service.kill('SIGTERM');
  await service.ended;
}

function readReady(message: unknown): Ready {
  if (typeof message !== 'object' || message === null) return {};
  const address: unknown = Reflect.get(message, 'address');
  const notice: unknown = Reflect.get(message, 'notice');
  return {
    ...(typeof address === 'string' ? { address } : {}),
    ...(typeof notice === 'string' ? { notice } : {}),
  };
}

/** Runs both until a signal or the end of one. @returns the exit code */
async function run(): Promise<number> {
  const services: Service[] = [];
  let isSignalled = false;
  const signalled = new Promise<'signalled'>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // Whoever asks twice does not want to wait for requests in flight.
        if (isSignalled) for (const service of services) service.kill('SIGKILL');
        isSignalled = true;
        resolve('signalled');
      });
    }
  });

  const url = localUrl(process.env);
  console.log(`Floodgate is starting${url === null ? '' : ` on ${url}`} …`);
  const api = launch('API', [apiProgram, '--supervised'], withPublicUrl(process.env));
  services.push(api);
  const apiReady = await Promise.race([api.ready, signalled]);
  if (apiReady === 'signalled' || apiReady === null) {
    await stop(api);
    return apiReady === null ? 1 : 0;
  }

  const gateway = launch(
    'gateway',
    ['--max-semi-space-size=16', '--max-old-space-size=1024', gatewayProgram],
    {
      // One pool of memory for all threads: see docs/performance.md.
      MALLOC_ARENA_MAX: '1',
      ...process.env,
      GATEWAY_UPSTREAM: process.env.GATEWAY_UPSTREAM || (apiReady.address ?? ''),
      GATEWAY_POLICIES: process.env.GATEWAY_POLICIES || 'policies.yaml',
    },
  );
  services.push(gateway);
  const gatewayReady = await Promise.race([gateway.ready, api.ended, signalled]);
  // Last, so that it stands at the end of what the operator sees, and its calls work at that moment. It is told
  // even when the gateway failed: the credentials exist by now, and nobody else knows them.
  if (apiReady.notice !== undefined) console.log(`\n${apiReady.notice}`);

  const outcome =
    gatewayReady === 'signalled'
      ? 'signalled'
      : await Promise.race([signalled, gateway.ended.then(() => gateway), api.ended.then(() => api)]);
  if (outcome !== 'signalled') console.error(`The ${outcome.name} ended; stopping the rest`);
  await stop(gateway);
  await stop(api);
  return outcome === 'signalled' ? 0 : 1;
}

process.exit(await run());
