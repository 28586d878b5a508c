import t from 'tap';
import { deviceOf } from '#api/resources/user/state.ts';

t.test('recognizes phones by their user agent', async (t) => {
  const phones = [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36',
    'Mozilla/5.0 (Linux; Android 14; SM-X700) AppleWebKit/537.36 Chrome/120.0 Safari/537.36',
    'Mozilla/5.0 (iPad; CPU OS 16_0 like Mac OS X) AppleWebKit/605.1.15',
    'okhttp/4.12.0',
    'Shop/7 CFNetwork/1490.0.4 Darwin/23.2.0',
    'Dalvik/2.1.0 (Linux; U; Android 13)',
  ];
  for (const userAgent of phones) t.equal(deviceOf(userAgent), 'phone', userAgent);
});

t.test('takes every other user agent for a desktop', async (t) => {
  const desktops = [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/120.0 Safari/537.36',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:121.0) Gecko/20100101 Firefox/121.0',
    'curl/8.4.0',
    '',
  ];
  for (const userAgent of desktops) t.equal(deviceOf(userAgent), 'desktop', userAgent);
});
