/**
 * Traefik with its middleware rateLimit. It counts in its own memory, with token buckets, and shares nothing between
 * machines. From version 3.4 on it can also count in Redis, but here it does not.
 */
import { stringify } from 'yaml';
import { type Peer, WINDOW_SECONDS } from './peer.ts';

export const TRAEFIK: Peer = {
  name: 'traefik',
  label: 'Traefik rateLimit',
  needs: ['traefik'],
  start({ processes, port, upstreamPort, limit, limits }) {
    const names = (by: string): string[] => Array.from({ length: limits }, (_, i) => `${by}${i}`);
    const rate = { average: limit, period: `${WINDOW_SECONDS}s`, burst: limit };
    const by = (sourceCriterion: object) => ({ rateLimit: { ...rate, sourceCriterion } });
    const router = { entryPoints: ['public'], service: 'upstream' };
    const http = {
      routers: {
        keyed: {
          ...{ ...router, rule: 'PathPrefix(`/api/`) && HeaderRegexp(`X-Api-Key`, `.+`)' },
          ...{ priority: 3, middlewares: names('key') },
        },
        limited: { ...router, rule: 'PathPrefix(`/api/`)', priority: 2, middlewares: names('address') },
        free: { ...router, rule: 'PathPrefix(`/`)', priority: 1 },
      },
      middlewares: Object.fromEntries([
        ...names('key').map((name) => [name, by({ requestHeaderName: 'X-Api-Key' })]),
        ...names('address').map((name) => [name, by({ ipStrategy: { depth: 0 } })]),
      ]),
      services: {
        upstream: { loadBalancer: { servers: [{ url: `http://127.0.0.1:${upstreamPort}` }] } },
      },
    };
    const routes = processes.file(`traefik-${port}-routes.yaml`, stringify({ http }));
    const file = processes.file(
      `traefik-${port}.yaml`,
      stringify({
        global: { checkNewVersion: false, sendAnonymousUsage: false },
        log: { level: 'ERROR' },
        entryPoints: { public: { address: `127.0.0.1:${port}` } },
        providers: { file: { filename: routes } },
        serversTransport: { maxIdleConnsPerHost: 256 },
      }),
    );
    // Use one core, like the other peers.
    const env = { GOMAXPROCS: '1' };
    return processes.start('traefik', 'traefik', [`--configFile=${file}`], { port, env });
  },
};
