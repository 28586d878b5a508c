/** Where the settings store files: in a bucket if one is named, otherwise in a folder. Pure. */
import { resolve } from 'node:path';
import type { SettingsReader } from '#shared/configuration.ts';

export const storageVariables = [
  {
    name: 'STORAGE_PATH',
    default: './data/uploads',
    meaning: 'folder of uploaded files; not used with `S3_BUCKET_NAME`',
  },
  {
    name: 'S3_BUCKET_NAME',
    meaning: 'bucket of uploaded files; unset: files are in `STORAGE_PATH`',
  },
  {
    name: 'S3_ENDPOINT_URL',
    meaning: 'address of the S3 server, which browsers must be able to reach too; unset: AWS',
  },
  { name: 'S3_REGION', default: 'us-east-1', meaning: 'region of the bucket' },
  {
    name: 'S3_ACCESS_KEY',
    meaning: 'key id for the bucket; both keys unset: credentials that the AWS SDK finds',
  },
  { name: 'S3_SECRET_KEY', meaning: 'secret key for the bucket' },
  {
    name: 'S3_FORCE_PATH_STYLE',
    default: '0',
    meaning: '1 puts the name of the bucket into the path, which most servers other than AWS need',
  },
  {
    name: 'STORAGE_TOTAL_MIB',
    default: '102400',
    meaning: 'maximum size of all uploaded files in MiB, a tenth of it for one workspace; 0: no limits',
  },
] as const;

const MEBIBYTE = 1_048_576;
const MIB_MAX = 999_999_999;

type StorageVariable = (typeof storageVariables)[number]['name'];

type Read = Pick<SettingsReader<StorageVariable>, 'text' | 'flag' | 'parse' | 'integer'>;

/** @param cwd the folder that a relative path starts from */
export function readStorageLocation(read: Read, cwd: string): StorageLocation {
  const path = resolve(cwd, read.text('STORAGE_PATH'));
  const endpoint = read.parse('S3_ENDPOINT_URL', null, parseS3Endpoint);
  const region = read.parse('S3_REGION', '', (value) => {
    if (/^[a-z0-9-]{1,64}$/i.test(value)) return value;
    throw new Error(`"${value}" is not a region; give one such as us-east-1, or auto`);
  });
  const forcePathStyle = read.flag('S3_FORCE_PATH_STYLE');
  const isForS3 = endpoint !== null || read.text('S3_ACCESS_KEY') !== '';
  const bucket = read.parse('S3_BUCKET_NAME', '', (value) => {
    if (value === '' && isForS3)
      throw new Error('unset, although other S3 settings are there; name the bucket, or unset them');
    if (value === '' || /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value)) return value;
    throw new Error(
      `"${value}" is not a bucket's name; give 3 to 63 lower-case letters, digits, dots and hyphens`,
    );
  });
  return bucket === '' ? { kind: 'disk', path } : { kind: 's3', bucket, endpoint, region, forcePathStyle };
}

/** Reads the maximum number of bytes of all files; null for no limit. */
export function readStorageBytesMax(read: Read): number | null {
  const mebibytes = read.integer('STORAGE_TOTAL_MIB', 0, MIB_MAX);
  return mebibytes === 0 ? null : mebibytes * MEBIBYTE;
}

/** Reads the credentials for S3; null if none were given. */
export function readS3Credentials(read: Read): S3Credentials | null {
  const secretKey = read.text('S3_SECRET_KEY');
  return read.parse('S3_ACCESS_KEY', null, (accessKey) => {
    if (accessKey !== '' && secretKey !== '') return { accessKey, secretKey };
    if (accessKey === '' && secretKey === '') return null;
    throw new Error('a key pair has two parts; give S3_ACCESS_KEY and S3_SECRET_KEY, or leave both unset');
  });
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
