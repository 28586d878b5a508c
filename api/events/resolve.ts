/**
 * Names to addresses. The only file that knows the system's resolvers.
 *
 * Strangers' names go to the DNS directly (c-ares), which occupies no thread: a name server that never answers would
 * otherwise keep the few threads busy that files and passwords need. Hosts that the operator named are looked up the way
 * every other program of this machine does it, so that names of its hosts file count.
 */
import { promises as dns, Resolver } from 'node:dns';
import type { Millis } from '#shared/clock.ts';
import type { Resolve } from './targets.ts';

/** One try, within the time that a check has. */
const TIMEOUT: Millis = 2_500;

/** @param servers addresses of name servers; by default those of this machine */
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
