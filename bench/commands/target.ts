/** `npm run bench -- target URL`: sends load to a deployment of your own, limited in requests and in time. */
import autocannon from 'autocannon';
import { command, UsageError, whole } from '#bench/command.ts';
import { quantile } from '#bench/run/statistics.ts';

const QUANTILES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new UsageError(`--header is "${line}"; it must be 'Name: value'`);
    headers[name] = value;
  }
  return headers;
}

async function send(options: autocannon.Options, seconds: number): Promise<string> {
  const statuses = new Map<number, number>();
  const latenciesMs: number[] = [];
  // With a number of requests, autocannon has no time limit of its own.
  const ended = Promise.withResolvers<autocannon.Result>();
  const running = autocannon(options, (error, result) =>
    error === null ? ended.resolve(result) : ended.reject(error as Error),
  );
  const timer = setTimeout(() => running.stop(), seconds * 1000);
  running.on('response', (_client, status, _bytes, responseTimeMs) => {
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    latenciesMs.push(responseTimeMs);
  });
  const { duration, errors, timeouts } = await ended.promise;
  clearTimeout(timer);
  const replies = latenciesMs.length;
  const share = (count: number): string => `${((100 * count) / Math.max(1, replies)).toFixed(2)} %`;
  const latency = (q: number): string => (replies === 0 ? '-' : `${quantile(latenciesMs, q).toFixed(2)} ms`);
  return [
    ['replies', `${replies} in ${duration.toFixed(2)} s, ${(replies / duration).toFixed(1)} a second`],
    ...[...statuses].sort().map(([status, count]) => [`status ${status}`, `${count} (${share(count)})`]),
    ['refused with 429', share(statuses.get(429) ?? 0)],
    ['without a reply', `${errors} (${timeouts} of them timed out)`],
    ...QUANTILES.map((q) => [`p${q * 100}`, latency(q)]),
    ['slowest', latency(1)],
  ]
    .map(([name = '', value]) => `${name.padEnd(24)}${value}\n`)
    .join('');
}

export const TARGET = command({
  command: 'target <url>',
  describe: 'Sends load to a deployment of your own, and nobody else’s',
  builder: (program) =>
    program
      .positional('url', { type: 'string', demandOption: true, describe: 'The address and the path' })
      .options({
        method: { type: 'string', describe: 'Default: GET, or POST with a body' },
        header: {
          type: 'string',
          array: true,
          default: [] as string[],
          describe: "'Name: value', repeatable",
        },
        body: { type: 'string', default: '', describe: 'Text of each request' },
        connections: whole('connections', 1, 1000, 10, 'Connections'),
        duration: whole('duration', 1, 600, 10, 'Seconds'),
        requests: whole('requests', 1, 1_000_000, 10_000, 'Requests after which it stops'),
        rate: whole('rate', 0, 100_000, 0, 'Requests a second; 0: as many as the connections can send'),
      }),
  async run(_, { url, method, header, body, connections, duration, requests, rate }) {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw new UsageError(`the URL is "${url}"; it must be an address such as http://localhost:8080/health`);
    const text = await send(
      {
        ...{
          url,
          headers: headersOf(header),
          connections: Math.min(connections, requests),
          amount: requests,
        },
        method: (method ?? (body === '' ? 'GET' : 'POST')) as NonNullable<autocannon.Options['method']>,
        ...(body === '' ? {} : { body }),
        ...(rate === 0 ? {} : { overallRate: rate }),
      },
      duration,
    );
    process.stdout.write(text);
    return true;
  },
});
