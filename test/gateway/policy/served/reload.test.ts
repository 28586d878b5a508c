/** The running process uses an edited policy file. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test(
  'an edited policy file is used within seconds; a bad one changes nothing; counters stay',
  async (t) => {
    const upstream = await startUpstream(t);
    const folder = temporaryFolder(t);
    const file = join(folder, 'policies.yaml');
    const limited = (limit: string, more = ''): string =>
      policyFile(`name: a, route: GET /a, identifier: ip, limit: ${limit}, window: 366d${more}`);
    writeFileSync(file, limited('3'));
    const env = await environment({ GATEWAY_UPSTREAM: upstream.origin, GATEWAY_POLICIES: file });
    const gateway = await launch(t, env);
    const status = async (path = '/a'): Promise<number> =>
      (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}${path}`)).status;
    const statuses = async (times: number): Promise<number[]> => {
      const all: number[] = [];
      for (let i = 0; i < times; i++) all.push(await status());
      return all;
    };
    await insideLongWindow();
    t.strictSame(await statuses(4), [200, 200, 200, 429]);

    await t.test('a raised limit applies at once, even to a bucket remembered as exhausted', async (t) => {
      writeFileSync(file, limited('5'));
      await gateway.until(/the edited policy file is in use/);
      t.strictSame(await statuses(3), [200, 200, 429], 'the three requests from before still count');
    });
    await t.test('a mistake: the old policies stay, and log and metric report it', async (t) => {
      writeFileSync(file, limited('0'));
      await gateway.until(/the edited policy file is refused; the old policies stay/);
      t.match(gateway.output(), /limit is 0; expected/);
      t.equal(await status(), 429);
      const metrics = await (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/metrics`)).text();
      t.match(metrics, 'floodgate_policy_reload_failures_total 1');
    });
    await t.test('a failing test: the old policies stay, and the log names the test', async (t) => {
      const test = 'tests:\n  - { name: six pass, request: GET /a, times: 7, expect: { allowed: 6 } }\n';
      writeFileSync(file, `${limited('7')}\n${test}`);
      await gateway.until(/six pass\\" fails: allowed: expected 6, got 7 of 7/);
      t.equal(await status(), 429);
    });
    await t.test('SIGHUP checks at once; an unrelated edit resets no counter', async (t) => {
      writeFileSync(
        file,
        `# a comment\n${limited('6')}\n  - { name: b, route: GET /b, identifier: ip, limit: 1, window: 366d }`,
      );
      gateway.child.kill('SIGHUP');
      await until(async () => (await status('/b')) === 429, 'the new row is in use');
      t.strictSame(await statuses(2), [200, 429]);
    });
    await t.test('a file that is missing for a moment changes nothing', async (t) => {
      rmSync(file);
      gateway.child.kill('SIGHUP');
      await gateway.until(/there is no policy file/);
      t.equal(await status(), 429);
    });
  },
);
