/** Names of browser, system and device in a User-Agent header: enough to sort responses by, no more. Pure. */

/** The first that matches wins: those that claim to be others stand before them. */
const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\b(OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];

const systems: readonly (readonly [RegExp, string])[] = [
  [/\b(iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'Chrome OS'],
  [/\bMac OS X\b|\bMacintosh\b/, 'Mac OS'],
  [/\bLinux\b/, 'Linux'],
];

const devices: readonly (readonly [RegExp, string])[] = [
  [/\biPad\b|\bTablet\b|\bAndroid\b(?!.*\bMobile\b)/, 'tablet'],
  [/\bMobile\b|\biPhone\b|\biPod\b/, 'mobile'],
];

/** What lies beyond says nothing that counts. */
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
