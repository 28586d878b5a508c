import type { ListenOptions } from 'node:net';
import type { FastifyListenOptions } from 'fastify';
import { ListenError, LOOPBACK } from '#gateway/listen/listener.ts';
import { optionalPart } from '#gateway/part/part.ts';
import type { AdminGateway } from './context.ts';

export interface OperatedGateway extends AdminGateway {
  /** Whether another gateway may listen on the same port. */
  readonly reusePort: boolean;
}

export const admin = optionalPart({
  variables: [
    {
      name: 'GATEWAY_ADMIN_PORT',
      default: '9090',
      meaning: 'TCP port of the [admin listener](operating.md#health-and-metrics)',
    },
    { name: 'GATEWAY_ADMIN_HOST', default: '127.0.0.1', meaning: 'address of the admin listener' },
    {
      name: 'GATEWAY_ADMIN_TOKEN',
      meaning: 'Bearer token that the admin listener requires; unset: the admin API works on loopback only',
    },
  ],
  read(read, { ports }) {
    const port = read.integer('GATEWAY_ADMIN_PORT', 0, 65_535);
    ports.add(port);
    const host = read.text('GATEWAY_ADMIN_HOST');
    const token = read.parse('GATEWAY_ADMIN_TOKEN', null, adminToken);
    return { operate: (gateway: OperatedGateway) => openAdmin(host, port, token, gateway) };
  },
});

async function openAdmin(host: string, port: number, token: string | null, gateway: OperatedGateway) {
  // Workers do not need the admin listener.
  const { buildAdmin } = await import('./admin.ts');
  const isLoopback = LOOPBACK.test(host);
  const app = buildAdmin({ ...gateway, token, isLoopback });
  // Fastify passes `reusePort` on to node:net, but its types lack it.
  const options: FastifyListenOptions & Pick<ListenOptions, 'reusePort'> = {
    host,
    port,
    reusePort: gateway.reusePort,
  };
  const address = await app.listen(options).catch((cause) => {
    throw new ListenError('GATEWAY_ADMIN_PORT', 'GATEWAY_ADMIN_HOST', cause);
  });
  if (token === null && !isLoopback) {
    gateway.log.warn(
      { host },
      'anyone who reaches GATEWAY_ADMIN_HOST can read the metrics; set GATEWAY_ADMIN_TOKEN',
    );
  }
  return { ready: `admin on ${address}`, close: () => app.close() };
}

function adminToken(value: string): string | null {
  // A header field carries no other characters unchanged, so no client could send it.
  if (!/^[ -~]*$/.test(value)) throw new Error('it must consist of ASCII characters');
  return value || null;
}
