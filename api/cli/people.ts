/** `people`: adds people to an organization, removes them, and lists them. */
import { randomBytes } from 'node:crypto';
import type { Argv } from 'yargs';
import { normalizeEmail } from '#api/auth/password.ts';
import { readConfig } from '#api/config.ts';
import type { Database } from '#api/db/schema.ts';
import { verificationLink } from '#api/resources/accounts/mails.ts';
import { addPerson, removePerson } from '#api/resources/accounts/people.ts';
import { findOrganization, listMembers, type Member } from '#api/resources/organizations/store.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { copyable, type GlobalOptions } from '#shared/cli/program.ts';
import { type AddCommand, type CommandContext, databaseAt, databaseUrl } from './command.ts';
import { openExisting } from './existing-database.ts';

interface PeopleOptions extends GlobalOptions {
  readonly organization: string | undefined;
  readonly database: string;
}

interface PersonOptions extends PeopleOptions {
  readonly email: string;
}

type Organization = NonNullable<Awaited<ReturnType<typeof findOrganization>>>;

export const addPeople: AddCommand = (program, context) =>
  program.command('people', 'Adds people to an organization, and removes them', (command) =>
    withOptions(command, context)
      .command(
        'add <email>',
        'Adds a person, and prints the link to choose a password',
        (add) =>
          person(add)
            .option('owner', { type: 'boolean', default: false, describe: 'Makes the person an owner' })
            .example(
              ...copyable('$0 people add ben@example.com', 'Ben may do everything in the organization'),
            ),
        (options) => context.run(() => add(options, context)),
      )
      .command(
        'remove <email>',
        'Removes a person, and names the API keys that the person made',
        (remove) => person(remove),
        (options) => context.run(() => remove(options, context)),
      )
      .command(
        'list',
        'Lists the people of an organization',
        (list) => list,
        (options) => context.run(() => list(options, context)),
      )
      .demandCommand(1, 'Name a command: add, remove or list.'),
  );

function withOptions(command: Argv<GlobalOptions>, context: CommandContext) {
  return command
    .option('organization', {
      type: 'string',
      describe: 'Its id; the organization of the first start unless given',
    })
    .option('database', {
      type: 'string',
      default: databaseUrl(context),
      defaultDescription: 'DATABASE_URL',
      describe: 'The database; that of DATABASE_URL unless given',
    });
}

function person<T>(command: Argv<T>) {
  return command.positional('email', { type: 'string', demandOption: true, describe: 'The address' });
}

async function add(options: PersonOptions & { readonly owner: boolean }, context: CommandContext) {
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

async function remove(options: PersonOptions, context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  const email = emailOf(options);
  return inOrganization(options, context, async (db, { id, name }) => {
    const removal = await removePerson({ db }, { organizationId: id, email });
    switch (removal.kind) {
      case 'stranger':
        throw new CommandError(`${email} is not in ${name}; "people list" names who is`, EXIT.no);
      case 'onlyOwner':
        throw new CommandError(
          `${email} is the only owner of ${name} who can log in; first run: npm run people -- add EMAIL --owner, and let that person use the link`,
          EXIT.no,
        );
      case 'removed': {
        const { apiKeys } = removal;
        if (options.json) terminal.json({ email, organizationId: id, apiKeys });
        else {
          terminal.line(`${email} is no longer in ${name}.`);
          if (apiKeys.length > 0) {
            terminal.line(
              'The person made these API keys and may still know them. Revoke them under /account:',
            );
            terminal.table(
              ['key', 'label'],
              apiKeys.map((key) => [key.id, key.label]),
            );
          }
        }
        return EXIT.ok;
      }
    }
  });
}

async function list(options: PeopleOptions, context: CommandContext): Promise<ExitCode> {
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
function emailOf({ email }: PersonOptions): string {
  const address = normalizeEmail(email);
  if (address === null) throw new CommandError(`EMAIL: "${email}" is no e-mail address`, EXIT.usage);
  return address;
}

/** Opens the database for the work, and closes it. @throws CommandError if there is no such organization */
async function inOrganization(
  { organization, database }: PeopleOptions,
  context: CommandContext,
  work: (db: Database, organization: Organization) => Promise<ExitCode>,
): Promise<ExitCode> {
  const db = await openExisting(databaseAt('--database', database, context));
  try {
    const found = await findOrganization(db, organization ?? null);
    if (found !== null) return await work(db, found);
    throw new CommandError(
      organization === undefined
        ? 'There is no organization yet; the first start of the API creates one'
        : `There is no organization ${organization}; GET /api/v1/management/workspaces names organizations`,
      EXIT.no,
    );
  } finally {
    await db.destroy();
  }
}
