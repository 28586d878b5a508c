/** Settings that are files of the folder CREDENTIALS_DIRECTORY. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ConfigError } from '#shared/configuration.ts';
import { withCredentials } from '#shared/credentials.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('a file with the name of a variable is its value', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'GATEWAY_ADMIN_TOKEN'), 'secret\n');
  writeFileSync(join(folder, 'tls.key'), 'no setting');
  // Kubernetes mounts links, and a folder for their targets.
  mkdirSync(join(folder, '..data'));
  mkdirSync(join(folder, 'FOLDER'));
  writeFileSync(join(folder, '..data/SMTP_URL'), 'smtp://mail');
  symlinkSync('..data/SMTP_URL', join(folder, 'SMTP_URL'));
  t.strictSame(withCredentials({ CREDENTIALS_DIRECTORY: folder }), {
    CREDENTIALS_DIRECTORY: folder,
    GATEWAY_ADMIN_TOKEN: 'secret\n',
    SMTP_URL: 'smtp://mail',
  });
});

t.test('a variable that is set takes precedence, a blank one does not', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['REDIS_URL', 'SMTP_URL']) writeFileSync(join(folder, name), 'file');
  const env = { CREDENTIALS_DIRECTORY: folder, REDIS_URL: 'variable', SMTP_URL: ' ' };
  t.match(withCredentials(env), { REDIS_URL: 'variable', SMTP_URL: 'file' });
});

t.test('without the folder, the environment is as it was', async (t) => {
  const env = { REDIS_URL: 'variable' };
  t.equal(withCredentials(env), env);
  t.equal(withCredentials({ ...env, CREDENTIALS_DIRECTORY: ' ' }).REDIS_URL, 'variable');
});

t.test('a folder or file that cannot be read is a mistake of the settings', async (t) => {
  const folder = temporaryFolder(t);
  t.throws(() => withCredentials({ CREDENTIALS_DIRECTORY: join(folder, 'none') }), {
    constructor: ConfigError,
    message: /^CREDENTIALS_DIRECTORY: .* cannot be read \(ENOENT\)/,
  });
  symlinkSync('none', join(folder, 'SMTP_URL'));
  t.throws(() => withCredentials({ CREDENTIALS_DIRECTORY: folder }), {
    constructor: ConfigError,
    message: /^SMTP_URL: .*SMTP_URL cannot be read \(ENOENT\)/,
  });
});
