/**
 * `--target`: load on a deployment of your own, bounded in requests and in time, and what came back. It tells a
 * gateway's refusals from the application's, and counts every request that got no answer.
 */
import autocannon from 'autocannon';
import type { TargetOptions } from './options.ts';
import { quantile } from './statistics.ts';

const QUANTILES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1];

export async function loadTarget(options: TargetOptions): Promise<void> {
  const { url, method, headers, body, connections, seconds, requests, rate } = options;
  const pace = rate === null ? '' : `, ${rate} a second`;
  process.stdout.write(
    `${method} ${url.href}: at most ${requests} requests in ${seconds} seconds over ${connections} connections${pace}\n`,
  );
  const statuses = new Map<number, number>();
  const latenciesMs: number[] = [];
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: url.href,
        method: method as NonNullable<autocannon.Request['method']>,
        headers: { ...headers },
        ...(body === '' ? {} : { body }),
        connections: Math.min(connections, requests),
        amount: requests,
        ...(rate === null ? {} : { overallRate: rate }),
      },
      (error, done) => {
        clearTimeout(timer);
        if (error === null) resolve(done);
        else reject(error as Error);
      },
    );
    // An amount of requests knows no end in time of its own.
    const timer = setTimeout(() => instance.stop(), seconds * 1000);
    process.once('SIGINT', () => instance.stop());
    instance.on('response', (_client, statusCode, _bytes, responseTimeMs) => {
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
      latenciesMs.push(responseTimeMs);
    });
  });
  report(result, statuses, latenciesMs);
}

function report(
  result: autocannon.Result,
  statuses: ReadonlyMap<number, number>,
  latenciesMs: readonly number[],
): void {
  const answered = latenciesMs.length;
  const line = (name: string, value: string): void =>
    void process.stdout.write(`${name.padEnd(24)}${value}\n`);
  line(
    'answered',
    `${answered} in ${result.duration.toFixed(2)} s, ${(answered / result.duration).toFixed(1)} a second`,
  );
  for (const [status, count] of [...statuses].sort(([a], [b]) => a - b)) {
    line(`status ${status}`, `${count} (${((100 * count) / answered).toFixed(2)} %)`);
  }
  line('refused with 429', `${((100 * (statuses.get(429) ?? 0)) / Math.max(1, answered)).toFixed(2)} %`);
  line('broken, without answer', `${result.errors} (${result.timeouts} of them timed out)`);
  for (const q of QUANTILES) {
    line(
      q === 1 ? 'slowest' : `p${q * 100}`,
      answered === 0 ? '-' : `${quantile(latenciesMs, q).toFixed(2)} ms`,
    );
  }
}
