import t from 'tap';
import { ConfigError, readSettings } from '#shared/configuration.ts';

const VARIABLES = [
  { name: 'PORT', default: '80', meaning: 'a number' },
  { name: 'QUIET', default: '0', meaning: 'a flag' },
  { name: 'LEVEL', default: 'info', meaning: 'one of a few' },
  { name: 'URL', default: 'http://a', meaning: 'parsed' },
] as const;

const read = (env: Record<string, string>) =>
  readSettings(VARIABLES, env, (read) => ({
    port: read.integer('PORT', 1, 100),
    quiet: read.flag('QUIET'),
    level: read.choice('LEVEL', ['info', 'warn']),
    url: read.parse('URL', null, (value) => {
      if (!URL.canParse(value)) throw new Error('give an address');
      return new URL(value).href;
    }),
  }));

t.test('uses defaults for unset and blank variables', async (t) => {
  const defaults = { port: 80, quiet: false, level: 'info', url: 'http://a/' };
  t.strictSame(read({}), defaults);
  t.strictSame(read({ PORT: '  ', QUIET: '', LEVEL: '\t' }), defaults);
});

t.test('reads every kind, ignoring spaces around it', async (t) => {
  t.strictSame(read({ PORT: ' 7 ', QUIET: '1', LEVEL: 'WARN', URL: 'http://b' }), {
    port: 7,
    quiet: true,
    level: 'warn',
    url: 'http://b/',
  });
});

t.test('reports all mistakes together, in the order of the settings', async (t) => {
  t.throws(() => read({ PORT: '0', QUIET: 'yes', LEVEL: 'loud', URL: 'x' }), {
    name: 'ConfigError',
    problems: [
      'PORT: "0" is not a whole number from 1 to 100',
      'QUIET: "yes" is neither 0 nor 1',
      'LEVEL: "loud" is not one of info, warn',
      'URL: give an address',
    ],
    message: /^several settings are wrong:\nPORT: .*\nQUIET: .*\nLEVEL: .*\nURL: give an address$/,
  });
});

for (const value of ['101', '1e1', '-1', '1.5', '0x10', '9999999999']) {
  t.test(`${value} is not a whole number in range`, async (t) => {
    t.throws(() => read({ PORT: value }), ConfigError);
  });
}

t.test('reports a mistake across several values like any other', async (t) => {
  t.throws(() => readSettings(VARIABLES, {}, (read) => read.refuse('PORT', 'needs QUIET')), {
    message: 'PORT: needs QUIET',
  });
});
