/**
 * Files in S3 pass the conformance suite on a real server. Further tests check the policies, and a server that is down.
 */
import { createHmac } from 'node:crypto';
import t from 'tap';
import { createS3Storage } from '#api/storage/s3.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { freePort } from '#test/support/ports.ts';
import { startS3 } from '#test/support/s3.ts';
import { conforms, post } from './conformance.ts';

const object = { key: 'ws1/private/a ü.pdf', contentType: 'application/pdf', bytesMax: 1234 };

t.test('passes the conformance suite', async (t) => {
  const { location, credentials } = await startS3(t);
  const storage = createS3Storage(location, credentials);
  t.teardown(() => storage.close());
  // s3rver does not pass `holdsToItsGrants`, because it does not read policies. So the policies are tested below as
  // text.
  conforms(t, storage);
});

t.test('the policy fixes key, type, size, status and bucket for two minutes, and is signed', async (t) => {
  const storage = createS3Storage(
    {
      kind: 's3',
      bucket: 'uploads',
      endpoint: 'http://127.0.0.1:9',
      region: 'eu-north-1',
      forcePathStyle: true,
    },
    { accessKey: 'AKIDEXAMPLE', secretKey: 'wJalrXUtnFEMI' },
  );
  t.teardown(() => storage.close());
  const before = Date.now();
  const { url, fields } = await storage.grant(object);
  t.equal(url, 'http://127.0.0.1:9/uploads');
  t.strictSame(Object.keys(fields).sort(), [
    'Content-Type',
    'Policy',
    'X-Amz-Algorithm',
    'X-Amz-Credential',
    'X-Amz-Date',
    'X-Amz-Signature',
    'bucket',
    'key',
    'success_action_status',
  ]);
  const policy = JSON.parse(Buffer.from(fields.Policy ?? '', 'base64').toString());
  const expires = Date.parse(policy.expiration);
  t.ok(expires >= before + 119_000 && expires <= Date.now() + 120_000, policy.expiration);
  const conditions = policy.conditions.map((condition: unknown) => JSON.stringify(condition));
  for (const needed of [
    ['content-length-range', 0, 1234],
    { key: object.key },
    { 'Content-Type': 'application/pdf' },
    { success_action_status: '201' },
    { bucket: 'uploads' },
  ]) {
    t.ok(conditions.includes(JSON.stringify(needed)), JSON.stringify(needed));
  }

  // AWS Signature Version 4 derives four keys in a row and then signs the policy.
  const hmac = (key: string | Buffer, text: string): Buffer =>
    createHmac('sha256', key).update(text).digest();
  const [, date = '', region = '', service = '', end = ''] = (fields['X-Amz-Credential'] ?? '').split('/');
  t.strictSame([region, service, end], ['eu-north-1', 's3', 'aws4_request']);
  const key = [date, region, service, end].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    'AWS4wJalrXUtnFEMI',
  );
  t.equal(fields['X-Amz-Signature'], hmac(key, fields.Policy ?? '').toString('hex'));
});

t.test('a server that ignores Range causes an error, never wrong bytes', async (t) => {
  const { location, credentials } = await startS3(t);
  const storage = createS3Storage(location, credentials);
  t.teardown(() => storage.close());
  await post(await storage.grant(object), Buffer.from('0123456789'));
  // s3rver answers a request for only the first byte with the whole file.
  const file = await storage.find(object.key);
  await t.rejects(async () => file && storage.read(object.key, file, { first: 0, last: 0 }), {
    constructor: StorageUnavailable,
    message: /with 10 bytes/,
  });
});

t.test('unknown keys and a missing bucket: every call fails with the variable to correct', async (t) => {
  const { location, credentials } = await startS3(t);
  const storage = createS3Storage(location, { accessKey: 'WRONG', secretKey: 'WRONG' });
  t.teardown(() => storage.close());
  const expected = {
    constructor: StorageUnavailable,
    fault: 's3_credentials_error',
    message: /S3_ACCESS_KEY/,
  };
  await t.rejects(storage.check(), expected);
  await t.rejects(storage.find('ws1/public/a.png'), expected);
  await t.rejects(storage.delete('ws1/public/a.png'), expected);
  const elsewhere = createS3Storage({ ...location, bucket: 'other' }, credentials);
  t.teardown(() => elsewhere.close());
  await t.rejects(elsewhere.check(), { constructor: StorageUnavailable, message: /S3_BUCKET_NAME/ });
});

t.test('a server that is away or does not answer: a bounded wait and a clear message', async (t) => {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const away = createS3Storage(
    { kind: 's3', bucket: 'uploads', endpoint, region: 'us-east-1', forcePathStyle: true },
    { accessKey: 'S3RVER', secretKey: 'S3RVER' },
  );
  t.teardown(() => away.close());
  const expected = {
    constructor: StorageUnavailable,
    fault: 's3_client_error',
    message: /S3_ENDPOINT_URL/,
  };
  await t.rejects(away.find('ws1/public/a.png'), expected);
  await t.resolves(away.grant(object), 'a grant needs no server');

  const server = await startS3(t);
  const hanging = createS3Storage(server.location, server.credentials);
  t.teardown(() => hanging.close());
  server.process.child.kill('SIGSTOP');
  await t.rejects(hanging.find('ws1/public/a.png'), expected, 'while the server does not answer');
  server.process.child.kill('SIGCONT');
  t.equal((await post(await hanging.grant(object), Buffer.from('x'))).status, 201, 'works again');
});
