/** The README's instructions for people with only Docker fit the Dockerfile and the gateway. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';
import { dockerRuns } from './docker-runs.ts';
import { readPage } from './pages.ts';

const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');
const [, workingFolder = ''] = /^WORKDIR (\S+)$/m.exec(dockerfile) ?? [];
const readme = readPage('README.md');
const runs = dockerRuns(readme);
const names = new Set<string>(GATEWAY_VARIABLES.map(({ name }) => name));
const portOf = (variable: string): string | undefined =>
  GATEWAY_VARIABLES.find(({ name }) => name === variable)?.default;

t.ok(runs.length >= 2, 'the page has an example and a gateway with a policy file');

t.test('the page builds and runs the same image', async (t) => {
  const [, tag] = /^docker build -t (\S+) \.$/m.exec(readme.text) ?? [];
  for (const { image } of runs) t.equal(image, tag);
});

for (const { line, ports, variables, volumes, command } of runs) {
  t.test(line, async (t) => {
    for (const [, inside] of ports)
      t.ok([portOf('GATEWAY_PORT'), portOf('GATEWAY_ADMIN_PORT')].includes(inside), `port ${inside}`);
    for (const [name] of variables) t.ok(names.has(name), name);
    for (const [source, target] of volumes) {
      t.ok(existsSync(join(projectRoot, source)), source);
      const { GATEWAY_POLICIES = '' } = Object.fromEntries(variables);
      const policies = join(workingFolder, GATEWAY_POLICIES);
      t.ok(policies.startsWith(`${target}/`), `${policies} is in the mounted folder`);
      t.ok(existsSync(join(projectRoot, source, policies.slice(target.length + 1))), policies);
    }
    const [, script] = command;
    if (script !== undefined) {
      t.ok(existsSync(join(projectRoot, script)), script);
      t.match(dockerfile, new RegExp(`^COPY ${script.split('/')[0]} `, 'm'), `${script} is in the image`);
    }
  });
}
