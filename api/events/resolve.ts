/**
 * Resolves host names. Only this file uses the resolvers of the system.
 *
 * Host names of users are resolved by DNS (c-ares), which needs no thread. Otherwise a name server that never answers
 * would occupy the few threads that files and passwords need. Host names of the operator are resolved like in all other
 * programs, so that the hosts file of the machine counts.
 */
import { promises as dns, Resolver } from 'node:dns';
import type { Millis } from '#shared/clock.ts';
import type { Resolve } from './targets.ts';

/** Timeout of one query, shorter than that of a check. */
const TIMEOUT: Millis = 2_500;

/** @param servers addresses of name servers; null for those of this machine */
export function createResolve(servers: readonly string[] | null = null): Resolve {
  return async (hostname, isOperators) => {
    if (isOperators) return (await dns.lookup(hostname, { all: true })).map(({ address }) => address);
    const resolver = new Resolver({ timeout: TIMEOUT, tries: 1 });
    if (servers !== null) resolver.setServers(servers);
    const ask = (method: 'resolve4' | 'resolve6'): Promise<readonly string[]> =>
      new Promise((resolve, reject) => {
        resolver[method](hostname, (error, addresses) => (error ? reject(error) : resolve(addresses)));
      });
    const answers = await Promise.allSettled([ask('resolve4'), ask('resolve6')]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}
