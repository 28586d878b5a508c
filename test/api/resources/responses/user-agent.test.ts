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
    { browser: 'Safari', os: 'macOS', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) CriOS/126 Mobile/15E148 Safari/604',
    { browser: 'Mobile Chrome', os: 'iOS', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) Version/17 Mobile/15E148 Safari/604',
    { browser: 'Mobile Safari', os: 'iOS', device: 'tablet' },
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126 Mobile Safari/537',
    { browser: 'Mobile Chrome', os: 'Android', device: 'mobile' },
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
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    { browser: 'Mobile Safari', os: 'iOS', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36',
    { browser: 'Chrome Headless', os: 'Linux', device: 'desktop' },
  ],
  [
    'Mozilla/5.0 (Linux; Android 13; SM-X200) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    { browser: 'Chrome', os: 'Android', device: 'tablet' },
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/UQ1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.0.0 Mobile Safari/537.36',
    { browser: 'Chrome WebView', os: 'Android', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0',
    { browser: 'Mobile Firefox', os: 'Android', device: 'mobile' },
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 FxiOS/127.0 Mobile/15E148 Safari/605.1.15',
    { browser: 'Mobile Firefox', os: 'iOS', device: 'mobile' },
  ],
  ['Shop/12 CFNetwork/1496.0.7 Darwin/23.5.0', { os: 'iOS', device: 'desktop' }],
  ['okhttp/4.12.0', { device: 'desktop' }],
  ['curl/8.0', { device: 'desktop' }],
  ['', { device: 'desktop' }],
];
for (const [text, expected] of cases) {
  t.test(text || 'no header', async (t) => {
    t.strictSame(readUserAgent(text), expected);
  });
}
