/** The files of the page, by name. */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

export interface PageFile {
  readonly content: Buffer;
  readonly type: string;
  readonly etag: string;
}

const FOLDER = join(import.meta.dirname, 'page');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

let files: Promise<ReadonlyMap<string, PageFile>> | null = null;

/** @returns null where there is no such file */
export async function pageFile(name: string): Promise<PageFile | null> {
  files ??= readAll();
  return (await files).get(name) ?? null;
}

async function readAll(): Promise<ReadonlyMap<string, PageFile>> {
  const read = (await readdir(FOLDER)).flatMap((name) => {
    const type = TYPES[extname(name)];
    return type === undefined ? [] : [readOne(name, type)];
  });
  return new Map(await Promise.all(read));
}

async function readOne(name: string, type: string): Promise<[string, PageFile]> {
  const content = await readFile(join(FOLDER, name));
  return [name, { content, type, etag: `"${hash('sha256', content).slice(0, 16)}"` }];
}
