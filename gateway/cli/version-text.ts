import { VERSION } from '#shared/version.ts';

export const VERSION_TEXT = `${VERSION} (Node.js ${process.versions.node})`;
