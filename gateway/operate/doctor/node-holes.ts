/**
 * Versions of Node.js with known security holes that concern the gateway. The oldest ones without such holes are of
 * 2026-11-11. Among others, they mend crashes of TLS servers (CVE-2026-123864, CVE-2026-123866, CVE-2026-126051).
 */
const MENDED = { LTS: [24, 22, 3], newest: [26, 13, 1] } as const;

/** @returns what is wrong and how to correct it; null if nothing is known */
export function nodeHole(version: string): { message: string; fix: string } | null {
  const isLts = version.startsWith(`${MENDED.LTS[0]}.`);
  if (!isBefore(version, isLts ? MENDED.LTS : MENDED.newest)) return null;
  return {
    message: `Node.js ${version} has known security holes in TLS`,
    fix: `use ${MENDED.newest.join('.')} or later, or ${MENDED.LTS.join('.')} or later of version ${MENDED.LTS[0]}`,
  };
}

/** Compares two versions. Missing parts of the limit are 0. */
export function isBefore(version: string, limit: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  const at = limit.findIndex((part, i) => part !== (parts[i] ?? 0));
  return at >= 0 && (parts[at] ?? 0) < (limit[at] ?? 0);
}
