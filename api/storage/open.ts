/** Opens the store of the settings. The other one is not loaded, because the SDK of S3 takes a tenth of the start. */
import type { Signer } from '#api/auth/signer.ts';
import type { Random } from '#api/values/ids.ts';
import type { Clock } from '#shared/clock.ts';
import { createDiskStorage } from './disk.ts';
import type { S3Credentials, StorageLocation } from './location.ts';
import type { Storage } from './storage.ts';

interface StorageOptions {
  readonly location: StorageLocation;
  readonly credentials: S3Credentials | null;
  /** Public address of the API, without a slash at the end. */
  readonly publicUrl: string;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly random: Random;
}

/** Opens the store. It does not check that the store works; `check` does. */
export async function openStorage({ location, credentials, ...parts }: StorageOptions): Promise<Storage> {
  switch (location.kind) {
    case 'disk':
      return createDiskStorage({ folder: location.path, ...parts });
    case 's3': {
      const { createS3Storage } = await import('./s3.ts');
      return createS3Storage(location, credentials);
    }
  }
}
