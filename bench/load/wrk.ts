/** wrk: one thread of C, so that the load takes as little as possible from the core it shares. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONNECTIONS, type Scenario } from '../scenarios.ts';
import { path } from '../tools.ts';
import { bodyOf, type Driver, keyOf, type LoadResult } from './load.ts';

export function wrk(directory: string): Driver {
  return async (port, scenario, seconds) => {
    const script = join(directory, `${scenario.name}.lua`);
    writeFileSync(script, scriptOf(scenario));
    const url = `http://127.0.0.1:${port}${scenario.path}`;
    const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url];
    const child = spawn(path('wrk'), args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      out += chunk;
    });
    await once(child, 'exit');
    const found = /^RESULT (.*)$/m.exec(out)?.[1];
    if (found === undefined) throw new Error(`wrk failed: ${out.trim().split('\n').at(-1)}`);
    return JSON.parse(found) as LoadResult;
  };
}

function scriptOf(scenario: Scenario): string {
  const headers = scenario.bodyBytes > 0 ? '["Content-Type"] = "application/json"' : '';
  return `
wrk.method = "${scenario.method}"
wrk.headers = { ${headers} }
${scenario.bodyBytes > 0 ? `wrk.body = '${bodyOf(scenario)}'` : ''}
${scenario.keys > 0 ? MANY_KEYS(scenario.keys) : ''}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"refused":%d,"errors":%d,"p50Ms":%.3f,"p99Ms":%.3f}\\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
`;
}

/** All requests are written beforehand: formatting them under way would be the load's cost, not the target's. */
const MANY_KEYS = (keys: number): string => `
local prefix, digits = "${keyOf(0).slice(0, -22)}", "%022d"
local requests = {}
function init()
  math.randomseed(os.time())
  wrk.headers["Host"] = wrk.host .. ":" .. wrk.port
  for i = 1, ${keys} do
    wrk.headers["x-api-key"] = prefix .. string.format(digits, i)
    requests[i] = wrk.format()
  end
end
function request() return requests[math.random(${keys})] end
`;
