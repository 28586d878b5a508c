/**
 * Parses an upload while it arrives: fields first, then one file, of which only a piece is in memory. This is the only
 * file that uses busboy, which is loaded with the first form.
 */
import type { Readable } from 'node:stream';

/** The form itself is malformed. The message is for the caller. */
export class BadForm extends Error {
  readonly code: 'PreconditionFailed' | 'InvalidArgument' | 'MalformedPOSTRequest';

  constructor(code: BadForm['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'BadForm';
    this.code = code;
  }
}

/** Our own grants have five fields, those of S3 have ten. A policy has about 300 bytes. */
const limits = {
  fields: 20,
  fieldNameSize: 100,
  fieldSize: 8_192,
  files: 1,
  parts: 21,
  headerPairs: 20,
  headerSize: 4_096,
} as const;

const CLOSED_EARLY = 'The connection closed before the end of the body';

/**
 * Calls `onFile` when the file begins, with the fields before it. Fields after it are ignored, as S3 does.
 *
 * @param onFile reads the file, leaves it, or destroys it to get no more of it
 * @returns the result of `onFile`; the caller reads or drops the rest of the body
 * @throws BadForm, or the error of `onFile`
 */
export async function readUpload<T>(
  body: Readable,
  contentType: string,
  onFile: (fields: ReadonlyMap<string, string>, file: Readable) => Promise<T>,
): Promise<T> {
  const parser = await parserOf(contentType);
  const fields = new Map<string, string>();
  let file: Readable | null = null;

  const found = new Promise<T>((resolve, reject) => {
    const refuse = (code: BadForm['code'], message: string, cause?: unknown): void =>
      reject(new BadForm(code, message, cause));

    parser.on('field', (name, value, isNameCut, isValueCut) => {
      if (file !== null) return;
      if (isNameCut || isValueCut) refuse('MalformedPOSTRequest', 'A field of the form is too long');
      else if (fields.has(name)) refuse('InvalidArgument', `The form has the field "${name}" twice`);
      else fields.set(name, value);
    });
    parser.on('fieldsLimit', () => refuse('MalformedPOSTRequest', 'The form has too many fields'));
    parser.on('partsLimit', () => refuse('MalformedPOSTRequest', 'The form has too many parts'));
    parser.on('file', (name, stream) => {
      // A reader gets errors. Without a reader they do not matter.
      stream.on('error', ignore);
      if (name !== 'file')
        return refuse('InvalidArgument', `The file must be in the part "file", not "${name}"`);
      file = stream;
      onFile(fields, stream).then(resolve, reject);
    });
    parser.on('finish', () => {
      if (file === null) refuse('InvalidArgument', 'POST requires exactly one file upload per request.');
    });

    /** The body ended early or is not a form, so a reader of the file must not wait for the rest. */
    const breakOff = (cause: Error): void => {
      if (file === null) refuse('MalformedPOSTRequest', 'The body is not a form', cause);
      else file.destroy(cause);
    };
    parser.on('error', (error) => breakOff(error instanceof Error ? error : new Error(String(error))));
    body.on('error', breakOff);
    body.on('close', () => {
      if (!body.readableEnded) breakOff(new Error(CLOSED_EARLY));
    });
    // The body may have ended while the parser was loaded.
    if (body.destroyed && !body.readableEnded) breakOff(new Error(CLOSED_EARLY));
    else body.pipe(parser);
  });
  try {
    return await found;
  } finally {
    body.unpipe(parser);
  }
}

function ignore(): void {}

async function parserOf(contentType: string) {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) {
    throw new BadForm('PreconditionFailed', 'POST must be of the enclosure-type multipart/form-data');
  }
  const { Busboy } = await import('@fastify/busboy');
  try {
    return new Busboy({ headers: { 'content-type': contentType }, limits });
  } catch (error) {
    throw new BadForm('MalformedPOSTRequest', 'Content-Type must name the boundary of the form', error);
  }
}
