/**
 * Finds the names of browser, system and device in a User-Agent header. The names are those of Formbricks, so that
 * responses of both fall into the same groups. Pure.
 */

/** The first match wins. Browsers that claim to be others come before them. */
const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\b(OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFxiOS\/|\b(Mobile|Tablet);.*\bFirefox\//, 'Mobile Firefox'],
  [/\bFirefox\//, 'Firefox'],
  [/\bHeadlessChrome\//, 'Chrome Headless'],
  [/; wv\).*\bChrome\//, 'Chrome WebView'],
  [/\bCriOS\/|\bChrome\/\S+ Mobile\b/, 'Mobile Chrome'],
  [/\bChromium\//, 'Chromium'],
  [/\bChrome\//, 'Chrome'],
  [/\bMobile(\/\S+)? Safari\//, 'Mobile Safari'],
  [/\bSafari\//, 'Safari'],
  [/\bMSIE |\bTrident\//, 'IE'],
];

const systems: readonly (readonly [RegExp, string])[] = [
  // Apps on iPhones send CFNetwork by default.
  [/\b(iPhone|iPad|iPod)\b|\bCFNetwork\//, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'Chrome OS'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bUbuntu\b/, 'Ubuntu'],
  [/\bLinux\b/, 'Linux'],
];

const devices: readonly (readonly [RegExp, string])[] = [
  [/\biPad\b|\bTablet\b|\bAndroid\b(?!.*\bMobile\b)/, 'tablet'],
  [/\bMobile\b|\biPhone\b|\biPod\b/, 'mobile'],
];

/** Characters after this position are ignored. */
const LOOKED_AT_MAX = 1_024;

export function readUserAgent(header: string): {
  readonly browser?: string;
  readonly os?: string;
  readonly device: string;
} {
  const text = header.slice(0, LOOKED_AT_MAX);
  const named = (names: readonly (readonly [RegExp, string])[]): string | undefined =>
    names.find(([pattern]) => pattern.test(text))?.[1];
  const browser = named(browsers);
  const os = named(systems);
  return {
    ...(browser === undefined ? {} : { browser }),
    ...(os === undefined ? {} : { os }),
    device: named(devices) ?? 'desktop',
  };
}
