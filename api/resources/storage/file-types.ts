/**
 * The types of files that may be uploaded. Each extension has one MIME type, so the type of a stored file follows
 * from its name alone, whatever its sender said. Pure.
 */

export const mimeTypes = {
  heic: 'image/heic',
  png: 'image/png',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  ico: 'image/x-icon',
  pdf: 'application/pdf',
  eml: 'message/rfc822',
  txt: 'text/plain',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  avi: 'video/x-msvideo',
  mkv: 'video/x-matroska',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
  zip: 'application/zip',
  rar: 'application/vnd.rar',
  '7z': 'application/x-7z-compressed',
  tar: 'application/x-tar',
} as const satisfies Readonly<Record<string, string>>;

export type Extension = keyof typeof mimeTypes;

export const extensions = Object.keys(mimeTypes) as readonly Extension[];

/** @param text an extension in any case @returns the known extension; null if such files are not accepted */
export function knownExtension(text: string): Extension | null {
  const lower = text.toLowerCase();
  return extensions.find((extension) => extension === lower) ?? null;
}

/** Whether this is the type of the extension. Parameters and case are ignored. */
export function isTypeOf(extension: Extension, mimeType: string): boolean {
  return (mimeType.split(';', 1)[0] ?? '').trim().toLowerCase() === mimeTypes[extension];
}

/**
 * Tells a browser how to treat a stored file. Pictures, video and sound are shown. All other files are downloaded,
 * because a viewer may run the content of a document.
 */
export function presentationOf(extension: string | null): {
  readonly contentType: string;
  readonly isInline: boolean;
} {
  const known = extension === null ? null : knownExtension(extension);
  if (known === null) return { contentType: 'application/octet-stream', isInline: false };
  const contentType = mimeTypes[known];
  return { contentType, isInline: /^(image|video|audio)\//.test(contentType) };
}
