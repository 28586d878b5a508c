/** `people`: adds people to an organization, removes them, and lists them. */
import { randomBytes } from 'node:crypto';
import { normalizeEmail } from '#api/auth/password.ts';
import { readConfig } from '#api/config.ts';
import type { Database } from '#api/db/schema.ts';
import { verificationLink } from '#api/resources/accounts/mails.ts';
import { addPerson, removePerson } from '#api/resources/accounts/people.ts';
import { findOrganization, listMembers, type Member } from '#api/resources/organizations/store.ts';
import type { Given } from '#shared/cli/command.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { type CommandContext, command, DATABASE, databaseAt, withDatabase } from './command.ts';

const REMOVED = {
  email: { isPositional: true, isRequired: true, describe: 'The address' },
  database: { ...DATABASE, describe: 'The database' },
} as const;
const PEOPLE = {
  organization: { describe: 'Its id; the organization of the first start unless given' },
  database: REMOVED.database,
} as const;
const ADDED = {
  ...REMOVED,
  ...PEOPLE,
  owner: { isFlag: true, describe: 'Makes the person an owner' },
} as const;

type Organization = NonNullable<Awaited<ReturnType<typeof findOrganization>>>;

export const ADD = command({
  describe: 'Adds a person, and prints the link to choose a password',
  options: ADDED,
  examples: [['$0 people add ben@example.com', 'Ben may do everything in the organization']],
  run: add,
});

export const REMOVE = command({
  describe: 'Deletes an account, with the organizations that nobody else belongs to',
  options: REMOVED,
  run: remove,
});

export const LIST = command({
  describe: 'Lists the people of an organization',
  options: PEOPLE,
  run: list,
});

async function add(options: Given<typeof ADDED>, context: CommandContext) {
  const { terminal, clock, env, cwd } = context;
  const { publicUrl } = readConfig(env, cwd).config;
  const email = emailOf(options);
  return inOrganization(options, context, async (db, { id, name }) => {
    const asked = { organizationId: id, email, isOwner: options.owner };
    const { role, token } = await addPerson({ db, clock, random: randomBytes }, asked);
    const link = token === null ? null : verificationLink(publicUrl, token);
    if (options.json) {
      terminal.json({ email, role, organizationId: id, link });
      return EXIT.ok;
    }
    terminal.line(`${email} is now ${role === 'owner' ? 'an owner' : 'a manager'} of ${name}.`);
    terminal.line(
      link === null
        ? 'The person logs in with the password of the account.'
        : `Give this link to the person, who chooses a password there. It works once, within a day:\n${link}`,
    );
    return EXIT.ok;
  });
}

async function remove(options: Given<typeof REMOVED>, context: CommandContext): Promise<ExitCode> {
  const { terminal, clock } = context;
  const email = emailOf(options);
  return withDatabase(databaseAt('--database', options.database, context), async (db) => {
    const removal = await removePerson({ db, clock }, email);
    if (removal.kind === 'stranger') throw new CommandError(`${email} has no account`, EXIT.no);
    if (removal.kind === 'onlyOwner')
      throw new CommandError(
        `${email} is the only owner of ${removal.organization} who can log in; first run: npm run people -- add EMAIL --owner, and let that person use the link`,
        EXIT.no,
      );
    const { apiKeys, organizations } = removal;
    if (options.json) {
      terminal.json({ email, organizations, apiKeys });
      return EXIT.ok;
    }
    terminal.line(`The account of ${email} is deleted.`);
    for (const name of organizations) terminal.line(`${name} is deleted with everything in it.`);
    if (apiKeys.length === 0) return EXIT.ok;
    terminal.line('The person made these API keys and may still know them. Revoke them under /account:');
    terminal.table(
      ['key', 'label'],
      apiKeys.map((key) => [key.id, key.label]),
    );
    return EXIT.ok;
  });
}

async function list(options: Given<typeof PEOPLE>, context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  return inOrganization(options, context, async (db, organization) => {
    const members = await listMembers(db, organization.id);
    if (options.json) terminal.json({ organization, people: members });
    else {
      terminal.line(`${organization.name} (${organization.id})`);
      terminal.table(
        ['email', 'role', 'name', 'last login'],
        members.map((member) => [member.email, member.role, member.name, lastLogin(member)]),
      );
    }
    return EXIT.ok;
  });
}

function lastLogin({ isVerified, lastLoginAt }: Member): string {
  if (!isVerified) return 'has not used the link yet';
  return lastLoginAt ?? 'never';
}

/** @throws CommandError */
function emailOf({ email }: Given<typeof REMOVED>): string {
  const address = normalizeEmail(email);
  if (address === null) throw new CommandError(`EMAIL: "${email}" is no e-mail address`, EXIT.usage);
  return address;
}

/** @throws CommandError if there is no such organization */
function inOrganization(
  { organization, database }: Given<typeof PEOPLE>,
  context: CommandContext,
  work: (db: Database, organization: Organization) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withDatabase(databaseAt('--database', database, context), async (db) => {
    const found = await findOrganization(db, organization ?? null);
    if (found !== null) return work(db, found);
    throw new CommandError(
      organization === undefined
        ? 'There is no organization yet; the first start of the API creates one'
        : `There is no organization ${organization}; GET /api/v1/management/workspaces names organizations`,
      EXIT.no,
    );
  });
}
