import t from 'tap';
import { readUserAgent } from '#api/resources/responses/user-agent.ts';

/** Browser, system and device of a header. */
const cases: readonly (readonly [header: string, expected: string])[] = [
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36',
    'Chrome/Windows/desktop',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0',
    'Edge/Windows/desktop',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605 Version/17 Safari/605',
    'Safari/macOS/desktop',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) CriOS/126 Mobile/15E148 Safari/604',
    'Mobile Chrome/iOS/mobile',
  ],
  [
    'Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) Version/17 Mobile/15E148 Safari/604',
    'Mobile Safari/iOS/tablet',
  ],
  ['Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126 Mobile Safari/537', 'Mobile Chrome/Android/mobile'],
  [
    'Mozilla/5.0 (Linux; Android 14; SM-X700) SamsungBrowser/25 Chrome/121 Safari/537',
    'Samsung Internet/Android/tablet',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0', 'Firefox/Linux/desktop'],
  ['Mozilla/5.0 (X11; CrOS x86_64) Chrome/126 Safari/537 OPR/112', 'Opera/Chrome OS/desktop'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Mobile Safari/iOS/mobile',
  ],
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36',
    'Chrome Headless/Linux/desktop',
  ],
  [
    'Mozilla/5.0 (Linux; Android 13; SM-X200) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    'Chrome/Android/tablet',
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/UQ1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.0.0 Mobile Safari/537.36',
    'Chrome WebView/Android/mobile',
  ],
  ['Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0', 'Mobile Firefox/Android/mobile'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 FxiOS/127.0 Mobile/15E148 Safari/605.1.15',
    'Mobile Firefox/iOS/mobile',
  ],
  ['Shop/12 CFNetwork/1496.0.7 Darwin/23.5.0', '-/iOS/desktop'],
  ['okhttp/4.12.0', '-/-/desktop'],
  ['curl/8.0', '-/-/desktop'],
  ['', '-/-/desktop'],
];
t.test('names browser, system and device', async (t) => {
  for (const [header, expected] of cases) {
    const { browser = '-', os = '-', device } = readUserAgent(header);
    t.equal(`${browser}/${os}/${device}`, expected, header);
  }
});
