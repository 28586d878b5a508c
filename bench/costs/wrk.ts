/** Sends load with wrk. Its single thread, written in C, takes little CPU time from the server on the same machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Processes } from '#bench/run/processes.ts';
import { PATH } from '#bench/run/programs.ts';
import type { Scenario } from './scenarios.ts';

/** Those with a status other than 2xx and 3xx are refused. A broken connection is an error too. */
type LoadResult = Readonly<Record<'requests' | 'seconds' | 'refused' | 'errors' | 'p50Ms' | 'p99Ms', number>>;

export async function wrk(
  scenario: Scenario,
  origin: string,
  seconds: number,
  processes: Processes,
): Promise<LoadResult> {
  const script = processes.file(`${scenario.name.replaceAll(/\W+/g, '-')}.lua`, scriptOf(scenario));
  const args = ['-t1', `-c${scenario.connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script];
  const { stdout } = await promisify(execFile)('wrk', [...args, `${origin}${scenario.path}`], {
    env: { PATH },
  });
  const found = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (found === undefined) throw new Error(`wrk failed: ${stdout.trim().split('\n').at(-1)}`);
  return JSON.parse(found);
}

/** Returns a script for wrk. It creates all requests in advance, because that takes CPU time from the server. */
function scriptOf({ method, bodyBytes, keys, firstKey, pauseMs = 0 }: Scenario): string {
  return `
wrk.method = "${method}"
${bodyBytes > 0 ? `wrk.headers["Content-Type"] = "application/json"\nwrk.body = '{"data":"${'x'.repeat(bodyBytes - 11)}"}'` : ''}
local requests, at = {}, ${firstKey ?? 0}
function init()
  math.randomseed(os.time())
  wrk.headers["Host"] = wrk.host .. ":" .. wrk.port
  for i = 1, ${keys} do
    wrk.headers["x-api-key"] = string.format("fbk_bench_%022d", i)
    requests[i] = wrk.format(nil, (wrk.path:gsub("KEY", i)))
  end
end
${keys > 0 ? `function request() at = ${firstKey === undefined ? 'math.random(#requests)' : 'at % #requests + 1'} return requests[at] end` : ''}
${pauseMs > 0 ? `function delay() return math.random(0, ${2 * pauseMs}) end` : ''}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"refused":%d,"errors":%d,"p50Ms":%.3f,"p99Ms":%.3f}\\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
`;
}
