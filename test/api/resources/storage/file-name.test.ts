/** File names are cleaned: known ones as listed, and random names with some guarantees. */

import t from 'tap';
import { cleanName, nameForPeople, uniqueName } from '#api/resources/storage/file-name.ts';
import { keyOf, locationOf, nameProblem, pathOf } from '#api/storage/key.ts';
import { readTarget } from '#gateway/policy/target.ts';
import { anyText } from '#test/support/any-text.ts';
import { fc } from '#test/support/fast-check.ts';
import { rounds } from '#test/support/seed.ts';

/** Removes line breaks, because test titles are read line by line. */
function inAscii(text: string | null): string {
  return JSON.stringify(text?.slice(0, 40) ?? null).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const uuid = '0b9c7f3e-5f0a-4a4e-9d3e-0123456789ab';

for (const [sent, extension, base] of [
  ['photo.png', 'png', 'photo'],
  ['a.b.c.PNG', 'PNG', 'a.b.c'],
  ['  spaced   out\t.pdf ', 'pdf', 'spaced out'],
  ['../../etc/passwd.txt', 'txt', '..-..-etc-passwd'],
  ['C:\\boot\\x.txt', 'txt', 'C-boot-x'],
  ['#<>:"|?*`\'x.png', 'png', 'x'],
  ['line\nbreak\u2028s.csv', 'csv', 'line break s'],
  ['re\u202egnp.exe\u202c.png', 'png', 'regnp.exe'],
  ['e\u0301t\u00e9.png', 'png', '\u00e9t\u00e9'],
  ['=\0\u0338.png', 'png', '\u2260'],
  ['e"\u0301.png', 'png', '\u00e9'],
  ['写真 😀.jpg', 'jpg', '写真 😀'],
  ['a%2e%2e%2fb%.png', 'png', 'a2e2e2fb'],
  [`${'x'.repeat(300)}.png`, 'png', 'x'.repeat(150)],
  [`${'😀'.repeat(300)}.png`, 'png', '😀'.repeat(150)],
] as const) {
  t.test(`${inAscii(sent)} becomes ${inAscii(base)}`, async (t) => {
    t.strictSame(cleanName(sent), { base, extension });
  });
}

for (const name of [
  '.png',
  '...png',
  '---.png',
  '/.png',
  '???.png',
  '\u200b\u200b.png',
  '',
  'readme',
  'a.',
  'a.b/c',
])
  t.equal(cleanName(name), null, `nothing is left of ${inAscii(name)}`);

const parts = fc.constantFrom(
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
  '=',
  'e',
  '😀',
  'CON',
  ';',
  'a',
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
    t.strictSame(locationOf(place.workspaceId, 'private', path), place, inAscii(character));
  }
});

t.test('cleaning a clean name changes nothing', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(hostile, (text) => {
        const once = cleanName(`${text}.png`);
        if (once === null) return;
        if (cleanName(`${once.base}.png`)?.base !== once.base) throw new Error(once.base);
      }),
      { numRuns: rounds(2000) },
    ),
  );
});
