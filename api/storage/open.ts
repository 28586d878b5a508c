import { createDiskStorage, type DiskOptions } from './disk.ts';
import type { S3Credentials, StorageLocation } from './location.ts';
import type { Storage } from './storage.ts';

interface StorageOptions extends Omit<DiskOptions, 'folder'> {
  readonly location: StorageLocation;
  readonly credentials: S3Credentials | null;
}

/** Opens the store without a check that it works. The SDK of S3 takes a tenth of the start, so only its users load it. */
export async function openStorage({ location, credentials, ...parts }: StorageOptions): Promise<Storage> {
  if (location.kind === 'disk') return createDiskStorage({ folder: location.path, ...parts });
  const { createS3Storage } = await import('./s3.ts');
  return createS3Storage(location, credentials);
}
