/** Reads the settings of the storage, and reports each mistake under its variable. */
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '#api/config.ts';
import { problemsOf } from '#test/support/api-settings.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const s3 = {
  S3_BUCKET_NAME: 'uploads',
  S3_ENDPOINT_URL: 'https://s3.example.com/',
  S3_ACCESS_KEY: 'id',
  S3_SECRET_KEY: 'hush',
};

t.test('reads a folder, relative or absolute', async (t) => {
  for (const [env, path] of [
    [{}, '/srv/data/uploads'],
    [{ STORAGE_PATH: '/mnt/x' }, '/mnt/x'],
  ] as const)
    t.strictSame(readConfig(env, '/srv').config.storage, { kind: 'disk', path });
});

t.test('a bucket takes precedence over the folder; its keys are secrets', async (t) => {
  const { config, secrets } = readConfig(
    { ...s3, STORAGE_PATH: '/mnt/x', S3_FORCE_PATH_STYLE: '1', S3_REGION: 'auto' },
    '/srv',
  );
  t.strictSame(config.storage, {
    kind: 's3',
    bucket: 'uploads',
    endpoint: 'https://s3.example.com',
    region: 'auto',
    forcePathStyle: true,
  });
  t.strictSame(secrets.s3, { accessKey: 'id', secretKey: 'hush' });
  t.notMatch(JSON.stringify(config), /hush/);
});

t.test('a bucket without an endpoint is on AWS, with the credentials that the SDK finds', async (t) => {
  const { config, secrets } = readConfig({ S3_BUCKET_NAME: 'uploads' }, '/srv');
  t.match(config.storage, { endpoint: null, region: 'us-east-1', forcePathStyle: false });
  t.equal(secrets.s3, null);
});

t.test('a mistake is reported under its variable, without secrets', async (t) => {
  for (const [settings = '', name] of casesUnder(join(import.meta.dirname, 'locations.md'), 'Refused')) {
    const problems = problemsOf(Object.fromEntries(settings.split(', ').map((one) => one.split('='))));
    t.equal(problems.length, 1, problems.join());
    t.ok(problems[0]?.startsWith(`${name}: `), `${settings}: ${problems}`);
    t.notMatch(problems.join(), /hush/);
  }
});
