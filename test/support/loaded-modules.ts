/** Lists the modules that one of our programs has loaded when it is ready. */
import type { Test } from 'tap';
import { start } from './process.ts';

export interface Loaded {
  /** Modules of ours, of packages and of Node, and the language tables that were loaded. */
  readonly names: readonly string[];
  /** Number of modules by package; those of ours are counted as `own`. */
  readonly packages: ReadonlyMap<string, number>;
}

/** @param whenReady is called with the program still running */
export async function loadedBy(
  t: Test,
  program: string,
  env: Record<string, string>,
  whenReady: () => Promise<void> = async () => undefined,
): Promise<Loaded> {
  const started = start(['--require=./test/support/loaded-modules.cjs', program], env);
  t.teardown(() => started.stop());
  await started.until(/ ready on /);
  await whenReady();
  await started.stop();
  const [, list = ''] = await started.until(/^Loaded (\[.*\])$/m);
  const names: readonly string[] = JSON.parse(list);
  const packages = new Map<string, number>();
  for (const name of names) {
    if (!name.startsWith('file:')) continue;
    const [, owner = 'own'] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(name) ?? [];
    packages.set(owner, (packages.get(owner) ?? 0) + 1);
  }
  return { names, packages };
}

/** Fails for each package that is not in the list, or that loads more modules than the list allows. */
export function holdTo(
  t: Test,
  { packages }: Pick<Loaded, 'packages'>,
  modulesMax: Readonly<Record<string, number>>,
): void {
  const beyond = [...packages].flatMap(([name, count]) =>
    count > (modulesMax[name] ?? 0) ? [`${name}: ${count} modules, ${modulesMax[name] ?? 0} allowed`] : [],
  );
  t.strictSame(beyond, [], 'load it where it is needed, or add it to this list if every start needs it');
  const unused = Object.keys(modulesMax).filter((name) => !packages.has(name));
  t.strictSame(unused, [], 'remove modules from the list that are not loaded any more');
}
