/**
 * Checks that each row of the edge table admits exactly its limit under parallel load. Beyond it the gateway sends its
 * own 429.
 */
import type { Test } from 'tap';
import { EDGE_TABLE, type EdgeRow, examplePath } from './edge-table.ts';
import type { Owner } from './gateway.ts';
import { keptConnections, sendOver } from './http-send.ts';
import { inOneWindow } from './window.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

export type Send = (
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
) => Promise<Reply>;

/** Returns a function that sends over connections that are closed with the test. */
export function sender(owner: Owner): Send {
  const agent = keptConnections(16);
  owner.teardown(() => agent.destroy());
  return async (port, method, path, headers) => {
    const body = method === 'GET' ? null : '{}';
    const reply = await sendOver(agent, `http://127.0.0.1:${port}`, { method, path, headers, body });
    return { status: reply.status, headers: reply.headers, body: reply.text };
  };
}

let caller = 0;
/**
 * Returns the headers of a new client: its own address (the tests are a trusted proxy) and, if a row counts keys, a
 * key.
 */
export function newCaller(row: EdgeRow): Record<string, string> {
  caller++;
  const headers = {
    'x-forwarded-for': `198.51.${caller >> 8}.${caller & 255}`,
    'content-type': 'application/json',
  };
  return row.identifier === 'api-key' ? { ...headers, 'x-api-key': `fbk_caller_${caller}` } : headers;
}

/** Sends more than twice the limit at once, spread over the gateways. */
async function admitsExactly(t: Test, send: Send, row: EdgeRow, ports: readonly number[]): Promise<void> {
  const method = row.methods.at(-1) ?? 'GET';
  const path = examplePath(row);
  const asked = row.limit * 2 + 7;
  const replies = await inOneWindow(row.windowSeconds * 1000, () => {
    const headers = newCaller(row);
    return Promise.all(
      Array.from({ length: asked }, (_, i) => send(ports[i % ports.length] ?? 0, method, path, headers)),
    );
  });
  const admitted = replies.filter(({ status }) => status === 200);
  const denied = replies.filter(({ status }) => status === 429);
  t.equal(admitted.length, row.limit, `${asked} requests, limit ${row.limit}`);
  t.equal(denied.length, asked - row.limit, 'all others get 429');
  t.equal(
    new Set(admitted.map(({ headers }) => headers['x-ratelimit-remaining'])).size,
    row.limit,
    'each reply has another remaining count',
  );
  for (const { headers, body } of denied) {
    const retryAfter = Number(headers['retry-after']);
    if (
      headers['x-gateway-ratelimited'] === undefined ||
      !(retryAfter >= 1 && retryAfter <= row.windowSeconds) ||
      body.includes('too_many_requests') ||
      typeof JSON.parse(body).message !== 'string'
    ) {
      t.fail('a 429 without its marks', { headers, body });
    }
  }
}

/** @param ports of gateways that trust this machine as a proxy; requests are spread over them */
export function everyRow(t: Test, ports: readonly number[], afterRow = async (): Promise<void> => {}): void {
  const send = sender(t);
  t.equal(EDGE_TABLE.length, 17);
  for (const row of EDGE_TABLE) {
    t.test(`${row.methods.join()} ${row.path}: exactly ${row.limit}`, async (t) => {
      await admitsExactly(t, send, row, ports);
      await afterRow();
    });
  }
}
