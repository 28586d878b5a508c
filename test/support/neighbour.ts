/**
 * Programs that nobody wrote for this project, before and behind the gateway. An application is started on a free port,
 * and the gateway in front of it with a policy that covers every request. A test takes the same step at both, directly
 * first, and the client has to see the same.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type Sent, send } from '#test/gateway/proxy/exchange.ts';
import { casesUnder } from './arrow-cases.ts';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts';
import { accepts, freePort } from './ports.ts';
import { projectRoot, type Started, startProgram } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

const FOLDER = join(projectRoot, 'test/system/neighbours');

/** Covers everything, so every path is read, matched and counted. Nobody reaches the limit. */
export const COVER_ALL = `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: all, route: "* *", identifier: ip, limit: 1000000, window: 1h }]
`;

/** One of the two ways to the application. */
export interface Way {
  readonly name: 'directly' | 'through the gateway';
  readonly origin: string;
  /** Host and port of the origin. */
  readonly host: string;
  readonly port: number;
}

export interface Neighbour {
  readonly application: Started;
  readonly gateway: GatewayProcess;
  readonly ways: readonly [Way, Way];
  /**
   * Takes the step on both ways. The results have to be equal, where the host of a way counts as the same text.
   *
   * @returns the result without the gateway, for further assertions
   */
  same<T>(t: Test, what: string, step: (way: Way) => Promise<T>): Promise<T>;
}

interface ApplicationOptions {
  /** @param port where it has to listen, on 127.0.0.1 @returns program and arguments */
  readonly command: (port: number) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Environment of the gateway. */
  readonly gatewayEnv?: Readonly<Record<string, string>>;
}

/** Starts an application and the gateway in front of it. Both end with the test. */
export async function startNeighbour(
  t: Test,
  { command, env = {}, cwd = temporaryFolder(t), gatewayEnv = {} }: ApplicationOptions,
): Promise<Neighbour> {
  const port = await freePort();
  const line = command(port);
  const application = startProgram(line, { HOME: cwd, TMPDIR: cwd, LC_ALL: 'C.UTF-8', ...env }, cwd);
  t.teardown(() => application.stop());
  const origin = `http://127.0.0.1:${port}`;
  await until(() => accepts(port), `${line[0]} accepts connections`, application);
  const gateway = await startGatewayProcess(t, { GATEWAY_UPSTREAM: origin, ...gatewayEnv }, COVER_ALL);
  const ways = [wayTo('directly', port), wayTo('through the gateway', gateway.port)] as const;
  return {
    ...{ application, gateway, ways },
    async same(t, what, step) {
      const [directly, through] = ways;
      const result = await step(directly);
      t.strictSame(withoutHost(await step(through), through), withoutHost(result, directly), what);
      return result;
    },
  };
}

function wayTo(name: Way['name'], port: number): Way {
  return { name, origin: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, port };
}

function withoutHost(value: unknown, way: Way): unknown {
  if (typeof value === 'string') return value.replaceAll(way.host, 'HOST');
  if (Array.isArray(value)) return value.map((item) => withoutHost(item, way));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutHost(item, way)]));
}

/** Fields about one connection or moment, and those that the gateway adds. */
const OWN =
  /^(?:connection|keep-alive|transfer-encoding|content-length|date|ratelimit(?:-policy)?|x-ratelimit-.*)$/;

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** Sends one request, with the path byte for byte. @throws Error if the gateway has not counted it */
export async function ask(way: Way, path: string, options: Sent = {}): Promise<Reply> {
  const { status, headers, body } = await send(way.port, path, options);
  if (way.name !== 'directly' && headers['x-ratelimit-limit'] === undefined)
    throw new Error(`${path} was not counted: ${status} ${JSON.stringify(headers)} ${body}`);
  const kept = Object.entries(headers).filter(([name]) => !OWN.test(name));
  return { status, headers: Object.fromEntries(kept), body: body.toString() };
}

/** Asks like a browser, which follows redirects. @returns the replies, of which the last one is no redirect */
export async function follow(way: Way, path: string, options: Sent = {}): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  for (let target = new URL(path, way.origin); replies.length < 5; ) {
    const reply = await ask(way, target.pathname + target.search, options);
    replies.push(reply);
    if (reply.status < 300 || reply.status > 399) break;
    target = new URL(String(reply.headers.location), target);
    if (target.origin !== way.origin) throw new Error(`${way.name}, it leads away: ${target.href}`);
  }
  return replies;
}

/** Asks for each address of a section of `requests.md`: `path → statuses of the replies [→ a part of the last body]`. */
export function askForPage(t: Test, neighbour: Neighbour, heading: string): void {
  t.test('the addresses of the page', async (t) => {
    for (const [path = '', statuses, part] of casesUnder(join(FOLDER, 'requests.md'), heading)) {
      const replies = await neighbour.same(t, path, (way) => follow(way, path));
      t.equal(replies.map(({ status }) => status).join(', '), statuses, path);
      if (part !== undefined) t.match(replies.at(-1)?.body, part, path);
    }
  });
}

/** Copies a file of the folder `programs`: an application, or its settings. */
export function copyProgram(name: string, to: string): void {
  copyFileSync(join(FOLDER, 'programs', name), to);
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input. */
  readonly input?: string;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. */
export function runProgram(
  [program = '', ...args]: readonly string[],
  { cwd, env = {}, input = '' }: RunOptions = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      { env: { ...process.env, LC_ALL: 'C.UTF-8', ...env }, ...(cwd === undefined ? {} : { cwd }) },
      (error: ExecFileException | null, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
      },
    );
    // A program need not read its input, and may have ended.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/** Runs a program that has to succeed. @returns what it wrote to stdout @throws Error with what it wrote to stderr */
export async function outputOf(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, options);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}
