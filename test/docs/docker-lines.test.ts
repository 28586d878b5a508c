/** The instructions for people with only Docker fit the Dockerfile and the gateway. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';
import { dockerRuns } from './docker-runs.ts';
import { readPage } from './pages.ts';

const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');
const [, workingFolder = ''] = /^WORKDIR (\S+)$/m.exec(dockerfile) ?? [];
const lines = ['README.md', 'docs/install.md'].map(readPage);
const runs = lines.flatMap(dockerRuns);
const [, preset = ''] = /^ENV GATEWAY_POLICIES=(\S+)$/m.exec(dockerfile) ?? [];
const names = new Set<string>(GATEWAY_VARIABLES.map(({ name }) => name));
const portOf = (variable: string): string | undefined =>
  GATEWAY_VARIABLES.find(({ name }) => name === variable)?.default;

t.ok(runs.length >= 2, 'there are an example and a gateway with a policy file');

t.test('each page builds the images that it runs', async (t) => {
  for (const page of lines) {
    const tags = [...page.text.matchAll(/^docker build (?:--target (\w+) )?-t (\S+) \.$/gm)].map(
      ([, stage, tag]) => {
        if (stage !== undefined) t.match(dockerfile, new RegExp(`^FROM node AS ${stage}$`, 'm'));
        return tag;
      },
    );
    for (const { image, line } of dockerRuns(page)) t.ok(tags.includes(image), line);
  }
});

for (const { line, ports, variables, volumes, command } of runs) {
  t.test(line, async (t) => {
    for (const [, inside] of ports)
      t.ok([portOf('GATEWAY_PORT'), portOf('GATEWAY_ADMIN_PORT')].includes(inside), `port ${inside}`);
    for (const [name] of variables) t.ok(names.has(name), name);
    for (const [source, target] of volumes) {
      t.ok(existsSync(join(projectRoot, source)), source);
      const { GATEWAY_POLICIES = preset } = Object.fromEntries(variables);
      const policies = resolve(workingFolder, GATEWAY_POLICIES);
      t.ok(policies.startsWith(`${target}/`), `${policies} is in the mounted folder`);
      t.ok(existsSync(join(projectRoot, source, policies.slice(target.length + 1))), policies);
    }
    t.strictSame(command, [], 'the image knows what to run');
  });
}
