/** Reads lists of hosts, and routes that are limited to some hosts. */
import { HostNames } from '#gateway/policy/host-names.ts';
import { type Report, readEach } from '#gateway/policy/problems.ts';
import { type HostRoute, parseRoute } from '#gateway/policy/route.ts';

/** Reports mistakes by the number of the entry. */
export function readHosts(texts: readonly string[], report: Report): HostNames {
  const names = new HostNames();
  readEach(texts, report, (text) => names.add(text));
  return names;
}

/**
 * @param report reports mistakes of the hosts
 * @throws Mistake if the route is wrong
 */
export function parseHostRoute(
  text: string,
  hosts: readonly string[] | undefined,
  ignoreCase: boolean | undefined,
  report: Report,
): HostRoute {
  const route = parseRoute(text, ignoreCase);
  if (hosts === undefined) return { ...route, hosts: null };
  return { ...route, text: `${route.text} for ${hosts.join(', ')}`, hosts: readHosts(hosts, report) };
}
