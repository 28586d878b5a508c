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

/** The most modules that Fastify and its log load in every start. */
export const FASTIFY_AND_LOG = {
  '@fastify/error': 1,
  '@fastify/forwarded': 1,
  '@fastify/proxy-addr': 1,
  avvio: 13,
  'fast-decode-uri-component': 1,
  'fast-deep-equal': 1,
  'fast-json-stringify': 2,
  'fast-querystring': 4,
  fastq: 1,
  'find-my-way': 12,
  'process-warning': 1,
  ret: 11,
  reusify: 1,
  rfdc: 1,
  'safe-regex2': 1,
  'secure-json-parse': 1,
  semver: 47,
  'toad-cache': 1,
  // The log.
  pino: 12,
  'pino-std-serializers': 7,
  '@pinojs/redact': 1,
  'atomic-sleep': 1,
  'on-exit-leak-free': 1,
  'quick-format-unescaped': 1,
  'safe-stable-stringify': 1,
  'sonic-boom': 1,
  'thread-stream': 4,
} as const;

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
