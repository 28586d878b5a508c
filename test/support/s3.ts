/**
 * A real S3-compatible server of the test's own: s3rver, as its own process. It checks signatures of requests and takes
 * POST uploads, but it does not read their policies: a wrong size, type, signature or date passes there. What S3 itself
 * would enforce is therefore tested as text, in s3.test.ts.
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
  /** Where it keeps its objects. */
  readonly folder: string;
  readonly process: Started;
}

/** The pair that s3rver knows. */
const credentials: S3Credentials = { accessKey: 'S3RVER', secretKey: 'S3RVER' };
const bucket = 'uploads';

export async function startS3(owner: Owner): Promise<S3Server> {
  const folder = temporaryFolder(owner);
  const port = await freePort();
  const process = start([
    // The package names a program that it does not ship; its library has it all the same.
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
