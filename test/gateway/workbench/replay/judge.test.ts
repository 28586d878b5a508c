/** Judges the lines of judge.yaml, which have no values that a log does not have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseAllDocuments, stringify } from 'yaml';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { LoggedDigests, LoggedSender } from '#gateway/workbench/replay/formats/logged-request.ts';
import { Judge } from '#gateway/workbench/replay/judge.ts';
import { notesOf } from '#gateway/workbench/replay/notes.ts';
import { Tally } from '#gateway/workbench/replay/tally.ts';

const IDENTIFIERS = { ip: { source: 'client-address' }, 'api-key': { source: [{ header: 'x-api-key' }] } };
const digest = (name: string): string => name.padEnd(22, 'A');

interface Line {
  readonly own?: string;
  readonly other?: string;
  readonly gets: string;
  readonly identities?: Readonly<Record<string, string>>;
  readonly unproven?: readonly string[];
  readonly policies?: readonly string[];
  readonly from?: string;
  /** Whether the log does not show header fields. */
  readonly hides?: boolean;
}

function digestsOf({ identities = {}, unproven = [], policies = ['pages'] }: Line): LoggedDigests {
  const named = Object.entries(identities).map(([name, value]) => [name, digest(value)] as const);
  return {
    ...{ decision: 'allow', identities: new Map(named), address: digest('address') },
    ...{ unproven, proves: false, plan: null, policies },
  };
}

function senderOf({ from = '192.0.2.1', hides = false }: Line): LoggedSender {
  return { peer: from, client: from, forwardedFor: '', headers: [], holds: () => !hides };
}

for (const document of parseAllDocuments(readFileSync(join(import.meta.dirname, 'judge.yaml'), 'utf8'))) {
  const { title, lines, notes, files = {}, ...keys } = document.toJS();
  t.test(title, async (t) => {
    const text = stringify({ version: 1, identifiers: IDENTIFIERS, ...keys });
    const set = loadPolicies(text, 'p.yaml', (name) => files[name]);
    const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
    const tally = new Tally(set);
    for (const line of lines as readonly Line[]) {
      const [method = '', target = ''] = (line.own ?? line.other ?? '').split(' ');
      const from =
        line.own === undefined
          ? { digests: null, sender: senderOf(line) }
          : { digests: digestsOf(line), sender: null };
      const judged = judge.judge({ at: 0, method, target, status: 200, bytes: 2, ...from });
      tally.add(judged, 0);
      const got = [judged.weighed.kind, ...judged.unknown.map(({ name }) => name)].join(' ');
      t.equal(got, line.gets, JSON.stringify(line));
    }
    if (notes === undefined) return;
    const hasDigests = lines[0].own !== undefined;
    const logs = { late: 0, cutShort: [] };
    t.strictSame(notesOf({ set, results: tally.results, hasDigests, judge, logs, chained: 0 }), notes);
  });
}
