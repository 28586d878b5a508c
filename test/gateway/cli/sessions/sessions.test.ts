/**
 * Holds the pages of this folder: commands, and what they print. Each section (`##`) has a folder of its own, in which the
 * blocks with a file name stand as files. `⟦text*3⟧` stands for the text three times. After a command comes what it
 * prints on both outputs, in which `…` stands for anything; of a JSON document, members that are not shown do not matter.
 * `exit 1` at its end is the exit code, which otherwise is 0. A block `gateway` starts one with `policies.yaml`.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { difference, opened, parsePattern } from '#test/conversations/document.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { BEHIND_PROXY, startTestGateway } from '#test/support/gateway.ts';
import { EACH_STORE } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const SECTION = /^## (?<title>.+)$|^```(?<kind>\w+)(?: (?<file>\S+))?\n(?<text>[\s\S]*?)^```$/gm;
const repeated = (text: string): string =>
  text.replace(/⟦([^⟧]+)\*(\d+)⟧/g, (_, part: string, times: string) =>
    part.replaceAll('\\n', '\n').repeat(Number(times)),
  );

/** Splits a line as a shell does that knows single quotes alone. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare = '']) => quoted ?? bare);

function problemOf(wanted: string, stdout: string, stderr: string): string | null {
  if (wanted.startsWith('{')) return difference(opened(parsePattern(wanted)), JSON.parse(stdout), new Map());
  return difference(wanted, `${stdout}${stderr}`.trimEnd(), new Map(), 'the output');
}

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Port of the gateway; 0 if there is none. */
  readonly port: number;
}

/** Starts a gateway with the policies of a folder. */
async function started(t: Test, cwd: string, env: Readonly<Record<string, string>>): Promise<Place> {
  await insideLongWindow();
  const policies = readFileSync(join(cwd, 'policies.yaml'), 'utf8');
  const gateway = await startTestGateway(t, { policies, env: { ...BEHIND_PROXY, ...env } });
  const { port: admin } = new URL(await startTestAdmin(t, gateway));
  return { cwd, env: { GATEWAY_ADMIN_PORT: admin }, port: gateway.port };
}

/** Sends a request of a client. @returns its status, as a command prints it */
async function asked(port: number, [from = '', method = '', path = '', body]: readonly string[]) {
  const headers = { 'x-forwarded-for': from, 'content-type': 'application/json' };
  const { status } = await send(port, path, { method, headers, body });
  return { code: 0, stdout: String(status), stderr: '' };
}

const COMMAND = /^\$ (floodgate|client) (.*?)( # soon)?\n((?:(?!\$ ).*\n)*)/gm;

async function run(t: Test, { cwd, env, port }: Place, block: string, told: string): Promise<void> {
  for (const [, program, line = '', soon, output = ''] of block.matchAll(COMMAND)) {
    const [, wanted = '', exit = '0'] = /^([\s\S]*?)(?:(?<=^|\n)exit (\d+)\n)?$/.exec(output) ?? [];
    const words = wordsOf(line);
    const call = () => (program === 'client' ? asked(port, words) : floodgateCommand(words, { cwd, env }));
    const problem = ({ stdout, stderr }: Awaited<ReturnType<typeof call>>): string | null =>
      wanted === '' ? null : problemOf(wanted.trimEnd(), stdout, stderr);
    if (soon !== undefined) await until(async () => problem(await call()) === null, line);
    const result = await call();
    t.equal(result.code, Number(exit), `${told}: exit code of ${line}: ${result.stderr}`);
    t.equal(problem(result), null, `${told}: ${line}`);
  }
}

for (const file of globSync('*.md', { cwd: import.meta.dirname }).sort()) {
  const page = readFileSync(join(import.meta.dirname, file), 'utf8');
  const stores = page.includes('```gateway') ? EACH_STORE : { 'no gateway': async () => ({}) };
  for (const [store, environment] of Object.entries(stores))
    t.test(`${basename(file, '.md')}: ${store}`, async (t) => {
      let title = '';
      let place: Place = { cwd: '', env: {}, port: 0 };
      for (const { groups = {} } of page.matchAll(SECTION)) {
        const { text = '', kind, file } = groups;
        if (groups.title !== undefined)
          [title, place] = [groups.title, { cwd: temporaryFolder(t), env: {}, port: 0 }];
        else if (file !== undefined) writeFileSync(join(place.cwd, file), repeated(text));
        else if (kind === 'gateway') place = await started(t, place.cwd, await environment(t));
        else await run(t, place, text, title);
      }
    });
}
