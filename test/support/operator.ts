/** Starts a gateway with its admin listener, and runs the command line against it. */
import { floodgateCommand } from './cli.ts';
import { type Owner, startUpstream } from './gateway.ts';
import { startGatewayProcess } from './gateway-process.ts';
import type { Started } from './process.ts';

export interface Operator {
  readonly process: Started;
  readonly gateway: string;
  readonly admin: string;
  readonly policyFile: string;
  /** Sends this many requests, one after the other, and returns their statuses. */
  send(times: number, path?: string, headers?: Record<string, string>): Promise<number[]>;
  /** Runs `floodgate … --json` against it. */
  ask(...args: string[]): Promise<{ code: number; stderr: string; document: Record<string, unknown> }>;
}

/** Windows that end about once a year, so that none ends within a test. */
export const LONG_POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }] }
policies:
  - { name: items, route: "GET /items", identifier: ip, limit: 3, window: 366d }
  - { name: keys, route: "GET /keys", identifier: api-key, limit: 3, window: 366d }
`;

export async function startOperator(
  t: Owner,
  env: Record<string, string> = {},
  policies = LONG_POLICIES,
): Promise<Operator> {
  const upstream = await startUpstream(t);
  const process = await startGatewayProcess(t, { GATEWAY_UPSTREAM: upstream.origin, ...env }, policies);
  const { origin: gateway, admin } = process;
  return {
    ...{ process, gateway, admin, policyFile: process.env.GATEWAY_POLICIES ?? '' },
    async send(times, path = '/items', headers = {}) {
      const statuses: number[] = [];
      for (let i = 0; i < times; i++) {
        const response = await fetch(gateway + path, { headers });
        await response.arrayBuffer();
        statuses.push(response.status);
      }
      return statuses;
    },
    async ask(...args) {
      const { code, stdout, stderr } = await floodgateCommand([...args, '--json', '--gateway', admin]);
      return { code, stderr, document: stdout === '' ? {} : JSON.parse(stdout) };
    },
  };
}
