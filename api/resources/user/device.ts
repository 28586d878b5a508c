/** What a contact holds in hand, as segment filters know it: a phone, or a desktop for everything else. Pure. */
import { readUserAgent } from '#api/resources/responses/user-agent.ts';
import type { Device } from '#api/resources/segments/contact-profile.ts';

/** Mobile SDKs are no browsers: what they send names the HTTP library of their system. */
const mobileLibraries = /\b(okhttp|Dalvik|CFNetwork|Darwin|Expo|ReactNative)\b/i;

/** @param userAgent the header; a tablet counts as a phone, because it is held and touched like one */
export function deviceOf(userAgent: string): Device {
  const { device } = readUserAgent(userAgent);
  return device !== 'desktop' || mobileLibraries.test(userAgent) ? 'phone' : 'desktop';
}
