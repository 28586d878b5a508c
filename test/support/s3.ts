/**
 * Starts s3rver, an S3-compatible server, as a process. It checks signatures of requests and accepts POST uploads, but
 * it ignores their policies: a wrong size, type, signature or date is accepted. s3.test.ts therefore checks the text of
 * the policies.
 */
import type { S3Credentials, S3Location } from '#api/storage/location.ts';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { type Started, start } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface S3Server {
  readonly endpoint: string;
  readonly location: S3Location;
  readonly credentials: S3Credentials;
  /** The folder of its objects. */
  readonly folder: string;
  readonly process: Started;
}

/** The pair of keys that s3rver knows. */
const credentials: S3Credentials = { accessKey: 'S3RVER', secretKey: 'S3RVER' };
const bucket = 'uploads';

export async function startS3(owner: Owner): Promise<S3Server> {
  const folder = temporaryFolder(owner);
  const port = await freePort();
  const process = start([
    // The package names a program that it does not contain. Its library works.
    ...[
      '--eval',
      `require('@20minutes/s3rver/lib/cli').parse(process.argv.slice(1), { from: 'user' })`,
      '--',
    ],
    ...['--directory', folder, '--address', '127.0.0.1', '--port', String(port)],
    ...['--no-vhost-buckets', '--configure-bucket', bucket],
  ]);
  owner.teardown(() => process.stop('SIGKILL'));
  await process.until(/listening/);
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    endpoint,
    location: { kind: 's3', bucket, endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials,
    folder,
    process,
  };
}
