/** The gateway's own access log (docs/operating.md). It has digests, so addresses and keys are not needed. */
import { LOGGED_DECISIONS, type LoggedDecision } from '#gateway/observe/log-line.ts';
import { documentIn, numberIn, objectIn } from './json-fields.ts';
import type { LoggedRequest } from './logged-request.ts';
import { timeOf } from './times.ts';

const DIGEST = /^[\w-]{22}$/;

export function floodgateReader(): (line: string) => LoggedRequest | null {
  return (line) => {
    const fields = documentIn(line);
    const identities = objectIn(fields?.identities);
    const decision = LOGGED_DECISIONS.find((one: LoggedDecision) => one === fields?.decision);
    if (fields === null || identities === null || decision === undefined) return null;
    const at = timeOf(fields.time);
    if (Number.isNaN(at)) return null;
    return {
      at,
      method: textIn(fields.method),
      target: textIn(fields.path) ?? '',
      status: numberIn(fields.status) ?? 0,
      bytes: numberIn(fields.bytes),
      sender: null,
      digests: {
        decision,
        identities: new Map(Object.entries(identities).filter(hasDigest)),
        address: isDigest(fields.address) ? fields.address : null,
        unproven: textsIn(fields.unproven),
        proves: fields.proves === true,
        plan: textIn(fields.plan),
        policies: [...textsIn(fields.policies), ...textsIn(fields.uncounted)],
      },
    };
  };
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && DIGEST.test(value);
}

function hasDigest(entry: [name: string, value: unknown]): entry is [name: string, digest: string] {
  return isDigest(entry[1]);
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

/** @returns null if there is no text. Unlike in other logs, `-` has no special meaning. */
function textIn(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
