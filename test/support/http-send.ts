/** Sends requests to servers on this machine, without redirects, and reads whole replies. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Send } from './world.ts';

export interface Http {
  readonly send: Send;
  close(): Promise<void>;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Buffer | null | undefined;
}

/** @param connections maximum number of concurrent requests to one server; more wait */
export function keptConnections(connections: number): Agent {
  return new Agent({ keepAlive: true, maxSockets: connections });
}

export function sendOver(
  agent: Agent,
  origin: string,
  { method, path, headers = {}, body = null }: Sent,
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  const { hostname, port } = new URL(origin);
  // node:http adds no length to some methods.
  const length = body === null ? {} : { 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    request({ agent, hostname, port, method, path, headers: { ...length, ...headers } })
      .on('error', reject)
      .on('response', (res) => {
        const { statusCode = 0, headers } = res;
        text(res).then((text) => resolve({ status: statusCode, headers, text }), reject);
      })
      .end(body ?? undefined);
  });
}

/** @param connections maximum number of concurrent requests; more wait */
export function openHttp(origin: string, connections = 4): Http {
  const agent = keptConnections(connections);
  return {
    send: ({ url, ...sent }) => sendOver(agent, origin, { ...sent, path: url }),
    async close() {
      agent.destroy();
    },
  };
}
