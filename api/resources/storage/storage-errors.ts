import { ApiError } from '#api/errors.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';

/** Translates errors of the store, which are not the caller's fault. The log tells the operator what to do. */
export async function withStorageErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (!(cause instanceof StorageUnavailable)) throw cause;
    const isDisk = cause.fault === 'disk_error';
    const text = isDisk
      ? 'Internal server error'
      : 'File storage is not configured correctly. Check the S3 settings; the log says what is wrong.';
    const details = isDisk ? {} : { storage_error_code: cause.fault };
    throw new ApiError('internal_server_error', text, { details, cause });
  }
}
