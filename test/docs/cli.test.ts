/** docs/cli.md and test/gateway/cli/outputs.md show the real output of the commands. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/cli.md');
const outputs = readPage('test/gateway/cli/outputs.md');

/** Replaces digests and remaining times, which differ between runs. */
function comparable(text: string): string {
  return text
    .replace(/\b[0-9a-z]{26}\b/g, 'ID')
    .replace(/(?<![\w-])[\w-]{22}(?![\w-])/g, 'DIGEST')
    .replace(/(reset: |;t=)\d+/g, '$1N')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/version [0-9a-f]{12}/, 'version V')
    .replace(/Floodgate \S+ on Node\.js \S+/, 'Floodgate V on Node.js V')
    .replace(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replace(/ in \S+:\d+:\S+$/m, ' in REPLICA')
    .trimEnd();
}

/** Splits words like a shell. The page uses only single quotes. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
}

/** A time in the middle of a window. */
const NOW = 1_800_000_030_000;

/** Starts a gateway with the limits of the page and two counted logins, in the state that `command` needs. */
async function startExample(t: Test, policies: string, command: string): Promise<string[]> {
  const clock = command === 'doctor' ? Date.now : (): number => NOW;
  const gateway = await startTestGateway(t, { policies, env: { GATEWAY_POLICIES: 'limits.yaml' }, clock });
  const admin = await startTestAdmin(t, gateway, {
    clock,
    doctor: { readPolicyFile: () => policies, openFilesMax: () => 65_536 },
  });
  const login = async (): Promise<string> => {
    const response = await fetch(`${gateway.origin}/login`, { method: 'POST' });
    await response.text();
    return response.headers.get('x-gateway-decision') ?? '';
  };
  const address = ['--gateway', admin];
  await login();
  await login();
  if (command === 'unban' || command === 'bans')
    await floodgateCommand(['ban', '192.0.2.9', '--reason', 'credential stuffing', ...address]);
  if (command === 'unshadow') await floodgateCommand(['shadow', 'login', ...address]);
  if (command !== 'why') return address;
  for (let i = 0; i < 3; i++) await login();
  return [await login(), ...address];
}

const ASKS_A_GATEWAY = new Set([
  'ban',
  'bans',
  'digest',
  'doctor',
  'inspect',
  'reset',
  'shadow',
  'top',
  'unban',
  'unshadow',
  'why',
]);

t.test('every command prints the output that the page shows', async (t) => {
  const cwd = temporaryFolder(t);
  const limits = page.blocks.find(({ language }) => language === 'yaml')?.text ?? '';
  writeFileSync(join(cwd, 'limits.yaml'), limits);
  const edited = limits
    .replace('limit: 5', 'limit: 3')
    .replace('allowed: 5', 'allowed: 3')
    .replace('/health', '/status');
  writeFileSync(join(cwd, 'edited.yaml'), edited);
  // Blocks that contain the name of their file.
  for (const { text } of page.blocks) {
    const [head = '', name] = /^# ([\w-]+\.(?:yaml|conf|log))\n/.exec(text) ?? [];
    if (name !== undefined)
      writeFileSync(join(cwd, name), name.endsWith('.log') ? text.slice(head.length) : text);
  }
  const shown = [...page.blocks, ...outputs.blocks].filter(({ language }) => language === 'console');
  t.ok(shown.length >= 7);
  for (const { text } of shown) {
    for (const part of text.split(/^\$ npx floodgate /m).slice(1)) {
      const [command = '', ...output] = part.split('\n');
      const [name = '', ...given] = wordsOf(command);
      const asksGateway = ASKS_A_GATEWAY.has(name) || (name === 'explain' && !given.includes('--file'));
      const gateway = asksGateway ? await startExample(t, limits, name) : [];
      const args = name === 'why' ? gateway : [...given, ...gateway];
      const { stdout, stderr } = await floodgateCommand([name, ...args], { cwd });
      t.equal(comparable(stdout + stderr), comparable(output.join('\n')), command);
    }
  }
});

t.test('every command has a section, and every section is a command', async (t) => {
  const { stdout } = await floodgate(['--help']);
  const commands = [...stdout.matchAll(/^ {2}floodgate ([a-z]+)/gm)].map(([, name]) => name);
  const sections = [...page.text.matchAll(/^## ([a-z]+)$/gm)].map(([, name]) => name);
  t.strictSame(sections.sort(), commands.sort());
});
