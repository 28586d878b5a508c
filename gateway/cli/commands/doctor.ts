/** `doctor`: checks the set-up of a running gateway. */

import { type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, type CommandContext, command } from '#gateway/cli/command/command.ts';
import { probeSpellings, probeTls, probeTrust } from '#gateway/cli/command/probes.ts';
import type { GatewayReport } from '#gateway/operate/admin/doctor-report.ts';
import { type Finding, findingsOf, reportFindings, wrong } from '#gateway/operate/doctor/findings.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { VERSION } from '#shared/version.ts';

export const DOCTOR = command({
  describe: 'Is the set-up of a running gateway right?',
  options: {
    public: {
      parse: originOf,
      describe: 'The address that clients use; the port of the gateway itself unless given',
    },
    ...ADMIN_OPTIONS,
  },
  examples: [
    ['$0 doctor --public https://example.org', 'Looks at proxies, TLS, Redis, clocks, bounds and files'],
  ],
  async run(options, context) {
    const { terminal, env } = context;
    const findings = await examine(options.public ?? null, accessOf(options, env), context);
    const ok = findings.every((finding) => finding.ok);
    if (options.json) terminal.json({ ok, findings });
    else {
      terminal.table(
        ['check', '', 'finding'],
        findings.map(({ check, ok, message }) => [
          check,
          ok ? terminal.style('green', 'ok') : terminal.style('red', 'wrong'),
          message,
        ]),
      );
      for (const { check, ok, fix } of findings) if (!ok) terminal.line(`\n${check}: ${fix}`);
    }
    return ok ? EXIT.ok : EXIT.no;
  },
});

function originOf(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Error(`${text} is not a URL; write https://HOST`);
  return url;
}

/** @param given address in the option `--public`; null without the option */
async function examine(given: URL | null, access: AdminAccess, { now }: CommandContext): Promise<Finding[]> {
  const askedAt = now();
  const tlsFindings = findingsOf('tls', given?.protocol === 'https:' ? await probeTls(given, askedAt) : null);
  let report: GatewayReport;
  const begun = now();
  try {
    report = (await askAdmin(access, 'GET', '/api/doctor')) as GatewayReport;
  } catch (error) {
    // The admin API is closed, so no further check is possible. Report this as a finding.
    if (!(error instanceof CommandError && /GATEWAY_ADMIN_HOST/.test(error.message))) throw error;
    const fix =
      'set GATEWAY_ADMIN_TOKEN, or GATEWAY_ADMIN_HOST=127.0.0.1; until then everybody who reaches the address can read the metrics';
    const mistake = wrong(
      'the admin listener can be reached from other machines, and asks for no token',
      fix,
    );
    return [...findingsOf('admin-access', mistake), ...tlsFindings];
  }
  const findings = reportFindings(report, { version: VERSION, now: (begun + now()) / 2 });
  const origin = given ?? directOrigin(access.gateway, report);
  // Without the store there is no salt for a token. Another finding reports the store.
  const isStoreAway = report.store !== null && report.store.problem !== null;
  const trust = isStoreAway ? [] : await probeTrust(origin, access, report.trust.hops);
  // Report a network that is too wide only once.
  const isTold = findings.some(({ check }) => check === 'trusted-proxies');
  findings.push(...trust.filter(({ check }) => !(isTold && check === 'trusted-proxies')), ...tlsFindings);
  if (trust.every(({ check, ok }) => check !== 'public-address' || ok) && report.upstream.problem === null)
    findings.push(...(await probeSpellings(origin, report.spellings)));
  return findings;
}

/** Returns the public port on the machine of the admin listener. */
function directOrigin(gateway: string, { publicPort, tls }: GatewayReport): URL {
  const url = new URL(gateway);
  return new URL(`${tls !== null ? 'https' : 'http'}://${url.hostname}:${publicPort}`);
}
