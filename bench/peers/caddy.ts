/**
 * Caddy with the module rate_limit. It counts in its own memory, and keeps the time of each request in a sliding
 * window. The module can share its counts between machines through a common storage, but here it does not.
 * `caddy-plain` has no such module and counts nothing. It shows the cost of Caddy as a proxy alone.
 *
 * For each key, a limit of N takes memory for N times. So a limit that must not be reached is only as high as
 * necessary.
 */
import type { Started } from '#bench/run/processes.ts';
import { HIGH_LIMIT, type Launch, type Peer, WINDOW_SECONDS } from './peer.ts';

/** More requests than one core can answer in a window. The limit of a key is twice its even share of them. */
const EVENTS_IN_ALL = 6_000_000;

function startCaddy({ processes, port, upstreamPort }: Launch, limits: string): Promise<Started> {
  const file = processes.file(
    `Caddyfile-${port}`,
    `{
  admin off
  auto_https off
}
http://:${port} {
  bind 127.0.0.1
  route /api/* {
    ${limits}
    reverse_proxy 127.0.0.1:${upstreamPort}
  }
  reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
  );
  const { directory } = processes;
  return processes.start('caddy', 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], {
    port,
    // Use one core, like the other peers.
    env: { GOMAXPROCS: '1', XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
  });
}

function zones({ limit, limits, keys }: Launch): string {
  const events = limit === HIGH_LIMIT ? Math.ceil((2 * EVENTS_IN_ALL) / (keys + 1)) : limit;
  const zone = (matcher: string, name: string, key: string): string =>
    `rate_limit ${matcher} {
      zone ${name} {
        key ${key}
        events ${events}
        window ${WINDOW_SECONDS}s
      }
    }`;
  const both = Array.from({ length: limits }, (_, i) => [
    zone('@keyed', `keys${i}`, '{http.request.header.X-Api-Key}'),
    zone('@others', `addresses${i}`, '{http.request.remote.host}'),
  ]);
  return `@keyed header X-Api-Key *
    @others not header X-Api-Key *
    ${both.flat().join('\n    ')}`;
}

export const CADDY: Peer = {
  name: 'caddy',
  label: 'Caddy + rate_limit',
  needs: ['caddy', 'caddy-ratelimit'],
  start: (launch) => startCaddy(launch, zones(launch)),
};

export const CADDY_PLAIN: Peer = {
  name: 'caddy-plain',
  label: 'Caddy, no limit',
  needs: ['caddy'],
  start: (launch) => startCaddy(launch, ''),
};
