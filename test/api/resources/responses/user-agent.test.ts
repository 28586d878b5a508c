import t from 'tap';
import { readUserAgent } from '#api/resources/responses/user-agent.ts';

const cases: readonly (readonly [string, { browser?: string; os?: string; device: string }])[] = [
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36',
    { browser: 'Chrome', os: 'Windows', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0',
    { browser: 'Edge', os: 'Windows', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605 Version/17 Safari/605',
    { browser: 'Safari', os: 'Mac OS', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) CriOS/126 Mobile/15E148 Safari/604',
    { browser: 'Chrome', os: 'iOS', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) Version/17 Mobile/15E148 Safari/604',
    { browser: 'Safari', os: 'iOS', device: 'tablet' },
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126 Mobile Safari/537',
    { browser: 'Chrome', os: 'Android', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; SM-X700) SamsungBrowser/25 Chrome/121 Safari/537',
    { browser: 'Samsung Internet', os: 'Android', device: 'tablet' },
  ],
  [
    'Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0',
    { browser: 'Firefox', os: 'Linux', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (X11; CrOS x86_64) Chrome/126 Safari/537 OPR/112',
    { browser: 'Opera', os: 'Chrome OS', device: 'desktop' },
  ],
  ['curl/8.0', { device: 'desktop' }],
  ['', { device: 'desktop' }],
];
for (const [text, expected] of cases) {
  t.test(text || 'no header', async (t) => {
    t.strictSame(readUserAgent(text), expected);
  });
}
