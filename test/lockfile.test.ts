/** The lock file installs on every machine, also on one of another platform than the one that wrote it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

interface Locked {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const text = readFileSync(join(projectRoot, 'package-lock.json'), 'utf8');
const packages: Readonly<Record<string, Locked>> = JSON.parse(text).packages;

t.test('no address of a registry is written down', async (t) => {
  for (const [path, { resolved }] of Object.entries(packages)) {
    // A package of our own is resolved to its folder.
    if (resolved?.includes(':') === true)
      t.fail(`${path} is resolved to an address; set omit-lockfile-registry-resolved`);
  }
  t.ok(Object.keys(packages).length > 100);
});

t.test(
  'binaries of other platforms have their entries: without them `npm ci` refuses to run anywhere',
  async (t) => {
    for (const [path, { optionalDependencies = {} }] of Object.entries(packages)) {
      for (const name of Object.keys(optionalDependencies)) {
        const nested = `${path}/node_modules/${name}`;
        if (!(nested in packages) && !(`node_modules/${name}` in packages)) {
          t.fail(
            `${name}, optional for ${path}, has no entry: npm drops what a registry does not have; write it by hand`,
          );
        }
      }
    }
    t.ok('node_modules/@biomejs/cli-win32-x64' in packages);
  },
);
