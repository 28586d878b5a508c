/** Where the settings store files: in a bucket if one is named, otherwise in a folder. Pure. */
import { isAbsolute, resolve } from 'node:path';

export const storageVariables = [
  {
    name: 'STORAGE_PATH',
    default: './data/uploads',
    meaning: 'folder of uploaded files; not used with `S3_BUCKET_NAME`',
  },
  {
    name: 'S3_BUCKET_NAME',
    default: '',
    meaning: 'bucket of uploaded files; unset: files are in `STORAGE_PATH`',
  },
  {
    name: 'S3_ENDPOINT_URL',
    default: '',
    meaning: 'address of the S3 server, which browsers must be able to reach too; unset: AWS',
  },
  { name: 'S3_REGION', default: 'us-east-1', meaning: 'region of the bucket' },
  {
    name: 'S3_ACCESS_KEY',
    default: '',
    meaning:
      'key id for the bucket; both keys unset: credentials that the AWS SDK finds, such as the role of the machine',
  },
  { name: 'S3_SECRET_KEY', default: '', meaning: 'secret key for the bucket' },
  {
    name: 'S3_FORCE_PATH_STYLE',
    default: '0',
    meaning: '1 puts the name of the bucket into the path, which most servers other than AWS need',
  },
] as const;

type StorageVariable = (typeof storageVariables)[number]['name'];

/** Reads one variable with a parser that throws. Errors are reported with the name of the variable. */
type Parse = <T>(name: StorageVariable, fallback: T, parser: (value: string) => T) => T;

/** @param cwd the folder that a relative path starts from */
export function readStorageLocation(parse: Parse, cwd: string): StorageLocation {
  const path = parse('STORAGE_PATH', '', (value) => parseStoragePath(value, cwd));
  const endpoint = parse('S3_ENDPOINT_URL', null, parseS3Endpoint);
  const region = parse('S3_REGION', '', parseS3Region);
  const forcePathStyle = parse('S3_FORCE_PATH_STYLE', false, parseForcePathStyle);
  const hasKey = parse('S3_ACCESS_KEY', '', String) !== '';
  const bucket = parse('S3_BUCKET_NAME', null, (value) => {
    if (value === '' && (endpoint !== null || hasKey)) {
      throw new Error('unset, although other S3 settings are there; name the bucket, or unset them');
    }
    return parseBucketName(value);
  });
  return bucket === null ? { kind: 'disk', path } : { kind: 's3', bucket, endpoint, region, forcePathStyle };
}

/** Reads the credentials for S3; null if none were given. */
export function readS3Credentials(parse: Parse): S3Credentials | null {
  const secretKey = parse('S3_SECRET_KEY', '', String);
  return parse('S3_ACCESS_KEY', null, (accessKey) => parseS3Credentials(accessKey, secretKey));
}

interface DiskLocation {
  readonly kind: 'disk';
  /** Absolute path of the folder. */
  readonly path: string;
}

export interface S3Location {
  readonly kind: 's3';
  readonly bucket: string;
  /** Address of the server; null for AWS. */
  readonly endpoint: string | null;
  readonly region: string;
  /** Whether the name of the bucket is in the path instead of the host name. */
  readonly forcePathStyle: boolean;
}

export type StorageLocation = DiskLocation | S3Location;

export interface S3Credentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** @throws Error with the problem, without the name of the variable */
function parseStoragePath(value: string, cwd: string): string {
  if (value.includes('\0')) throw new Error('a path cannot contain a NUL character');
  return isAbsolute(value) ? value : resolve(cwd, value);
}

/** @returns null if it is unset @throws Error */
function parseBucketName(value: string): string | null {
  if (value === '') return null;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value)) {
    throw new Error(
      `"${value}" is not a bucket's name; give 3 to 63 lower-case letters, digits, dots and hyphens`,
    );
  }
  return value;
}

/** @returns null if it is unset @throws Error */
function parseS3Endpoint(value: string): string | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '';
  if (!isPlain || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(
      'not the address of an S3 server; give one such as https://s3.example.com, or leave it unset',
    );
  }
  return value.replace(/\/+$/, '');
}

function parseS3Region(value: string): string {
  if (!/^[a-z0-9-]{1,64}$/i.test(value)) {
    throw new Error(`"${value}" is not a region; give one such as us-east-1, or auto`);
  }
  return value;
}

function parseForcePathStyle(value: string): boolean {
  if (['1', 'true'].includes(value.toLowerCase())) return true;
  if (['0', 'false'].includes(value.toLowerCase())) return false;
  throw new Error(`"${value}" is neither 0 nor 1`);
}

/** @returns null if both are unset @throws Error if one is */
function parseS3Credentials(accessKey: string, secretKey: string): S3Credentials | null {
  if (accessKey === '' && secretKey === '') return null;
  if (accessKey === '' || secretKey === '') {
    throw new Error('a key pair has two parts; give S3_ACCESS_KEY and S3_SECRET_KEY, or leave both unset');
  }
  return { accessKey, secretKey };
}
