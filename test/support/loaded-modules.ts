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

/** What Fastify and its log load in every start. */
const FASTIFY_AND_LOG =
  'fastify @fastify/error @fastify/forwarded @fastify/proxy-addr avvio fast-decode-uri-component fast-deep-equal fast-json-stringify fast-querystring fastq find-my-way process-warning ret reusify rfdc safe-regex2 secure-json-parse semver toad-cache pino pino-std-serializers @pinojs/redact atomic-sleep on-exit-leak-free quick-format-unescaped safe-stable-stringify sonic-boom thread-stream';

/** Fails for each package beyond Fastify, the log and those named, and if all load too many modules. */
export function holdTo(
  t: Test,
  { packages }: Pick<Loaded, 'packages'>,
  more: readonly string[],
  modulesMax: { readonly own: number; readonly all: number },
): void {
  const listed = ['own', ...FASTIFY_AND_LOG.split(' '), ...more].sort();
  const why = 'load it where it is needed, or change this list if every start needs it';
  t.strictSame([...packages.keys()].sort(), listed, why);
  const own = packages.get('own') ?? 0;
  t.ok(own <= modulesMax.own, `${own} modules of ours`);
  const all = packages.values().reduce((sum, count) => sum + count, 0);
  t.ok(all <= modulesMax.all, `${all} modules`);
}
