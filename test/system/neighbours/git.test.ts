/** git with `git http-backend` behind Apache, as small forges run it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { apacheCommand } from '#test/support/apache.ts';
import { ask, outputOf, runProgram, startNeighbour, type Way } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const GIT = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  ...{ GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_AUTHOR_DATE: '1700000000 +0000' },
  ...{
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.org',
    GIT_COMMITTER_DATE: '1700000000 +0000',
  },
};
const folder = temporaryFolder(t);
const ways = ['directly', 'through the gateway'] as const;
mkdirSync(join(folder, 'site'));
mkdirSync(join(folder, 'work'));
for (const name of ways) await git(['init', '-q', '--bare', join(folder, 'git', nameOf(name))]);
for (const name of ways)
  await git(['-C', join(folder, 'git', nameOf(name)), 'config', 'http.receivepack', 'true']);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) =>
    apacheCommand(
      folder,
      port,
      ['alias', 'env', 'cgi'],
      `SetEnv GIT_PROJECT_ROOT ${folder}/git
SetEnv GIT_HTTP_EXPORT_ALL 1
ScriptAlias /git/ /usr/lib/git-core/git-http-backend/
<Directory /usr/lib/git-core>
  Require all granted
</Directory>`,
    ),
});

/** Each way has a repository of its own, with the same content. */
function nameOf(way: Way['name']): string {
  return `${way.replaceAll(' ', '-')}.git`;
}

function git(args: readonly string[], cwd = folder): Promise<string> {
  return outputOf(['git', ...args], { cwd, env: GIT });
}

t.test('push with a length and chunked, clone, shallow clone, fetch', async (t) => {
  const file = 'random bytes that do not compress'.repeat(20_000);
  await neighbour.same(t, 'commits and files', async ({ name, origin }) => {
    const url = `${origin}/git/${nameOf(name)}`;
    const [first, second] = [join(folder, 'work', `${name}-1`), join(folder, 'work', `${name}-2`)];
    await git(['init', '-q', '-b', 'main', first]);
    for (const [i, chunked] of [
      [1, []],
      [2, ['-c', 'http.postBuffer=65536', '-c', 'core.compression=0']],
    ] as const) {
      writeFileSync(join(first, `${i}.txt`), `${i} ${file}`);
      await git(['add', '.'], first);
      await git(['commit', '-q', '-m', `commit ${i}`], first);
      await git([...chunked, 'push', '-q', url, 'main'], first);
    }
    await git(['clone', '-q', '--depth', '1', '-b', 'main', url, second]);
    const shallow = await git(['log', '--format=%H'], second);
    await git(['fetch', '-q', '--unshallow'], second);
    const whole = await git(['log', '--format=%H'], second);
    return { shallow, whole, file: readFileSync(join(second, '2.txt'), 'utf8').length };
  });
});

t.test('a body that the client announces with Expect', async (t) => {
  const path = (way: Way) => `/git/${nameOf(way.name)}/git-upload-pack`;
  const headers = { 'content-type': 'application/x-git-upload-pack-request' };
  const { code, stdout } = await neighbour.same(t, 'curl', async (way) => {
    const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const args = ['-sS', '--expect100-timeout', '600', '-H', 'Expect: 100-continue', ...lines];
    const written = ['-o', '/dev/null', '-w', '%{http_code} %{content_type}'];
    return runProgram(['curl', ...args, ...written, '--data-binary', '0000', way.origin + path(way)]);
  });
  t.strictSame([code, stdout], [0, '200 application/x-git-upload-pack-result']);
  t.equal(
    (
      await neighbour.same(t, 'in pieces', (way) =>
        ask(way, path(way), { method: 'POST', headers, body: '0000', pieces: 1 }),
      )
    ).status,
    200,
  );
});
