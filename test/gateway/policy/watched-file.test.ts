/** Edits real files in every usual way. Only the clock is the test's own. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t, { type Test } from 'tap';

import { loadPolicies } from '#gateway/policy/file/load.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';

import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { FileWatch, loadWatched } from '#gateway/policy/watched-file.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { keySetText, newSigner } from '#test/support/tokens.ts';

const GOOD = readFileSync(resolve(import.meta.dirname, '../../../policies.yaml'), 'utf8');
const withLimit = (limit: number): string => GOOD.replace('limit: 40', `limit: ${limit}`);
/** A prefix of the text that is a valid policy file as well. */
const BEGINNING = GOOD.slice(0, GOOD.lastIndexOf('  - name: '));

function watchOf(t: Test, file = join(temporaryFolder(t), 'policies.yaml')) {
  writeFileSync(file, GOOD);
  const loaded: PolicySet[] = [];
  const refused: Error[] = [];
  let now = 0;
  const inUse = loadWatched(GOOD, file, loadPolicies);
  const watch = new FileWatch(inUse, {
    file,
    read: readPolicyFile,
    load: loadPolicies,
    clock: () => now,
    onLoaded: (set) => loaded.push(set),
    onRefused: (error) => refused.push(error),
  });
  /** Polls four times a second for this long. */
  const pass = async (ms: number): Promise<void> => {
    for (const end = now + ms; now < end; now += 250) await watch.look();
    await watch.look();
  };
  return { file, watch, loaded, refused, pass, limits: () => loaded.map((set) => set.policies[0]?.limit) };
}

t.test('written in place: reloaded once, after a second without changes', async (t) => {
  const { file, limits, pass } = watchOf(t);
  await pass(2000);
  writeFileSync(file, withLimit(41));
  await pass(750);
  t.strictSame(limits(), []);
  await pass(500);
  t.strictSame(limits(), [41]);
  await pass(5000);
  t.strictSame(limits(), [41]);
});

t.test('a symbolic link to another folder, as Kubernetes does for a ConfigMap', async (t) => {
  const folder = temporaryFolder(t);
  const publish = (version: string, text: string): void => {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, 'policies.yaml'), text);
    symlinkSync(version, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  publish('..1', GOOD);
  symlinkSync(join('..data', 'policies.yaml'), join(folder, 'policies.yaml'));
  const { limits, pass } = watchOf(t, join(folder, 'policies.yaml'));
  await pass(2000);
  publish('..2', withLimit(41));
  rmSync(join(folder, '..1'), { recursive: true });
  await pass(2000);
  t.strictSame(limits(), [41]);
});

t.test('a partly written file is not loaded, even if the part is valid', async (t) => {
  const { file, loaded, refused, pass, watch } = watchOf(t);
  await pass(2000);
  const text = withLimit(41);
  for (const size of [0, 900, BEGINNING.length, text.length - 1]) {
    writeFileSync(file, text.slice(0, size));
    await pass(750);
    watch.reload();
    await pass(0);
  }
  t.strictSame([loaded, refused], [[], []]);
  writeFileSync(file, text);
  await pass(2000);
  t.equal(loaded.length, 1);
  t.equal(loaded[0]?.policies[0]?.limit, 41);
  t.strictSame(refused, []);
});

t.test('loads a file that ends after a row only after seconds, because it may be half written', async (t) => {
  const { file, loaded, refused, pass, watch } = watchOf(t);
  await pass(2000);
  truncateSync(file, Buffer.byteLength(BEGINNING));
  await pass(1500);
  watch.reload();
  await pass(2500);
  t.strictSame([loaded, refused], [[], []], 'the writer may not be finished');
  appendFileSync(file, GOOD.slice(BEGINNING.length));
  await pass(2000);
  t.strictSame(
    loaded.map(({ policies }) => policies.length),
    [17],
    'the signal loads the whole file',
  );
  writeFileSync(file, BEGINNING);
  await pass(6000);
  t.equal(loaded[1]?.policies.length, 16);
});

t.test('empty, missing or wrong: refused once, and the next good file is loaded', async (t) => {
  const { file, limits, refused, pass } = watchOf(t);
  await pass(2000);
  truncateSync(file, 0);
  await pass(20_000);
  t.equal(refused.length, 1);
  rmSync(file);
  await pass(20_000);
  t.match(refused.slice(1), [/there is no policy file/]);
  writeFileSync(file, withLimit(0));
  await pass(20_000);
  t.match(refused.slice(2), [{ name: 'PolicyFileError', message: /policies\.yaml:\d+:\d+: limit is 0/ }]);
  t.strictSame(limits(), []);
  writeFileSync(file, withLimit(41));
  await pass(2000);
  t.strictSame(limits(), [41]);
});

t.test('loads the files that it names with it, complete', async (t) => {
  const file = join(temporaryFolder(t), 'policies.yaml');
  const keys = join(dirname(file), 'keys.json');
  const [first, second] = [await newSigner('EdDSA', 'first'), await newSigner('EdDSA', 'second')];
  const { limits, refused, pass, loaded } = watchOf(t, file);
  await pass(2000);
  const naming = GOOD.replace(
    'identifiers:\n',
    'identifiers:\n  user: { source: [{ jwt: { bearer: true, claim: sub, jwks: keys.json } }] }\n',
  );
  writeFileSync(file, naming);
  await pass(2000);
  t.match(refused[0]?.message, 'keys.json cannot be read (ENOENT)');
  writeFileSync(keys, keySetText(first));
  await pass(2000);
  t.equal(limits().length, 1, 'a missing file is looked for');
  const versions = new Set(loaded.map(({ version }) => version));

  const text = keySetText(first, second);
  writeFileSync(keys, text.slice(0, text.length - 20));
  await pass(3000);
  t.equal(refused.length, 1, 'a partly written file is not checked');
  writeFileSync(keys, text);
  await pass(2000);
  t.equal(limits().length, 2);
  t.notOk(versions.has(loaded[1]?.version ?? ''), 'the version depends on the table');
  const user = loaded[1]?.identifiers.find(({ name }) => name === 'user');
  t.equal(user?.kind === 'token' && user.sources[0]?.keys.length, 2);

  rmSync(keys);
  await pass(2000);
  t.match(refused[1]?.message, 'keys.json cannot be read (ENOENT)');
  t.equal(limits().length, 2, 'the old table stays');
  await pass(5000);
  t.equal(refused.length, 2, 'reported once');
});

t.test('a pipe in place of the file, or of one that it names, is refused and stops nothing', async (t) => {
  const { file, refused, limits, pass } = watchOf(t);
  const list = join(dirname(file), 'blocked.txt');
  const withList = withLimit(41).replace('policies:', 'deny: [{ file: blocked.txt }]\npolicies:');
  const makePipe = (name: string): void => {
    rmSync(name, { force: true });
    execFileSync('mkfifo', [name]);
  };
  makePipe(list);
  writeFileSync(file, withList);
  await pass(2000);
  t.match(refused.at(-1)?.message, /blocked.txt cannot be read \(not a regular file\)/);
  rmSync(list);
  writeFileSync(list, '192.0.2.1\n');
  await pass(2000);
  t.strictSame(limits(), [41]);
  makePipe(list);
  await pass(7000);
  t.match(refused.at(-1)?.message, /blocked.txt cannot be read \(not a regular file\)/);
  makePipe(file);
  await pass(7000);
  t.match(
    refused.at(-1)?.message,
    `the policy file ${file} cannot be read (not a regular file); set GATEWAY_POLICIES to a file`,
  );
  t.strictSame(limits(), [41], 'the policies in use stay');
});
