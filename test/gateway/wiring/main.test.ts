/** The process starts, serves and ends; more of it is in test/system/processes and test/system/crashes. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

function withPolicies(t: Test): string {
  const folder = temporaryFolder(t);
  copyFileSync(join(projectRoot, 'config/policies.yaml'), join(folder, 'policies.yaml'));
  return folder;
}

t.test('prints one line when ready, accepts connections, and exits with 0 on SIGTERM', async (t) => {
  const upstream = await startUpstream(t);
  const env = await environment({ GATEWAY_UPSTREAM: upstream.origin });
  const gateway = await launch(t, env);
  t.equal(gateway.output().match(/Gateway ready on .*17 policies.*in-process memory/g)?.length, 1);
  t.equal((await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/anything`)).status, 200);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const again =
      signal === 'SIGTERM'
        ? gateway
        : await launch(t, await environment({ GATEWAY_UPSTREAM: upstream.origin }));
    t.equal(await again.stop(signal), 0, signal);
  }
});

t.test(
  'in front of an application, the limits of the survey API are used only if they are named',
  async (t) => {
    const upstream = await startUpstream(t);
    const refused = async (program: readonly string[], env: Record<string, string>): Promise<string> => {
      const gateway = start(program, { ...(await environment(env)), GATEWAY_POLICIES: '' });
      t.equal(await gateway.ended(), 1);
      return gateway.output();
    };
    const asks = /GATEWAY_POLICIES: it is not set.*floodgate init my-policies\.yaml/;
    t.match(await refused(['gateway/main.ts'], { GATEWAY_UPSTREAM: upstream.origin }), asks);
    const command = ['gateway/cli/main.ts', 'start', '--upstream', upstream.origin];
    t.match(await refused(command, {}), asks);
    for (const [cwd, env] of [
      [projectRoot, { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_POLICIES: 'policies.yaml' }],
      [projectRoot, { GATEWAY_POLICIES: '' }],
      [withPolicies(t), { GATEWAY_UPSTREAM: upstream.origin }],
    ] as const) {
      const gateway = start([join(projectRoot, 'gateway/main.ts')], await environment(env), cwd);
      t.teardown(() => gateway.stop());
      t.ok(await gateway.until(/Gateway ready/));
    }
  },
);
