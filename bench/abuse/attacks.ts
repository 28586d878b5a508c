/** Reads the attacks from `attacks.yaml`, which describes the keys. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';

const strict = { additionalProperties: false };
const number = Type.Optional(Type.Number({ exclusiveMinimum: 0 }));
const count = Type.Optional(Type.Integer({ minimum: 0 }));
const flag = Type.Optional(Type.Literal(true));
const text = Type.Optional(Type.String());
const texts = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]));
const oneOf = <T extends string>(...values: T[]) => Type.Optional(Type.Enum(values));

const conduct = {
  ...{ send: texts, raw: texts, pour: text, reads: oneOf('never', 'slowly') },
  ...{ leavesAtReply: flag, leavesAfterMs: number, resets: flag, halfCloses: flag },
  drip: Type.Optional(Type.Object({ raw: Type.String(), everyMs: Type.Number(), times: number }, strict)),
};
const attack = {
  title: Type.String(),
  attack: Type.Array(Type.Object({ hold: number, open: number, flood: number, ...conduct }, strict)),
  limits: oneOf('shipped'),
  policies: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  settings: Type.Optional(Type.Record(Type.String(), Type.String())),
  redis: oneOf('frozen', 'week-old'),
  visitor: oneOf('stranger', 'neighbour', 'guest', 'regulars'),
  ...{ gateways: number, seconds: number },
  goals: Type.Optional(
    Type.Object(
      {
        ...{ admitted: count, windowSeconds: number, keysPerAdmitted: number },
        ...{ bans: count, smuggled: count, newcomersServed: number },
      },
      strict,
    ),
  ),
};
const file = Type.Record(Type.String(), Type.Object(attack, strict));

export type Attack = Static<typeof file>[string];
export type Conduct = Attack['attack'][number];

/** @throws Error that names the wrong keys */
export function readAttacks(yaml: string): ReadonlyMap<string, Attack> {
  const attacks: unknown = parse(yaml);
  const errors = Value.Errors(file, attacks).map((error) => `${error.instancePath}: ${error.message}`);
  if (errors.length > 0) throw new Error(`The attacks are wrong.\n${errors.join('\n')}`);
  return new Map(Object.entries(attacks as Static<typeof file>));
}

export const ATTACKS = readAttacks(readFileSync(join(import.meta.dirname, 'attacks.yaml'), 'utf8'));

/** @throws Error if there is no such attack */
export function attackOf(name: string): Attack {
  const found = ATTACKS.get(name);
  if (found === undefined) throw new Error(`There is no attack ${name}`);
  return found;
}
