/**
 * Many clients at once, on the API and on the least that a request could cost (floor.ts), visited in turn: on a machine
 * that others use as well, ratios within a round say more than figures.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { usageOf } from '../proc.ts';
import { path } from '../tools.ts';

const CLIENTS = 32;

export interface Target {
  readonly name: string;
  /** With its path. */
  readonly url: string;
  /** JSON; of each request one of these. Empty: GET. */
  readonly bodies: readonly string[];
  readonly pids: readonly number[];
  readonly databasePids: readonly number[];
}

export interface Visit {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of processor time, for a request. */
  readonly servingUs: number;
  readonly databaseUs: number;
}

/** @throws Error when a request is answered with anything but 200: such a figure would be of another job */
export async function visit(target: Target, seconds: number, folder: string): Promise<Visit> {
  const script = join(folder, `${target.name.replaceAll(/\W+/g, '-')}.lua`);
  writeFileSync(script, scriptOf(target));
  const before = [usageOf(target.pids), usageOf(target.databasePids)];
  const found = await wrk(script, target.url, seconds);
  const after = [usageOf(target.pids), usageOf(target.databasePids)];
  if (found.failed > 0) throw new Error(`${target.name}: ${found.failed} requests failed`);
  const spent = (i: number): number => ((after[i]?.cpuUs ?? 0) - (before[i]?.cpuUs ?? 0)) / found.requests;
  return {
    perSecond: found.requests / found.seconds,
    p50Ms: found.p50Ms,
    p99Ms: found.p99Ms,
    servingUs: spent(0),
    databaseUs: spent(1),
  };
}

interface Found {
  readonly requests: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function wrk(script: string, url: string, seconds: number): Promise<Found> {
  const args = ['-t1', `-c${CLIENTS}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url];
  const child = spawn(path('wrk'), args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [out] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const found = /^RESULT (.*)$/m.exec(out)?.[1];
  if (found === undefined) throw new Error(`wrk failed: ${out.trim().split('\n').at(-1)}`);
  return JSON.parse(found);
}

function scriptOf({ bodies }: Target): string {
  return `
wrk.method = "${bodies.length === 0 ? 'GET' : 'POST'}"
wrk.headers["Content-Type"] = ${bodies.length === 0 ? 'nil' : '"application/json"'}
local bodies = { ${bodies.map((body) => `[==[${body}]==]`).join(', ')} }
local requests = {}
function init()
  math.randomseed(os.time())
  for i, body in ipairs(bodies) do requests[i] = wrk.format(nil, nil, nil, body) end
  if #requests == 0 then requests[1] = wrk.format() end
end
function request() return requests[math.random(#requests)] end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"failed":%d,"p50Ms":%.3f,"p99Ms":%.3f}\\n',
    summary.requests, summary.duration / 1e6, e.status + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
`;
}
