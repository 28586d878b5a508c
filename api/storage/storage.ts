/**
 * Stores uploaded files: one interface with two stores (`disk.ts`, `s3.ts`).
 *
 * The API grants an upload: a form for one key, one type and one size, valid for two minutes. The client posts the form
 * with the file to the store: to S3, or to the API's own upload route if files are on disk. Reading and deleting go
 * through the API, so a bucket stays private.
 *
 * A file appears whole or not at all, under a key that only the API chooses. A store that cannot work throws
 * StorageUnavailable, which tells the operator what to do.
 *
 * Words: a *key* names a file (key.ts); a *grant* is the permission for one upload; a *claim* says that an answer or a
 * survey names the file (claims.ts). A file that nothing names within a day is deleted (files.ts).
 *
 * @example
 *   const { url, fields } = await storage.grant({ key, contentType: 'image/png', bytesMax: 5_000_000 });
 *   const file = await storage.find(key); // null if nothing was uploaded
 */
import type { Readable } from 'node:stream';
import type { Seconds } from '#shared/clock.ts';

/** How long a grant is valid. */
export const GRANT_SECONDS: Seconds = 120;

export interface NewObject {
  /** `{workspaceId}/{public|private}/{name}`, see `key.ts`. */
  readonly key: string;
  /** MIME type, without parameters. */
  readonly contentType: string;
  /** The maximum size. A file may be empty. */
  readonly bytesMax: number;
}

/** A form for `multipart/form-data`: every field in order, then the part `file`. */
export interface UploadForm {
  /** Absolute address to which the form is sent. */
  readonly url: string;
  /** `key`, `Content-Type`, `success_action_status` and the signature of the store. */
  readonly fields: Readonly<Record<string, string>>;
}

/** A range including both ends: 0 to 0 is the first byte. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** One version of a file. */
export interface StoredFile {
  readonly size: number;
  /** Strong validator with quotes (RFC 9110 8.8.3). */
  readonly etag: string;
}

/** Every function throws StorageUnavailable if the store cannot work. */
export interface Storage {
  /** Grants an upload of one file. */
  grant(object: NewObject): Promise<UploadForm>;
  /** Stores a whole file, and replaces an older one under the key. */
  put(object: Pick<NewObject, 'key' | 'contentType'>, file: Buffer): Promise<void>;
  /** @returns null if there is no such file */
  find(key: string): Promise<StoredFile | null>;
  /** @param range at least one byte @returns null if this version was replaced or deleted */
  read(key: string, version: StoredFile, range: ByteRange): Promise<Readable | null>;
  /** Succeeds even if the file does not exist. */
  delete(key: string): Promise<void>;
  /** Fails if nothing can be stored now. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export type StorageFault =
  /** S3 does not accept the key pair, or the pair lacks a right. */
  | 's3_credentials_error'
  /** S3 does not answer, or does not know the bucket. */
  | 's3_client_error'
  | 'disk_error';

/** The store cannot work. The message is for the operator. */
export class StorageUnavailable extends Error {
  readonly fault: StorageFault;

  constructor(fault: StorageFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StorageUnavailable';
    this.fault = fault;
  }
}
