/**
 * Starts real proxies of other projects that ask a gateway about each request, as the page of the examples describes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from './gateway.ts';
import { accepts, freePort } from './ports.ts';
import { projectRoot } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

export const ASKING_EXAMPLES = 'examples/behind-another-proxy';

export const askingProxyNames = ['nginx', 'caddy'] as const;
type AskingProxyName = (typeof askingProxyNames)[number];

interface AskingProxy {
  readonly port: number;
  readonly child: ChildProcess;
  /** @returns the output of the proxy on stderr so far */
  errors(): string;
}

/**
 * @param to ports of the gateway and of the application
 * @param edit changes its files, such as for other options
 */
export async function startAskingProxy(
  owner: Owner,
  name: AskingProxyName,
  to: { readonly decision: number; readonly application: number },
  edit: (text: string) => string = (text) => text,
): Promise<AskingProxy> {
  const folder = temporaryFolder(owner);
  const port = await freePort();
  mkdirSync(join(folder, ASKING_EXAMPLES), { recursive: true });
  const files = readdirSync(join(projectRoot, ASKING_EXAMPLES));
  for (const file of files) {
    const text = readFileSync(join(projectRoot, ASKING_EXAMPLES, file), 'utf8')
      .replaceAll('127.0.0.1:9091', `127.0.0.1:${to.decision}`)
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${to.application}`)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${port}`);
    writeFileSync(join(folder, ASKING_EXAMPLES, file), edit(text));
  }
  const child = spawn('bash', ['-c', `exec ${commandOf(name)}`], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = once(child, 'close');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  owner.teardown(async () => {
    child.kill('SIGTERM');
    await closed;
  });
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${errors}`);
    return accepts(port);
  });
  return { port, child, errors: () => errors };
}

/** Reads the command from the page of the examples. */
function commandOf(name: AskingProxyName): string {
  const page = readFileSync(join(projectRoot, ASKING_EXAMPLES, 'README.md'), 'utf8');
  const command = new RegExp(`^\`\`\`sh\\n(${name} .*)\\n\`\`\`$`, 'm').exec(page)?.[1];
  if (command === undefined) throw new Error(`the page has no command that starts ${name}`);
  // As root it would drop its rights, and could not write into its folder.
  return process.getuid?.() === 0 ? command.replace(/^nginx /, "nginx -g 'user root;' ") : command;
}
