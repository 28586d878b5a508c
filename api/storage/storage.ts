/**
 * Where uploaded files live: one interface, two stores (`disk.ts`, `s3.ts`).
 *
 * A file goes through three hands. The API grants an upload: a form that is bound to one key, one type and one size,
 * and ends after two minutes. The client posts the form with the file to the store: to S3 itself, or to the API's own
 * upload target when files live on disk. Reading and deleting go through the API again, so a bucket stays private.
 *
 * A file appears whole or not at all, under a key that nobody but the API chooses. When a store cannot do its work it
 * throws StorageUnavailable, which says what the operator can do.
 */
import type { Readable } from 'node:stream';
import type { Millis, Seconds } from '#shared/clock.ts';

/** How long a grant may be used. */
export const GRANT_SECONDS: Seconds = 120;

export interface NewObject {
  /** `{workspaceId}/{public|private}/{name}`, see `key.ts`. */
  readonly key: string;
  /** MIME type, without parameters. */
  readonly contentType: string;
  /** The largest size that is taken. Nothing at all is a file too. */
  readonly bytesMax: number;
}

/** What a client posts, as `multipart/form-data`: every field in order, then the part `file`. */
export interface UploadForm {
  /** Absolute. */
  readonly url: string;
  /** `key`, `Content-Type`, `success_action_status` and what the store signed them with. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Both ends belong to it: 0 to 0 is the first byte. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** One version of one file: what it says of itself and what it reads belong together. */
export interface OpenObject {
  readonly size: number;
  /** In quotes, strong (RFC 9110 8.8.3). */
  readonly etag: string;
  readonly modifiedAt: Millis;
  /**
   * At most once. The stream closes the object at its end, or when it is destroyed.
   *
   * @returns null when the version has gone since it was opened
   */
  read(range: ByteRange): Promise<Readable | null>;
  /** For those who do not read. Harmless afterwards. */
  close(): Promise<void>;
}

export interface Storage {
  /** Promises nothing about what the client does with it. The same key may be granted again. */
  grant(object: NewObject): Promise<UploadForm>;
  /**
   * Stores a whole file without a grant; an older one under the key gives way.
   *
   * @throws StorageUnavailable
   */
  put(object: Pick<NewObject, 'key' | 'contentType'>, file: Buffer): Promise<void>;
  /** @returns null when there is no such file */
  open(key: string): Promise<OpenObject | null>;
  /** Also when it was not there. */
  delete(key: string): Promise<void>;
  /** Takes uploads that arrive at the API; null when the store takes them itself. */
  readonly receiver: UploadReceiver | null;
  /** @throws StorageUnavailable when nothing could be stored as things are */
  check(): Promise<void>;
  /** Removes what uploads that never ended left behind. @throws StorageUnavailable */
  sweep(): Promise<void>;
  close(): Promise<void>;
}

export type Admission =
  | { readonly kind: 'granted'; readonly object: NewObject }
  /** `reason` is for the caller. */
  | { readonly kind: 'refused'; readonly reason: string };

export type Received =
  | { readonly kind: 'stored'; readonly size: number; readonly etag: string }
  | { readonly kind: 'tooLarge' };

export interface UploadReceiver {
  /** Do these fields carry a grant of ours that still holds? */
  admit(fields: ReadonlyMap<string, string>): Admission;
  /**
   * Reads to the end of the file, or until it is too large. On any outcome but `stored` nothing is left behind.
   *
   * @throws StorageUnavailable when it cannot be written, UploadAborted when the stream ends early
   */
  receive(object: NewObject, file: AsyncIterable<Buffer>): Promise<Received>;
}

/** The sender went away in the middle of a file. */
export class UploadAborted extends Error {
  constructor(cause: unknown) {
    super('The upload ended before the file was complete', { cause });
    this.name = 'UploadAborted';
  }
}

export type StorageFault =
  /** S3 does not accept the key pair, or the pair may not do this. */
  | 's3_credentials_error'
  /** S3 does not answer, or does not know the bucket. */
  | 's3_client_error'
  | 'disk_error';

/** The store of the files cannot do its work; the message is fit for the operator. */
export class StorageUnavailable extends Error {
  readonly fault: StorageFault;

  constructor(fault: StorageFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StorageUnavailable';
    this.fault = fault;
  }
}
