/**
 * Starts real proxies of other projects that ask a gateway about each request, as the page of the examples describes.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { projectRoot } from './process.ts';
import { type ProxyProcess, startProxyProcess } from './proxy-process.ts';
import { temporaryFolder } from './temporary-folder.ts';

export const ASKING_EXAMPLES = 'examples/behind-another-proxy';

export const askingProxyNames = ['nginx', 'caddy'] as const;
type AskingProxyName = (typeof askingProxyNames)[number];

/**
 * @param to ports of the gateway and of the application
 * @param edit changes its files, such as for other options
 */
export async function startAskingProxy(
  owner: Owner,
  name: AskingProxyName,
  to: { readonly decision: number; readonly application: number },
  edit: (text: string) => string = (text) => text,
): Promise<ProxyProcess> {
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
  return startProxyProcess(owner, ['bash', '-c', `exec ${commandOf(name)}`], port, folder);
}

/** Reads the command from the page of the examples. */
function commandOf(name: AskingProxyName): string {
  const page = readFileSync(join(projectRoot, ASKING_EXAMPLES, 'README.md'), 'utf8');
  const command = new RegExp(`^\`\`\`sh\\n(${name} .*)\\n\`\`\`$`, 'm').exec(page)?.[1];
  if (command === undefined) throw new Error(`the page has no command that starts ${name}`);
  // As root it would drop its rights, and could not write into its folder.
  return process.getuid?.() === 0 ? command.replace(/^nginx /, "nginx -g 'user root;' ") : command;
}
