import t from 'tap';
import { programName } from '#gateway/policy/keys/named-clients.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';

const words = (...values: string[]) => userAgentWords(values.flatMap((value) => ['User-Agent', value]));

t.test('matches whole words, without regard to case', async (t) => {
  const crawler =
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)';
  const read =
    'mozilla 5.0 applewebkit 537.36 khtml like gecko compatible gptbot 1.2 https openai.com gptbot';
  t.strictSame(words(crawler), read.split(' '));
  const programs = words('Google-Extended meta_externalagent/1.1 Bot.');
  t.strictSame(programs, ['google-extended', 'meta_externalagent', '1.1', 'bot']);
  t.strictSame(words('a', 'b'), ['a', 'b'], 'all fields of this name are read');
  t.strictSame(userAgentWords(['user-agent', 'x', 'X-User-Agent', 'GPTBot', 'Referer', 'curl']), ['x']);
  t.strictSame(words(''), []);
  t.strictSame(words('ab '.repeat(4000)).length, 342, 'only the first KiB is read');
  t.strictSame(words(`${'x'.repeat(1000)} GPTBot`, `${'y'.repeat(16)} GPTBot`, 'curl').length, 3);
  t.strictSame(words(...Array<string>(2000).fill('GPTBot')).length, 171, 'also of many fields');
  t.strictSame(words('\u00ff\u0080--..__'), []);
});

t.test('a file may list product names, but no addresses, versions or patterns', async (t) => {
  const names = 'GPTBot Google-Extended meta_externalagent AI2Bot 360Spider openai.com x';
  for (const name of names.split(' ')) t.equal(programName(name), name.toLowerCase());
  for (const name of ['', '10.0.0.1', '1.0', 'GPT Bot', 'GPTBot/1.0', '-bot', 'bot-', 'bot*', 'bö'])
    t.throws(() => programName(name), /is not the name of a program/, name);
});
