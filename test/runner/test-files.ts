/**
 * The program that runs test files: `node test/runner/test-files.ts FILE…`, one after the other in this process. Each
 * file is a subtest with its name, and imports from tap the `t` of that subtest.
 */
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';

const DOMAINS = `data:text/javascript,${encodeURIComponent('export class Domain { destroy() {} }')}`;

/**
 * tap tracks every promise to know which test an uncaught error belongs to. That is a sixth of the CPU time of the
 * tests. Here one test runs at a time, so an uncaught error belongs to that test.
 */
registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'async-hook-domain') return next(specifier, context);
    return { url: DOMAINS, shortCircuit: true };
  },
});
// This comes before tap is loaded, because tap names folders after the arguments.
const files = process.argv.splice(2);
const { default: t, Base } = await import('tap');

let running = t as InstanceType<typeof Base>;
const follow = (test: typeof running): void => {
  test.on('subtestStart', (begun) => {
    if (!(begun instanceof Base)) return;
    running = begun;
    follow(begun);
  });
  test.on('subtestEnd', () => {
    running = test;
  });
};
follow(t);
const fail = (error: unknown): void => void running.threw(error);
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const REGISTRY = Symbol.for('floodgate.tests');
const tests = new Map<string, Test>();
Object.assign(globalThis, { [REGISTRY]: tests });

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = '' } = context;
    if (specifier !== 'tap' || !tests.has(parentURL)) return next(specifier, context);
    const source = `export default globalThis[Symbol.for('floodgate.tests')].get(${JSON.stringify(parentURL)});`;
    return { url: `data:text/javascript,${encodeURIComponent(source)}`, shortCircuit: true };
  },
});

for (const file of files) {
  const { href } = pathToFileURL(resolve(file));
  await t.test(file, async (t) => {
    tests.set(href, t);
    await import(href);
  });
}
