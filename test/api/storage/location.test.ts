/** Reads the settings of the storage, and reports each mistake under its variable. */
import t from 'tap';
import { readConfig } from '#api/config.ts';
import { problemsOf } from '#test/support/api-settings.ts';

const s3 = {
  S3_BUCKET_NAME: 'uploads',
  S3_ENDPOINT_URL: 'https://s3.example.com/',
  S3_ACCESS_KEY: 'id',
  S3_SECRET_KEY: 'hush',
};

t.test('reads a folder, relative or absolute', async (t) => {
  t.strictSame(readConfig({}, '/srv').config.storage, { kind: 'disk', path: '/srv/data/uploads' });
  t.strictSame(readConfig({ STORAGE_PATH: '/mnt/x' }, '/srv').config.storage, {
    kind: 'disk',
    path: '/mnt/x',
  });
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

for (const [name, env] of [
  ['S3_BUCKET_NAME', { S3_BUCKET_NAME: 'Not A Bucket' }],
  ['S3_BUCKET_NAME', { S3_ENDPOINT_URL: 'https://s3.example.com' }],
  ['S3_BUCKET_NAME', { S3_ACCESS_KEY: 'id', S3_SECRET_KEY: 'hush' }],
  ['S3_ENDPOINT_URL', { ...s3, S3_ENDPOINT_URL: 's3.example.com' }],
  ['S3_ENDPOINT_URL', { ...s3, S3_ENDPOINT_URL: 'https://id:hush@s3.example.com' }],
  ['S3_REGION', { ...s3, S3_REGION: 'over there' }],
  ['S3_FORCE_PATH_STYLE', { ...s3, S3_FORCE_PATH_STYLE: 'yes' }],
  ['S3_ACCESS_KEY', { S3_BUCKET_NAME: 'uploads', S3_SECRET_KEY: 'hush' }],
  ['S3_ACCESS_KEY', { S3_BUCKET_NAME: 'uploads', S3_ACCESS_KEY: 'id' }],
] as const) {
  t.test(`${Object.keys(env).join(', ')}: refused as ${name}`, async (t) => {
    const problems = problemsOf(env);
    t.equal(problems.length, 1, problems.join());
    t.ok(problems[0]?.startsWith(`${name}: `), problems.join());
    t.notMatch(problems.join(), /hush/);
  });
}
