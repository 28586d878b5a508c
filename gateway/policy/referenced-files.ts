/** A policy file may name other files, such as for overrides and key sets. They must be in the same folder. */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { readRegularFile } from '#shared/regular-file.ts';
import { Mistake, type Path } from './problems.ts';

export type ReadReferenced = (name: string) => string;

export function referencedReader(file: string): ReadReferenced {
  return (name) => readRegularFile(join(dirname(file), name));
}

/** @returns the start of the SHA-256 of the texts together. With it operators see whether they are the same. */
export function versionOf(...texts: readonly string[]): string {
  const hash = createHash('sha256');
  // A joined text would need the memory of large files a second time.
  for (const text of texts) hash.update(text);
  return hash.digest('hex').slice(0, 12);
}

const TOTAL_MAX = 67_108_864;

/** The files that one policy file names. Each is read once; their total size is limited. */
export class ReferencedFiles {
  readonly #read: ReadReferenced;
  readonly texts = new Map<string, string>();
  /** Numbers of entries of the files that have one entry a line, by name. */
  readonly sizes = new Map<string, number>();
  /** These tell what may be wrong with a file that can be used, and where the policy file names it. */
  readonly notes: [at: Path, text: string, fix: string][] = [];
  #total = 0;

  constructor(read: ReadReferenced) {
    this.#read = read;
  }

  text(name: string, bytesMax: number): string {
    let text = this.texts.get(name);
    if (text === undefined) {
      try {
        text = this.#read(name);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === undefined) throw error;
        throw new Mistake(
          `${name} cannot be read (${code})`,
          'put the file into the folder of the policy file',
        );
      }
      this.texts.set(name, text);
      this.#total += text.length;
    }
    if (this.#total > TOTAL_MAX)
      throw new Mistake(
        'the files that this one names have more than 64 MiB together',
        'remove what is not needed',
      );
    if (text.length > bytesMax)
      throw new Mistake(`${name} has more than ${bytesMax} bytes`, 'remove what is not needed');
    return text;
  }
}
