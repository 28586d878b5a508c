/** Upstreams of both kinds: `http:`, and `https:` with a certificate that this process trusts during the test. */
import { readFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type Socket } from 'node:net';
import {
  createServer as createTls,
  getCACertificates,
  setDefaultCACertificates,
  type TlsOptions,
} from 'node:tls';
import { createAuthority } from './certificates.ts';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';

export const KINDS = ['http', 'https'] as const;
export type Kind = (typeof KINDS)[number];

/** Issues a certificate that this process trusts until the test is over. */
export function trusted(
  owner: Owner,
  names = 'DNS:localhost,IP:127.0.0.1',
  daysLeft?: number,
): { cert: Buffer; key: Buffer } {
  const authority = createAuthority(owner);
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, readFileSync(authority.ca, 'utf8')]);
  owner.teardown(() => setDefaultCACertificates(before));
  const { cert, key } = authority.issue('upstream', names, daysLeft);
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

export interface SocketServer {
  readonly origin: string;
  readonly port: number;
  /** All connections so far. */
  readonly sockets: readonly Socket[];
}

/** Starts a server of bare connections. They are closed with the test. @param tls only for `https` */
export async function startSockets(
  owner: Owner,
  kind: Kind,
  serve: (socket: Socket) => void,
  tls: TlsOptions = kind === 'https' ? trusted(owner) : {},
): Promise<SocketServer> {
  const sockets: Socket[] = [];
  const onSocket = (socket: Socket): void => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    serve(socket);
  };
  const server = kind === 'http' ? createTcp(onSocket) : createTls(tls, onSocket);
  const port = await listen(owner, server);
  return { origin: `${kind}://127.0.0.1:${port}`, port, sockets };
}

/** Starts an HTTP server. Its connections are closed with the test. */
export async function startApplication(
  owner: Owner,
  kind: Kind,
  listener: RequestListener,
): Promise<{ origin: string; server: Server }> {
  const server = kind === 'http' ? createHttp(listener) : createHttps(trusted(owner), listener);
  return { origin: `${kind}://127.0.0.1:${await listen(owner, server)}`, server };
}

/** Breaks off a connection as rudely as Node can. It cannot reset TLS. */
export function breakOff(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}
