/** Runs the programs of docs/library.md unchanged, and checks that they limit. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { policyFile } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const programs = readPage('docs/library.md').blocks.filter(({ language }) => language === 'js');
const library = new URL('../../../gateway/library/index.ts', import.meta.url).href;

for (const { text, line } of programs) {
  t.test(`the program at line ${line}`, async (t) => {
    const cwd = temporaryFolder(t);
    const port = await freePort();
    symlinkSync(join(projectRoot, 'node_modules'), join(cwd, 'node_modules'));
    writeFileSync(
      join(cwd, 'policies.yaml'),
      policyFile('name: all, route: GET /*, identifier: ip, limit: 2, window: 366d'),
    );
    t.match(text, /from 'floodgate-limits'/);
    writeFileSync(
      join(cwd, 'app.mjs'),
      text.replace("'floodgate-limits'", `'${library}'`).replaceAll('3000', String(port)),
    );
    const app = start([join(cwd, 'app.mjs')], {}, cwd);
    t.teardown(() => app.stop('SIGKILL'));
    const ask = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/`);
    let first: Response | null = null;
    await until(async () => {
      first = await ask().catch(() => null);
      return first !== null;
    });
    t.match(first, { status: 200 });
    t.equal(await (first as unknown as Response).text(), 'hello');
    t.equal((await ask()).status, 200);
    const denied = await ask();
    t.equal(denied.status, 429);
    t.match(await denied.json(), { 'violated-policies': ['all'] });
  });
}

t.test('has one program for each kind of server', async (t) => {
  t.equal(programs.length, 3);
});
