/** The gateway's own access log (docs/operating.md). It has digests, so addresses and keys are not needed. */
import { LOGGED_DECISIONS, type LoggedDecision } from '#gateway/observe/log-line.ts';
import { documentIn, durationIn, fieldsOf, numberIn, numberOf } from './fields.ts';
import type { LineReader, LoggedRequest } from './logged-request.ts';
import { timeOf } from './times.ts';

const DECISIONS: readonly string[] = LOGGED_DECISIONS;
const DIGEST = /^[\w-]{22}$/;
const NONE: readonly string[] = [];

export function floodgateReader(): LineReader {
  return { format: 'floodgate', read: (line) => readUsual(line) ?? readAny(line) };
}

/** A line as the gateway writes it. An expression reads its fields twice as fast as JSON.parse. */
const USUAL = new RegExp(
  [
    String.raw`^\{"time":"([^"]{24})","method":"([A-Z]+)","path":"([^"\\]*)","status":(\d{3}|null)`,
    String.raw`"decision":"(\w+)","id":(?:null|"\w+"),"policies":\[([^\]]*)\](?:,"uncounted":\[([^\]]*)\])?,"policy":(?:null|"[^"]*")`,
    String.raw`"identities":\{([^}]*)\},"address":(?:null|"([\w-]{22})"),"unproven":\[([^\]]*)\],"proves":(\w+)`,
    String.raw`(?:"plan":(?:null|"([^"]*)"),)?.*"bytes":(\d+),"upstreamMs":[^}]*"durationMs":([\d.]+),"cut":`,
  ].join(','),
);

/** @returns null if the line has another shape */
function readUsual(line: string): LoggedRequest | null {
  const fields = USUAL.exec(line);
  if (fields === null) return null;
  const [
    ,
    time = '',
    method = '',
    target = '',
    status = '',
    decision = '',
    policies = '',
    uncounted = '',
    pairs = '',
  ] = fields;
  const at = Date.parse(time);
  if (Number.isNaN(at) || !DECISIONS.includes(decision)) return null;
  // `"name":"DIGEST","name":"DIGEST"`: the texts between the quotes are names, digests and what separates them.
  const texts = pairs.split('"');
  const identities: string[] = [];
  for (let i = 1; i < texts.length; i += 4) identities.push(texts[i] ?? '', texts[i + 2] ?? '');
  const unproven = fields[10] ?? '';
  return {
    at,
    method,
    target,
    status: status === 'null' ? 0 : Number(status),
    bytes: Number(fields[13]),
    durationMs: Number(fields[14]),
    sender: null,
    digests: {
      decision: decision as LoggedDecision,
      identities,
      address: fields[9] ?? null,
      unproven: unproven === '' ? NONE : unproven.slice(1, -1).split('","'),
      proves: fields[11] === 'true',
      plan: fields[12] ?? null,
      policies: [policies, uncounted].filter((names) => names !== '').join(','),
    },
  };
}

/** Reads a line that another program has rewritten. */
function readAny(line: string): LoggedRequest | null {
  const fields = documentIn(line);
  if (fields === null) return null;
  const at = timeOf(fields.time);
  const decision = stringIn(fields.decision);
  const identities = fieldsOf(fields.identities);
  if (Number.isNaN(at) || !DECISIONS.includes(decision) || identities === null) return null;
  const address = stringIn(fields.address);
  return {
    at,
    method: stringIn(fields.method) || null,
    target: stringIn(fields.path),
    status: numberOf(fields, 'status'),
    bytes: numberIn(fields, 'bytes'),
    durationMs: durationIn(fields, 'durationMs', 1),
    sender: null,
    digests: {
      decision: decision as LoggedDecision,
      identities: Object.entries(identities).flatMap(([name, digest]) =>
        typeof digest === 'string' && DIGEST.test(digest) ? [name, digest] : [],
      ),
      address: DIGEST.test(address) ? address : null,
      unproven: textsIn(fields.unproven),
      proves: fields.proves === true,
      plan: stringIn(fields.plan) || null,
      policies: [...textsIn(fields.policies), ...textsIn(fields.uncounted)]
        .map((name) => JSON.stringify(name))
        .join(','),
    },
  };
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : NONE;
}

/** Returns a text; '' if there is none. Unlike in other logs, `-` has no special meaning. */
function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
