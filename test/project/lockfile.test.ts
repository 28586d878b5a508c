/** The lock file installs on every machine, also on one of another platform than the one that wrote it. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

interface Locked {
  readonly dev?: boolean;
  /** A link to one of the project's folders. */
  readonly link?: boolean;
  /** For a binary, its operating systems. */
  readonly os?: readonly string[];
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Packages = Readonly<Record<string, Locked>>;

function packagesOf(file: string): Packages {
  return JSON.parse(readFileSync(join(projectRoot, file), 'utf8')).packages;
}

const packages = packagesOf('package-lock.json');

t.test('contains no address of a registry', async (t) => {
  for (const file of globSync('{.,test,bench}/**/package-lock.json', {
    cwd: projectRoot,
    exclude: isInstalled,
  })) {
    // A package of the project is resolved to its folder.
    for (const [path, { resolved }] of Object.entries(packagesOf(file)))
      if (resolved?.includes(':') === true)
        t.fail(`${file}: ${path} is resolved to an address; set omit-lockfile-registry-resolved`);
  }
  t.ok(Object.keys(packages).length > 100);
});

t.test('an installation stays within these sizes; a larger one needs a reason', async (t) => {
  const installed = Object.entries(packages).filter(
    ([path, { os, link }]) => path.includes('node_modules/') && os === undefined && link !== true,
  );
  t.ok(installed.length <= 450, `${installed.length} packages`);
  const production = installed.filter(([, { dev }]) => dev !== true);
  t.ok(production.length <= 152, `${production.length} packages for production`);
});

t.test('has entries for the binaries of other platforms, because `npm ci` fails without them', async (t) => {
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
});

function isInstalled(path: string): boolean {
  return path.includes('node_modules');
}
