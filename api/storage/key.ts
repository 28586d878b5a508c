/**
 * Keys of stored files: `{workspaceId}/{public|private}/{name}`. A name is `{file}` or, for an answer to a question,
 * `surveys/{surveyId}/elements/{elementId}/{file}`. The API makes every key; a key that comes back in a path is taken
 * only in this form, so nothing else can be addressed, however it is spelled. Pure.
 */

const accessTypes = ['public', 'private'] as const;
export type Access = (typeof accessTypes)[number];

export interface FileLocation {
  readonly workspaceId: string;
  readonly access: Access;
  /** null: not tied to a question, as old clients and the management API upload. */
  readonly element: { readonly surveyId: string; readonly elementId: string } | null;
  readonly fileName: string;
}

/** What S3 allows for a key. */
const KEY_BYTES_MAX = 1024;
const ELEMENT_PATH = /^surveys\/([0-9a-z]{1,64})\/elements\/([\w-]{1,128})\/([^/]+)$/;

export function isAccess(text: string): text is Access {
  return accessTypes.some((access) => access === text);
}

export function keyOf(location: FileLocation): string {
  return [location.workspaceId, location.access, ...nameParts(location)].join('/');
}

/** The path under which the API serves the file. */
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
 * @param name the path's rest behind the access type, percent-decoded once
 * @returns null when no file of ours can have this name
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
 * Why a name is refused outright rather than looked for; null when it may be looked for. A name that would climb when
 * it is decoded once more is refused as well: whoever sends it wants some other server to do so.
 */
export function nameProblem(name: string): string | null {
  for (const reading of [name, decoded(name), decoded(decoded(name))]) {
    if (/[\p{Cc}\\]/u.test(reading)) return 'File name must not contain backslashes or control characters';
    if (reading.split('/').some((part) => part === '' || part === '.' || part === '..')) {
      return 'File name must not contain empty, . or .. segments';
    }
  }
  return extensionOf(name) === null ? 'File name must have an extension' : null;
}

/** What follows the last dot of the last part, as it is; null when there is nothing. */
export function extensionOf(name: string): string | null {
  return /\.([^./\\]+)$/.exec(name)?.[1] ?? null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing: there is no other reading.
    return text;
  }
}
