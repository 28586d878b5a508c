/**
 * Keys of stored files: `{workspaceId}/{public|private}/{name}`. A name is `{file}` or, for an answer to a question,
 * `surveys/{surveyId}/elements/{elementId}/{file}`. The API makes every key. A key in a path is accepted only in this
 * form, so a path cannot name anything else. Pure.
 */
import { percentDecoded } from '#api/values/percent-encoding.ts';

const accessTypes = ['public', 'private'] as const;
export type Access = (typeof accessTypes)[number];

export interface FileLocation {
  readonly workspaceId: string;
  readonly access: Access;
  /**
   * The question that the file belongs to; null if there is none. Old clients and the management API upload such files.
   */
  readonly element: { readonly surveyId: string; readonly elementId: string } | null;
  readonly fileName: string;
}

/** Maximum length in bytes, as in S3. */
const KEY_BYTES_MAX = 1024;
const ELEMENT_PATH = /^surveys\/([0-9a-z]{1,64})\/elements\/([\w-]{1,255})\/([^/]+)$/;

export function isAccess(text: string): text is Access {
  return accessTypes.some((access) => access === text);
}

export function keyOf(location: FileLocation): string {
  return [location.workspaceId, location.access, ...nameParts(location)].join('/');
}

/** Returns the path at which the API serves the file. */
export function pathOf(location: FileLocation): string {
  return [
    '/storage',
    location.workspaceId,
    location.access,
    ...nameParts(location).map(encodeURIComponent),
  ].join('/');
}

function nameParts({ element, fileName }: FileLocation): readonly string[] {
  return element === null
    ? [fileName]
    : ['surveys', element.surveyId, 'elements', element.elementId, fileName];
}

/**
 * @param name the path after the access type, percent-decoded once
 * @returns null if no file of ours can have this name
 */
export function locationOf(workspaceId: string, access: Access, name: string): FileLocation | null {
  if (nameProblem(name) !== null) return null;
  const [, surveyId, elementId, fileName] = access === 'private' ? (ELEMENT_PATH.exec(name) ?? []) : [];
  const location: FileLocation | null =
    surveyId !== undefined && elementId !== undefined && fileName !== undefined
      ? { workspaceId, access, element: { surveyId, elementId }, fileName }
      : name.includes('/')
        ? null
        : { workspaceId, access, element: null, fileName: name };
  return location !== null && Buffer.byteLength(keyOf(location)) <= KEY_BYTES_MAX ? location : null;
}

/**
 * Returns why a name is refused without a lookup; null if it can be looked up. It also refuses names that would leave
 * the folder if they were decoded once more, because they are meant to trick another server.
 */
export function nameProblem(name: string): string | null {
  for (const reading of [name, percentDecoded(name), percentDecoded(percentDecoded(name))]) {
    if (/[\p{Cc}\\]/u.test(reading)) return 'File name must not contain backslashes or control characters';
    if (reading.split('/').some((part) => part === '' || part === '.' || part === '..')) {
      return 'File name must not contain empty, . or .. segments';
    }
  }
  return extensionOf(name) === null ? 'File name must have an extension' : null;
}

/** Returns the extension: the text after the last dot of the last part. null if there is none. */
export function extensionOf(name: string): string | null {
  return /\.([^./\\]+)$/.exec(name)?.[1] ?? null;
}
