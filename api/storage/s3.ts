/**
 * Stores files in a bucket of S3 or of a server with its protocol. Only this file knows the SDK.
 *
 * Clients post to the bucket under a policy that fixes key, type, size and time, which S3 enforces. So the CORS rules
 * of the bucket must allow POST from every origin. It needs no public access, because reads go through the API. Every
 * call has a time limit, so an S3 that hangs occupies connections only for seconds.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { createPresignedPost } from '@aws-sdk/s3-presigned-post';
import type { Millis } from '#shared/clock.ts';
import type { S3Credentials, S3Location } from './location.ts';
import { GRANT_SECONDS, type Storage, type StorageFault, StorageUnavailable } from './storage.ts';

const ATTEMPTS_MAX = 2;
const CONNECT_TIMEOUT_MS: Millis = 2_000;
/** Timeout until the head of a reply. */
const REPLY_TIMEOUT_MS: Millis = 5_000;
/** Timeout of an upload by this service, over a slow connection. */
const PUT_TIMEOUT_MS: Millis = 120_000;
const SOCKETS_MAX = 64;
const PROBE_KEY = 'floodgate-check';

/** @param credentials null for those that the SDK finds, such as the role of the machine */
export function createS3Storage(location: S3Location, credentials: S3Credentials | null): Storage {
  const { bucket, endpoint, region, forcePathStyle } = location;
  const client = new S3Client({
    region,
    forcePathStyle,
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REPLY_TIMEOUT_MS,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: SOCKETS_MAX },
      httpsAgent: { maxSockets: SOCKETS_MAX },
    },
    // Many servers with the protocol do not know newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === null ? {} : { endpoint }),
    ...(credentials === null
      ? {}
      : { credentials: { accessKeyId: credentials.accessKey, secretAccessKey: credentials.secretKey } }),
  });
  const at = (key: string) => ({ Bucket: bucket, Key: key });

  /** @returns null if the file is missing @throws StorageUnavailable */
  const ask = async <T>(work: Promise<T>): Promise<T | null> => {
    try {
      return await work;
    } catch (error) {
      if (isMissing(error)) return null;
      throw unavailable(location, error);
    }
  };

  return {
    async grant({ key, contentType, bytesMax }) {
      // S3 checks the expiry with its own clock, so this uses the real time, not the context's clock.
      const form = createPresignedPost(client, {
        ...at(key),
        Expires: GRANT_SECONDS,
        Fields: { 'Content-Type': contentType, success_action_status: '201' },
        Conditions: [['content-length-range', 0, bytesMax]],
      });
      return form.catch((error: unknown) => {
        throw unavailable(location, error);
      });
    },

    async put({ key, contentType }, file) {
      const ContentMD5 = createHash('md5').update(file).digest('base64');
      const put = new PutObjectCommand({ ...at(key), ContentType: contentType, ContentMD5, Body: file });
      await ask(client.send(put, { requestTimeout: PUT_TIMEOUT_MS }));
    },

    async find(key) {
      const head = await ask(client.send(new HeadObjectCommand(at(key))));
      if (head === null) return null;
      const { ETag: etag = '', ContentLength: size = 0 } = head;
      return { size, etag };
    },

    async read(key, { etag }, { first, last }) {
      const range = { Range: `bytes=${first}-${last}`, IfMatch: etag };
      const found = await ask(client.send(new GetObjectCommand({ ...at(key), ...range })));
      if (found === null) return null;
      const { Body, ContentLength: length } = found;
      if (Body instanceof Readable && length === last - first + 1) return Body;
      if (Body instanceof Readable) Body.destroy();
      throw unavailable(location, new Error(`S3 answered ${range.Range} with ${length ?? 'no'} bytes`));
    },

    async delete(key) {
      await ask(client.send(new DeleteObjectCommand(at(key))));
    },

    async check() {
      // Reads a file that never exists. The reply that it is missing shows that the bucket exists, that the key pair
      // may read, and that S3 reports missing files. Without the right to list, S3 would reply 403 instead.
      const found = await ask(client.send(new GetObjectCommand(at(PROBE_KEY))));
      if (found?.Body instanceof Readable) found.Body.destroy();
    },

    async close() {
      client.destroy();
    },
  };
}

/** Whether the file is missing, or has another version now. An unknown bucket is a wrong setting, not a missing file. */
function isMissing(error: unknown): boolean {
  const isUnknownBucket = error instanceof Error && error.name === 'NoSuchBucket';
  return statusOf(error) === 412 || (statusOf(error) === 404 && !isUnknownBucket);
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

function unavailable(location: S3Location, error: unknown): StorageUnavailable {
  const fault = faultOf(error);
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const where = `${location.bucket} at ${location.endpoint ?? `AWS, ${location.region}`}`;
  const advice =
    fault === 's3_credentials_error'
      ? 'S3_ACCESS_KEY, S3_SECRET_KEY: give a pair that may get, put, delete and list in the bucket'
      : 'S3_BUCKET_NAME, S3_ENDPOINT_URL, S3_REGION: give a bucket that exists, on a server that answers';
  return new StorageUnavailable(fault, `cannot use the bucket ${where} (${reason}); ${advice}`, error);
}

function faultOf(error: unknown): StorageFault {
  const status = statusOf(error);
  const isRefused = status === 401 || status === 403;
  const hasNone = error instanceof Error && error.name === 'CredentialsProviderError';
  return isRefused || hasNone ? 's3_credentials_error' : 's3_client_error';
}
