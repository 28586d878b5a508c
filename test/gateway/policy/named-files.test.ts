/** Mistakes and sizes of the files that a policy file names. */
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';

function loadWith(setting: string, text: string) {
  const isOfPolicy = setting.startsWith('overrides');
  const file = `version: 1
${isOfPolicy ? '' : setting}
identifiers: { ip: { source: client-address } }
policies:
  - { name: a, route: GET /a, identifier: ip, limit: 5, window: 1m${isOfPolicy ? `, ${setting}` : ''} }
`;
  return loadPolicies(file, 'p.yaml', () => text);
}

function messageOf(setting: string, text: string): string {
  try {
    loadWith(setting, text);
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'named-files.md')))
  t.test(heading, async (t) => {
    for (const [text = '', words = 'no message'] of cases) {
      const message = messageOf(heading, text);
      t.ok(message.includes(words), `${JSON.stringify(text)}: ${message}`);
    }
  });

t.test('a file that is too large, and one with more than ten mistakes', async (t) => {
  const tooLarge = [
    ['plans: { file: named.txt }', 8_388_609, /more than 8388608 bytes/],
    ['overridesFile: named.txt', 8_388_609, /more than 8388608 bytes/],
    [
      'deny: [{ network: named.txt, name: a }]',
      67_108_865,
      /that this one names have more than 64 MiB together/,
    ],
    ['replies: { page: named.txt }', 65_537, /has more than 65536 bytes/],
  ] as const;
  for (const [setting, size, words] of tooLarge)
    t.match(messageOf(setting, '#'.repeat(size)), words, setting);
  for (const setting of ['overridesFile: named.txt', 'deny: [{ network: named.txt, name: a }]'])
    t.equal(messageOf(setting, 'x\n'.repeat(50)).split('\n').length, 10, setting);
});
