/** What each client does with the demo application, and what it has to report of each step. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type Neighbour, outputOf, startNeighbour } from '#test/support/neighbour.ts';
import { projectRoot } from '#test/support/process.ts';

/** Uploads have this many bytes `u`, so they do not fit into one read. */
export const UPLOAD_BYTES = 200_000;

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);
const uploaded = digest('u'.repeat(UPLOAD_BYTES));
/** Clients report of a download how many bytes came, and the last three of them. */
const downloaded = '200 300000 jkl';

/** The report of each step: the status, and what the step is about. */
export const REPORTS = {
  get: '200 GET /echo?q=1',
  encoded: '200 GET /echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y',
  redirect: '200 the folder',
  'redirect 307': `200 PUT length ${UPLOAD_BYTES} ${uploaded}`,
  cookies: '200 a=1; b=2',
  upload: `200 POST length ${UPLOAD_BYTES} ${uploaded}`,
  'upload chunked': `200 POST chunked ${UPLOAD_BYTES} ${uploaded}`,
  expect: `200 POST length ${UPLOAD_BYTES} ${uploaded}`,
  'download length': downloaded,
  'download chunked': downloaded,
  head: '200 300000 0',
  'no content': '204 0',
  'not modified': '304 "version-1" 0',
  range: '206 bytes 5-9/26 fghij',
  gzip: '200 compressed text',
  refused: '413 too large',
  busy: '429 7 busy',
  'keep-alive': '3 requests, 1 connection',
  events: 'one two three',
  websocket: 'echo of hello',
} as const satisfies Record<string, string>;

export type Step = keyof typeof REPORTS;

/** Returns the path of a file of this folder. */
export function clientFile(name: string): string {
  return join(projectRoot, 'test/support/clients', name);
}

/** Starts the demo application and the gateway in front of it. */
export function startDemo(t: Test): Promise<Neighbour> {
  const program = clientFile('demo-application.ts');
  return startNeighbour(t, { command: (port) => [process.execPath, program, String(port)] });
}

type Reports = Readonly<Partial<Record<Step, string>>>;

/** Returns the reports of a client that cannot take some of the steps. @param own where it does something else */
export function reportsWithout(steps: readonly Step[], own: Reports = {}): Reports {
  const all: Partial<Record<Step, string>> = { ...REPORTS, ...own };
  for (const step of steps) delete all[step];
  return all;
}

/**
 * Lets a client take its steps directly, and then through the gateway. The reports have to be the same both times.
 *
 * @param run takes all steps at an origin @returns the report of each
 */
export async function takeSteps(
  t: Test,
  demo: Neighbour,
  wanted: Reports,
  run: (origin: string) => Promise<unknown>,
): Promise<void> {
  const [directly, through] = demo.ways;
  t.strictSame(await run(directly.origin), wanted, directly.name);
  t.strictSame(await run(through.origin), wanted, through.name);
  const metrics = await (await fetch(`${demo.gateway.admin}/metrics`)).text();
  const [, counted = '0'] =
    /^floodgate_policy_decisions_total\{[^}]*policy="all"[^}]*decision="allowed"[^}]*\} (\d+)$/m.exec(
      metrics,
    ) ?? [];
  t.ok(Number(counted) >= Object.keys(wanted).length, `${counted} requests were counted`);
}

/** Runs a program that takes the steps at an origin and prints the reports as one JSON object. */
export async function reportsOf(command: readonly string[], cwd: string): Promise<unknown> {
  return JSON.parse(await outputOf(command, { cwd, env: { HOME: cwd } }));
}
