/** JSON Schemas of the reply of a replay. */
import { algorithm, flag, integer, listOf, nullable, number, shape, text, time } from './reply-schemas.ts';

const frequent = listOf(
  shape('Frequent', { identity: { ...text, description: 'A digest' }, count: integer }),
);

const policies = listOf(
  shape('ReplayedPolicy', {
    name: text,
    line: integer,
    limit: number,
    windowSeconds: number,
    algorithm,
    mode: { enum: ['enforce', 'shadow'] },
    allowed: integer,
    denied: integer,
    shadowDenied: integer,
    unknown: { ...integer, description: 'The log does not have the client that the policy counts' },
    identities: integer,
    identitiesDenied: integer,
    isEstimate: { ...flag, description: 'Of the numbers of clients' },
    firstDeniedAt: nullable(time),
    mostDenied: frequent,
  }),
);

export const replaySchema = shape('Replay', {
  file: text,
  against: text,
  formats: listOf(text),
  lines: integer,
  unreadable: integer,
  unreadableLines: listOf(shape('UnreadableLine', { file: text, line: integer, text })),
  from: nullable(time),
  to: nullable(time),
  requests: integer,
  allowed: integer,
  denied: integer,
  uncovered: integer,
  malformed: integer,
  unknown: integer,
  policies,
  policiesAgainst: { ...policies, description: 'Results of the same requests under the file in use' },
  logged: {
    ...nullable(shape('', { denied: integer, newlyDenied: integer, newlyAllowed: integer })),
    description: 'Compared with the decisions in the log; null if the log is from another program',
  },
  newlyDenied: { ...integer, description: 'Denied by the edited file, and not by the one in use' },
  newlyAllowed: integer,
  identitiesNewlyDenied: integer,
  identitiesNewlyAllowed: integer,
  mostNewlyDenied: frequent,
  mostNewlyAllowed: frequent,
  notes: listOf(text),
  linesPerSecond: integer,
});

const refusal = shape('ReplayRefusal', {
  message: { ...text, description: 'What is wrong, and what to do' },
  problems: {
    ...listOf(shape('Problem', { line: integer, column: integer, message: text, fix: text })),
    description: 'Mistakes in the edited file',
  },
});

export const replayRefusalSchema = { ...refusal, required: ['message'] } as const;
