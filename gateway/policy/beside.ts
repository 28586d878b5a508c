/** What a policy file names is read from the folder that it is in. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Mistake } from './problems.ts';

/** @throws what kept the file from being read */
export type ReadBeside = (name: string) => string;

/** @param file the policy file, or a link to it */
export function readerBeside(file: string): ReadBeside {
  return (name) => readFileSync(join(dirname(file), name), 'utf8');
}

const TOTAL_MAX = 33_554_432;

/** The files that one policy file names, each read once. */
export class Beside {
  readonly #read: ReadBeside;
  readonly texts = new Map<string, string>();
  #total = 0;

  constructor(read: ReadBeside) {
    this.#read = read;
  }

  /** @throws Mistake that says why the file cannot be used */
  text(name: string, bytesMax: number): string {
    let text = this.texts.get(name);
    if (text === undefined) {
      try {
        text = this.#read(name);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === undefined) throw error;
        throw new Mistake(`${name} cannot be read (${code})`, 'put the file beside the policy file');
      }
      this.texts.set(name, text);
      this.#total += text.length;
    }
    if (this.#total > TOTAL_MAX)
      throw new Mistake('the files beside this one have more than 32 MiB', 'remove what is not needed');
    if (text.length > bytesMax)
      throw new Mistake(`${name} has more than ${bytesMax} bytes`, 'remove what is not needed');
    return text;
  }
}
