/** Starts a real redis-server that accepts TLS only. */
import type { Authority } from './certificates.ts';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { endRedis, launchRedis, memoryOnly } from './redis-process.ts';

/** @param authClients whether a client must show a certificate of the same authority */
export async function startTlsRedis(
  owner: Owner,
  authority: Authority,
  { authClients, names }: { readonly authClients: boolean; readonly names: string },
): Promise<{ readonly port: number }> {
  const port = await freePort();
  const { cert, key } = authority.issue('server', names);
  const child = await launchRedis([
    ...memoryOnly(0),
    ...['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key],
    ...['--tls-ca-cert-file', authority.ca, '--tls-auth-clients', authClients ? 'yes' : 'no'],
  ]);
  owner.teardown(() => endRedis(child));
  return { port };
}
