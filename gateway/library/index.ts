/**
 * The library: applies a policy file inside another program, without a proxy. The exports of this file are the
 * package's public interface and stay compatible within a major version.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import { loadPolicies as load } from '#gateway/policy/file/load.ts';
import { countsBody } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { type InnerGateway, openGateway } from './inner-gateway.ts';
import { type LibraryLog, readSettings } from './settings.ts';

export type { PolicySet } from '#gateway/policy/policy-set.ts';
export { PolicyFileError } from '#gateway/policy/problems.ts';
export { ConfigError } from '#shared/configuration.ts';
export { createFastifyPlugin } from './fastify-plugin.ts';
export type { InnerGateway as Gateway, Middleware } from './inner-gateway.ts';
export type { LibraryLog } from './settings.ts';

export interface CreateGatewayOptions {
  readonly policies: PolicySet;
  /**
   * Settings by the names of the gateway's environment variables; `process.env` will do. The library reads
   * GATEWAY_REDIS_URL, GATEWAY_IDENTITY_SECRET, GATEWAY_TRUSTED_PROXIES and GATEWAY_UPSTREAM_TIMEOUT_MS. Without
   * GATEWAY_REDIS_URL, counters are in the memory of this process.
   */
  readonly settings?: Readonly<Record<string, string | undefined>>;
  /** Logs when the store becomes unavailable or available, such as a pino logger. Default: no messages. */
  readonly log?: LibraryLog;
}

/**
 * @param text of a policy file
 * @param file its name, for messages and to find the files that it names
 * @throws PolicyFileError with all mistakes: line, column and how to fix them
 */
export function loadPolicies(text: string, file = 'policies.yaml'): PolicySet {
  const set = load(text, file);
  const problems = set.policies.flatMap((policy) => {
    const { name, line, cost } = policy;
    const why = countsBody(policy)
      ? 'counts a field of bodies, which the library does not read'
      : cost.kind === 'reply-bytes'
        ? 'counts the bytes of replies, which the library does not see'
        : null;
    if (why === null) return [];
    return [{ line, column: 1, message: `${name} ${why}`, fix: 'remove it, or use it in a gateway' }];
  });
  if (problems.length > 0) throw new PolicyFileError(set.file, problems);
  return set;
}

/**
 * Opens the counters. Close the result when the program ends.
 *
 * @throws ConfigError with all wrong settings
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
    randomInt: (end) => randomInt(end),
    replica: `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`,
  });
}

const SILENT: LibraryLog = { warn: () => undefined, info: () => undefined };
