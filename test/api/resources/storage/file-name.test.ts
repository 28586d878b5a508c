/** File names are cleaned: those of file-names.md, and random names with some guarantees. */
import { join } from 'node:path';
import t from 'tap';
import { cleanName, nameForPeople, uniqueName } from '#api/resources/storage/file-name.ts';
import { keyOf, locationOf, nameProblem, pathOf } from '#api/storage/key.ts';
import { readTarget } from '#gateway/policy/target.ts';
import { anyText } from '#test/support/any-text.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';
import { rounds } from '#test/support/seed.ts';

const uuid = '0b9c7f3e-5f0a-4a4e-9d3e-0123456789ab';
const FILE = join(import.meta.dirname, 'file-names.md');

// A title is ASCII, because it is read line by line.
t.test('known names', async (t) => {
  for (const [sent = '', base, extension] of casesUnder(
    FILE,
    'Cleaned: what is sent, the base, the extension',
  ))
    t.strictSame(cleanName(sent), { base, extension }, encodeURI(sent));
  for (const letter of ['x', '😀']) t.equal(cleanName(`${letter.repeat(300)}.png`)?.base, letter.repeat(150));
  for (const [name = ''] of casesUnder(FILE, 'Nothing is left'))
    t.equal(cleanName(name), null, encodeURI(name));
});

const parts = fc.constantFrom(
  ...[
    '..',
    '/',
    '\\',
    '%2e',
    '%252f',
    '%',
    '\0',
    ' ',
    '.',
    '-',
    '#',
    'é',
    '\u202e',
    '\u0338',
    '\u0301',
    '\u1fef',
  ],
  ...['=', 'e', '😀', 'CON', ';', 'a'],
);
const hostile = fc.oneof(
  anyText(),
  fc.string({ unit: 'grapheme' }),
  fc.array(parts).map((list) => list.join('')),
);

t.test('every name becomes one path segment that all readers decode alike', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(hostile, (text) => {
        const name = cleanName(`${text}.png`);
        if (name === null) return;
        if (cleanName(`${name.base}.png`)?.base !== name.base) throw new Error(`${name.base} is not clean`);
        const fileName = uniqueName(name, uuid);
        const place = {
          workspaceId: 'ws1',
          access: 'private',
          element: { surveyId: 's1', elementId: 'q1' },
          fileName,
        } as const;
        if (/[/\\\p{Cc}]/u.test(fileName) || [...name.base].length > 150) throw new Error(fileName);
        if (fileName !== fileName.normalize('NFC')) throw new Error('not normalized');
        const path = pathOf(place);
        const target = readTarget(path);
        if (!target.ok) throw new Error(`the gateway refuses ${path}: ${target.reason}`);
        const segments = target.path.split('/');
        if (segments.length !== 9) throw new Error(`${path} has ${segments.length} segments`);
        const back = decodeURIComponent(segments.slice(4).join('/'));
        if (nameProblem(back) !== null) throw new Error(String(nameProblem(back)));
        const found = locationOf('ws1', 'private', back);
        if (found === null || keyOf(found) !== keyOf(place)) throw new Error(`${path} does not lead back`);
        if (nameForPeople(fileName) !== `${name.base}.png`) throw new Error(nameForPeople(fileName));
      }),
      { numRuns: rounds(5000) },
    ),
  );
});

t.test('the longest names of every kind can be read again, with the longest ids', async (t) => {
  for (const character of ['x', 'é', '写', '😀']) {
    const name = cleanName(`${character.repeat(300)}.docx`);
    if (name === null) throw new Error('nothing is left');
    const element = { surveyId: 's'.repeat(25), elementId: 'q'.repeat(255) };
    const fileName = uniqueName(name, uuid);
    const place = { workspaceId: 'w'.repeat(64), access: 'private', element, fileName } as const;
    const path = keyOf(place).slice(`${place.workspaceId}/private/`.length);
    t.strictSame(locationOf(place.workspaceId, 'private', path), place, JSON.stringify(character));
  }
});
