/** Clients and upstreams on raw sockets, so that no library hides or repairs bytes. */
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Socket } from 'node:net';
import type { Owner } from '#test/support/gateway.ts';
import { type Kind, type SocketServer, startSockets } from '#test/support/kinds.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Sent extends RequestOptions {
  readonly body?: Buffer | string | undefined;
  /** Size of the pieces. Without a Content-Length the body is chunked. */
  readonly pieces?: number;
}

/** Sends one request on a connection of its own, unless an agent is given. Resolves with the whole answer. */
export function send(port: number, path: string, { body, pieces, ...options }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, path, agent: new Agent(), ...options });
    req.on('error', reject);
    req.on('response', (res) => read(res).then(resolve, reject));
    if (body === undefined || pieces === undefined) {
      req.end(body);
      return;
    }
    const bytes = Buffer.from(body);
    for (let at = 0; at < bytes.length; at += pieces) req.write(bytes.subarray(at, at + pieces));
    req.end();
  });
}

/** Rejects when the connection breaks before the end. */
export async function read(res: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  const { statusCode = 0, headers, rawHeaders } = res;
  return { status: statusCode, headers, rawHeaders, body: Buffer.concat(chunks) };
}

/** Starts an upstream that answers with given bytes. `text` is everything that the connection received, in latin1. */
export function startRawUpstream(
  owner: Owner,
  onData: (socket: Socket, text: string) => void,
  kind: Kind = 'http',
): Promise<SocketServer> {
  return startSockets(owner, kind, (socket) => {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      onData(socket, text);
    });
  });
}

/** Returns the values of one header, in order. */
export function values(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name.toLowerCase());
}
