/** Writes the file of an Apache that runs in one folder, with the modules of Debian's package. */
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MODULES = '/usr/lib/apache2/modules';
const isRoot = process.getuid?.() === 0;

/**
 * @param folder of all its files; its subfolder `site` is the root of the documents
 * @param modules besides those that every site needs
 * @param lines of its file
 * @returns the command
 */
export function apacheCommand(
  folder: string,
  port: number,
  modules: readonly string[],
  lines: string,
): readonly string[] {
  const file = join(folder, 'apache.conf');
  const loaded = ['mpm_prefork', 'authz_core', 'mime', 'dir', ...modules];
  writeFileSync(
    file,
    `ServerRoot ${folder}
ServerName localhost
Listen 127.0.0.1:${port}
PidFile apache.pid
ErrorLog "|/bin/cat"
${loaded.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
StartServers 2
MaxRequestWorkers 16
TypesConfig /dev/null
AddType text/plain .txt
AddType text/html .html
DocumentRoot site
${isRoot ? 'User www-data\nGroup www-data' : ''}
${lines}
`,
  );
  // As root it drops its rights, and still has to read and write here.
  if (isRoot) execFileSync('chown', ['-R', 'www-data:www-data', folder]);
  else chmodSync(folder, 0o755);
  // It ends all processes of its group when it ends, so it gets a group of its own.
  return ['setsid', 'apache2', '-f', file, '-DFOREGROUND'];
}
