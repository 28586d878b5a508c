/** Reads the documents of `*.yaml`. policies.test.ts says what they have. */
import { readFileSync } from 'node:fs';
import { parseAllDocuments, stringify } from 'yaml';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { PolicySet, PolicyTest } from '#gateway/policy/policy-set.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';

type Texts = Readonly<Record<string, string>>;

/** What a step has beside the keys of a test. */
interface OwnKeys {
  readonly query: string;
  readonly fields: readonly string[];
  readonly chain: string | null;
  readonly via: 'auth-request' | 'ext-authz' | 'replied';
  readonly write: Texts;
  readonly refused: string;
  readonly ban: string;
  readonly unban: string;
  readonly later: boolean;
  readonly inTurn: boolean;
  readonly chunked: boolean;
  readonly hold: boolean;
  readonly release: boolean;
}

const OWN_KEYS: Readonly<Record<keyof OwnKeys, true>> = {
  query: true,
  fields: true,
  chain: true,
  via: true,
  write: true,
  refused: true,
  ban: true,
  unban: true,
  later: true,
  inTurn: true,
  chunked: true,
  hold: true,
  release: true,
};

/** What is expected beside the keys of a test. */
interface Expected {
  readonly tells: string | readonly string[];
  readonly without: readonly string[];
  readonly arrives: Readonly<Record<string, string | null>>;
  readonly record: Readonly<Record<string, unknown>>;
  readonly why: string | readonly string[];
  readonly explains: object;
  readonly counted: Readonly<Record<string, number>>;
}

const EXPECTED: Readonly<Record<keyof Expected, true>> = {
  tells: true,
  without: true,
  arrives: true,
  record: true,
  why: true,
  explains: true,
  counted: true,
};

export interface Step {
  readonly title: string;
  /** The keys that a test of a policy file has. */
  readonly test: PolicyTest;
  readonly own: Partial<OwnKeys>;
  readonly expect: Partial<Expected>;
  /** Whether it moves the clock to the time of its test. */
  readonly isTimed: boolean;
}

export interface Document {
  readonly title: string;
  /** The policy file, without its steps. */
  readonly text: string;
  readonly set: PolicySet;
  readonly files: Texts;
  readonly env: Texts;
  readonly steps: readonly Step[];
  readonly gateways: number;
  /** Addresses that were here yesterday, in histories that began a week ago; null for none. */
  readonly visitors: readonly string[] | null;
  /** Names of the gates that it goes to; null for all that can take it. */
  readonly gates: readonly string[] | null;
}

interface Written {
  readonly expect?: Readonly<Record<string, unknown>>;
  readonly at?: string;
}

const IDENTIFIERS = {
  ip: { source: 'client-address', ipv6Prefix: 64 },
  'api-key': { source: [{ header: 'x-api-key' }, { bearer: 'fbk_' }] },
};

export async function documentsOf(file: string): Promise<readonly Document[]> {
  const text = await filledIn(readFileSync(file, 'utf8'));
  return parseAllDocuments(text).map((document) => {
    const { title, steps, each, gateways = 2, gates = null, visitors = null, ...others } = document.toJS();
    const { env = {}, files = {}, ...keys } = others;
    const policies = { version: 1, identifiers: IDENTIFIERS, ...keys };
    const named = withKeys(files);
    const written: Written[] = steps.map((step: object) => ({ ...each, ...step }));
    const tests = written.map(({ expect = {}, ...step }, i) => ({
      name: `${i + 1}`,
      ...parted(step, OWN_KEYS).others,
      expect: { headers: {}, ...parted(expect, EXPECTED).others },
    }));
    const load = (more: object) =>
      loadPolicies(stringify({ ...policies, ...more }), file, (name) => named[name] ?? missing(name));
    const { tests: parsed } = load({ tests });
    return {
      ...{ title, env, files: named, gateways, visitors, gates },
      text: stringify(policies),
      set: load({}),
      steps: parsed.map((test, i): Step => {
        const { expect = {}, ...step } = written[i] ?? {};
        const own: Partial<OwnKeys> = parted(step, OWN_KEYS).own;
        const title = `${i + 1}: ${JSON.stringify(steps[i])}`.slice(0, 300);
        const target = own.query === undefined ? test.target : `${test.target}?${own.query}`;
        return {
          ...{ title, test: { ...test, target }, own },
          expect: parted(expect, EXPECTED).own,
          isTimed: step.at !== undefined,
        };
      }),
    };
  });
}

function parted(keys: object, names: object): { readonly own: object; readonly others: object } {
  const entries = Object.entries(keys);
  const isOwn = ([name]: readonly [string, unknown]): boolean => Object.hasOwn(names, name);
  return {
    own: Object.fromEntries(entries.filter(isOwn)),
    others: Object.fromEntries(entries.filter((entry) => !isOwn(entry))),
  };
}

function missing(name: string): never {
  throw Object.assign(new Error(`there is no ${name}`), { code: 'ENOENT' });
}

const digester = new Digester('salt of the tests');
const signers = { ours: await newSigner('EdDSA', 'key'), forger: await newSigner('EdDSA', 'key') };

/** Replaces `<keys>` by the key set of the tokens. */
function withKeys(files: Texts): Texts {
  const keys = keySetText(signers.ours);
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, text === '<keys>' ? keys : text]),
  );
}

/** Replaces `<text × 100>`, `<digest IDENTIFIER VALUE>` and `<token NAME=VALUE …>`. */
async function filledIn(text: string): Promise<string> {
  const tokens = new Map<string, string>();
  for (const [whole, claims = ''] of text.matchAll(/<token ([^>]*)>/g))
    tokens.set(whole, await tokenOf(claims));
  return text
    .replace(/<token [^>]*>/g, (whole) => tokens.get(whole) ?? '')
    .replace(/<digest (\S+) ([^>]+)>/g, (_, name, value) => digestOf(name, value))
    .replace(/<([^<>]+) × (\d+)>/g, (_, part, times) => part.repeat(Number(times)));
}

function tokenOf(claims: string): Promise<string> {
  const pairs = claims.split(' ').map((pair) => pair.split('='));
  const { by, ...payload } = Object.fromEntries(
    pairs.map(([name, value = '']) => [name, /^\d+$/.test(value) ? Number(value) : value]),
  );
  return sign(by === 'forger' ? signers.forger : signers.ours, payload);
}

export function digestOf(name: string, value: string): string {
  return digester.identify(identifierOf(name), value).digest;
}

function identifierOf(name: string): SimpleIdentifier {
  if (name === 'everyone') return EVERYONE;
  if (name === 'ip') return { name, kind: 'address', ipv6Prefix: 64 };
  if (name.startsWith('body.')) return { name: '', kind: 'body', field: name.slice(5), isRequired: false };
  return { name, kind: 'credential', sources: [] };
}
