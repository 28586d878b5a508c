/** Each optional part can be taken out: its folder and its lines in gateway/parts.ts are deleted, and the rest serves. */
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { PARTS } from '#gateway/parts.ts';
import { type Owner, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LIST = 'gateway/parts.ts';
const list = readFileSync(join(projectRoot, LIST), 'utf8');

/** The name of each part in the list, and its folder. */
const parts = [...list.matchAll(/^import \{ (\w+)[^}]*\} from '\.\/(.+)\/part\.ts';$/gm)].map(
  ([, name = '', folder = '']) => ({ name, folder }),
);

t.equal(parts.length, Object.keys(PARTS).length, 'every part has its own folder');

/** Copies the sources that a gateway runs. */
function copyOf(owner: Owner): string {
  const root = temporaryFolder(owner);
  for (const name of ['gateway', 'shared', 'package.json', 'tsconfig.json', 'config', 'policies.yaml'])
    cpSync(join(projectRoot, name), join(root, name), { recursive: true, dereference: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(root, 'node_modules'));
  return root;
}

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: few, route: GET /few, identifier: ip, limit: 1, window: 366d }]
`;

for (const { name, folder } of parts) {
  t.test(`without ${name}, the gateway starts, forwards and limits`, async (t) => {
    const root = copyOf(t);
    rmSync(join(root, 'gateway', folder), { recursive: true });
    const without = list
      .split('\n')
      .filter((line) => !line.includes(`'./${folder}/part.ts'`) && line !== `  ${name},`)
      .join('\n');
    writeFileSync(join(root, LIST), without);
    const file = join(root, 'few.yaml');
    writeFileSync(file, POLICIES);
    const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
    const port = await freePort();
    const gateway = start([join(root, 'gateway/main.ts')], {
      GATEWAY_PORT: String(port),
      GATEWAY_ADMIN_PORT: '0',
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_POLICIES: file,
    });
    t.teardown(() => gateway.stop('SIGTERM'));
    await gateway.until(/Gateway ready/);
    const statuses: number[] = [];
    for (const path of ['/free', '/few', '/few'])
      statuses.push((await fetch(`http://127.0.0.1:${port}${path}`)).status);
    t.strictSame(statuses, [200, 200, 429]);
    t.equal(await gateway.stop('SIGTERM'), 0);
  });
}
