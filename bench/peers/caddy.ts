/** Caddy as a proxy alone. Debian's Caddy has no rate limit, so it counts nothing. */
import type { Peer } from './peer.ts';

export const CADDY_PLAIN: Peer = {
  name: 'caddy-plain',
  label: 'Caddy, no limit',
  needs: ['caddy'],
  start({ processes, port, upstreamPort }) {
    const file = processes.file(
      `Caddyfile-${port}`,
      `{
  admin off
  auto_https off
}
http://:${port} {
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
    );
    const { folder } = processes;
    // Use one core, like the other peers.
    const env = { GOMAXPROCS: '1', XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    return processes.start(['caddy', 'run', '--config', file, '--adapter', 'caddyfile'], port, { env });
  },
};
