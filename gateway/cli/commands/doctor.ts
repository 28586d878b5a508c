/** `doctor`: checks the set-up of a running gateway. */

import {
  ADMIN_OPTIONS,
  type AdminAccess,
  type AdminOptions,
  accessOf,
  askAdmin,
} from '#gateway/cli/command/admin-client.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import { probeFormbricks } from '#gateway/cli/command/formbricks-probes.ts';
import { probeKey, probeSpellings, probeTrust, tlsFinding } from '#gateway/cli/command/probes.ts';
import { originIn } from '#gateway/cli/command/public-address.ts';
import { bad, type Finding, reportFindings } from '#gateway/operate/doctor/findings.ts';
import type { GatewayReport } from '#gateway/operate/doctor/report.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import { VERSION } from '#shared/version.ts';

interface DoctorArguments extends AdminOptions, GlobalOptions {
  readonly public: string | undefined;
  readonly formbricks: string | undefined;
  readonly key: string | undefined;
}

export const addDoctor: AddCommand = (program, context) =>
  program.command(
    'doctor',
    'Is the set-up of a running gateway right?',
    (command) =>
      command
        .option('public', {
          type: 'string',
          describe: 'The address that clients use; the port of the gateway itself unless given',
        })
        .option('formbricks', {
          type: 'string',
          describe: 'Where Formbricks itself listens: looks at its login, its proxies and its keys too',
        })
        .option('key', {
          type: 'string',
          describe: 'A key that works: looks whether the application also takes it in other case',
        })
        .options(ADMIN_OPTIONS)
        .example(
          ...copyable(
            '$0 doctor --public https://example.org',
            'Looks at proxies, TLS, Redis, clocks, bounds and files',
          ),
        ),
    (options) => context.run(() => doctor(options, context)),
  );

async function doctor(options: DoctorArguments, context: CommandContext): Promise<ExitCode> {
  const { terminal, env } = context;
  const given = options.public === undefined ? null : originIn('public', options.public);
  const formbricks = options.formbricks === undefined ? null : originIn('formbricks', options.formbricks);
  const access = accessOf(options, env);
  const findings = await examine({ given, formbricks, key: options.key ?? null }, access, context);
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
}

interface Examined {
  /** Address in the option `--public`; null without the option. */
  readonly given: URL | null;
  readonly formbricks: URL | null;
  /** A key that works; null without the option `--key`. */
  readonly key: string | null;
}

async function examine(
  { given, formbricks, key }: Examined,
  access: AdminAccess,
  { now }: CommandContext,
): Promise<Finding[]> {
  const askedAt = now();
  const tls = given?.protocol === 'https:' ? await tlsFinding(given, askedAt) : null;
  const tlsFindings = tls === null ? [] : [tls];
  let report: GatewayReport;
  const begun = now();
  try {
    report = (await askAdmin(access, 'GET', '/api/doctor')) as GatewayReport;
  } catch (error) {
    // The admin API is closed, so no further check is possible. Report this as a finding.
    if (!(error instanceof CommandError && /GATEWAY_ADMIN_HOST/.test(error.message))) throw error;
    const fix =
      'set GATEWAY_ADMIN_TOKEN, or GATEWAY_ADMIN_HOST=127.0.0.1; until then everybody who reaches the address can read the metrics';
    return [
      bad(
        'admin-access',
        'the admin listener can be reached from other machines, and asks for no token',
        fix,
      ),
      ...tlsFindings,
    ];
  }
  const findings = reportFindings(report, { version: VERSION, now: (begun + now()) / 2 });
  const origin = given ?? directOrigin(access.gateway, report);
  // Without the store there is no salt for a token. Another finding reports the store.
  const isStoreAway = report.store !== null && report.store.problem !== null;
  const { findings: trust, proxies } = isStoreAway
    ? { findings: [], proxies: null }
    : await probeTrust(origin, access, report.trust.hops);
  // Report a network that is too wide only once.
  const isTold = findings.some(({ check }) => check === 'trusted-proxies');
  findings.push(...trust.filter(({ check }) => !(isTold && check === 'trusted-proxies')), ...tlsFindings);
  if (trust.every(({ check, ok }) => check !== 'public-address' || ok) && report.upstream.problem === null)
    findings.push(
      ...(await probeSpellings(origin, report.spellings)),
      ...(key === null ? [] : await probeKey(origin, key, report.keyPlaces)),
    );
  if (formbricks !== null && !isStoreAway) {
    const probe = { formbricks, origin, isPublic: given !== null, proxies };
    findings.push(...(await probeFormbricks({ ...probe, admin: access, now: now() })));
  }
  return findings;
}

/** Returns the public port on the machine of the admin listener. */
function directOrigin(gateway: string, { publicPort, tls }: GatewayReport): URL {
  const url = new URL(gateway);
  return new URL(`${tls !== null ? 'https' : 'http'}://${url.hostname}:${publicPort}`);
}
