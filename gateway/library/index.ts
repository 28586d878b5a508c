/**
 * The policy file inside another program: the same decisions, the same counters, no proxy in between. What this file
 * exports is the package's interface, and stays as it is within a major version.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { loadPolicies as load } from '#gateway/policy/load.ts';
import type { PolicySet } from '#gateway/policy/policy.ts';
import { type InnerGateway, openGateway } from './inner-gateway.ts';
import { type LibraryLog, readSettings } from './settings.ts';

export type { PolicySet } from '#gateway/policy/policy.ts';
export { PolicyFileError } from '#gateway/policy/problems.ts';
export { ConfigError } from '#shared/configuration.ts';
export { createFastifyPlugin } from './fastify-plugin.ts';
export type { InnerGateway as Gateway, Middleware } from './inner-gateway.ts';
export type { LibraryLog } from './settings.ts';

export interface CreateGatewayOptions {
  readonly policies: PolicySet;
  /**
   * Settings by the names that the gateway reads from its environment; `process.env` will do. Those that matter here:
   * GATEWAY_REDIS_URL, GATEWAY_IDENTITY_SECRET, GATEWAY_TRUSTED_PROXIES, GATEWAY_UPSTREAM_TIMEOUT_MS.
   * Without a GATEWAY_REDIS_URL counters are in the memory of this process.
   */
  readonly settings?: Readonly<Record<string, string | undefined>>;
  /** Where to tell that the store is away, and back; pino's loggers are such. Default: nowhere. */
  readonly log?: LibraryLog;
}

/**
 * @param text of a policy file
 * @param file its name, for messages, and for the folder of files that it names
 * @throws PolicyFileError with every mistake: line, column and how to fix it
 */
export function loadPolicies(text: string, file = 'policies.yaml'): PolicySet {
  return load(text, file);
}

/**
 * Opens the counters. Close the result when the program ends.
 *
 * @throws ConfigError that lists every setting that is wrong
 */
export async function createGateway(options: CreateGatewayOptions): Promise<InnerGateway> {
  const { policies, settings = {}, log = SILENT } = options;
  return openGateway({
    policies,
    settings: readSettings(settings),
    log,
    clock: () => performance.timeOrigin + performance.now(),
    wallClock: Date.now,
    newSecret: () => randomBytes(32).toString('base64url'),
    replica: `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`,
  });
}

const SILENT: LibraryLog = { warn: () => undefined, info: () => undefined };
