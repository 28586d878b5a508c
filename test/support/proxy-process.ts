/** Starts real proxies of other projects. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Owner } from './gateway.ts';
import { accepts } from './ports.ts';
import { type Started, startProgram } from './process.ts';
import { until } from './until.ts';

export interface ProxyProcess {
  readonly port: number;
  readonly child: Started['child'];
  /** @returns what the proxy has written so far */
  errors(): string;
}

/**
 * Resolves when the proxy accepts connections.
 *
 * @param port one of those that it listens on
 * @param cwd folder for what it writes
 */
export async function startProxyProcess(
  owner: Owner,
  command: readonly string[],
  port: number,
  cwd: string,
): Promise<ProxyProcess> {
  const proxy = startProgram(command, { HOME: cwd, TMPDIR: cwd }, cwd);
  owner.teardown(() => proxy.stop());
  await until(() => accepts(port), `${command[0]} accepts connections`, proxy);
  return { port, child: proxy.child, errors: proxy.output };
}

/** Writes the file of an NGINX that runs in this folder. @param sites its server blocks @returns the command */
export function nginxCommand(folder: string, sites: string): readonly string[] {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${kind};`,
  );
  // As root it would drop its rights, and could not write into its folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `${user} daemon off; pid nginx.pid; error_log stderr warn; events {}
http { access_log off; ${paths.join(' ')}
${sites}
}
`,
  );
  return ['nginx', '-e', 'stderr', '-p', folder, '-c', file];
}

/** @param config path of its file */
export function startHaproxy(owner: Owner, config: string, port: number): Promise<ProxyProcess> {
  return startProxyProcess(owner, ['haproxy', '-db', '-f', config], port, dirname(config));
}
