/**
 * The queries over a table whose rows belong to workspaces. A store describes its table once and gets all of them:
 *
 * @example
 *   export const webhooks = workspaceTable<Webhook>('webhooks', { json: ['triggers', 'surveyIds'] });
 *   await webhooks.list(db, workspaceIds, page);
 *
 * A write that depends on other rows of the workspace locks the workspace first, see `inWorkspace`.
 */
import { type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { existing, forbidden, notFound } from '#api/errors.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock } from '#shared/clock.ts';

type Name =
  | 'actionClasses'
  | 'contactAttributeKeys'
  | 'contacts'
  | 'languages'
  | 'responses'
  | 'segments'
  | 'webhooks';

/** The columns of every such table. The queries name no other column, except those of the description. */
export interface Owned {
  readonly id: string;
  readonly workspaceId: string;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

/** How columns are stored. */
interface Columns<R> {
  /** Columns that hold 0 or 1 for a boolean. */
  readonly flags?: readonly (keyof R)[];
  /** Columns that hold JSON, or null. */
  readonly json?: readonly (keyof R)[];
  /** Columns that only some queries of the store read. */
  readonly hidden?: readonly string[];
}

interface Description<R> extends Columns<R> {
  /** A total order, for the list. Default: oldest first, ties by id. */
  readonly order?: readonly (keyof R)[];
  /** The maximum number of rows in a workspace. */
  readonly limit?: {
    readonly max: number;
    /** The rows, as the message calls them. */
    readonly noun: string;
    /** The bytes that a column may take in all rows of a workspace. */
    readonly size?: { readonly of: keyof R & string; readonly bytes: number };
  };
}

export type WorkspaceTable<R extends Owned> = ReturnType<typeof workspaceTable<R>>;

export function workspaceTable<R extends Owned>(
  name: Name,
  { order = ['createdAt', 'id'], limit, ...columns }: Description<R> = {},
) {
  const { encode, decode } = codecOf<R>(columns);
  const within = limiter(name, limit);
  /** Types the table by the columns that all of them have. */
  const on = (db: Database) => db as unknown as Kysely<{ [Table in Name]: Owned }>;
  const ordered = (db: Database) =>
    order.reduce(
      (query, column) => query.orderBy(sql.ref(String(column))),
      on(db).selectFrom(name).selectAll(),
    );

  async function find(db: Database, id: string): Promise<R | null> {
    const row = await on(db).selectFrom(name).selectAll().where('id', '=', id).executeTakeFirst();
    return row === undefined ? null : decode(row);
  }

  /**
   * Writes everything but the workspace and `createdAt`.
   *
   * @returns false if there is no such row any more
   * @throws the driver's unique violation
   */
  async function update(db: Database, row: R): Promise<boolean> {
    const { id, workspaceId: _, createdAt: __, ...columns } = encode(row);
    const { numUpdatedRows } = await on(db)
      .updateTable(name)
      .set(columns)
      .where('id', '=', id)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** @throws the driver's unique violation */
  async function insert(db: Database, ...rows: readonly R[]): Promise<void> {
    if (rows.length > 0) await on(db).insertInto(name).values(rows.map(encode)).execute();
  }

  return {
    decode,
    find,
    insert,
    update,

    /** Finds rows in any order. Ids without a row are left out. */
    async findAll(db: Database, ids: readonly string[]): Promise<readonly R[]> {
      if (ids.length === 0) return [];
      return (await on(db).selectFrom(name).selectAll().where('id', 'in', ids).execute()).map(decode);
    },

    /** @param only a further condition */
    async list(
      db: Database,
      workspaceIds: readonly string[],
      { limit, skip }: ListPage,
      only?: RawBuilder<SqlBool>,
    ): Promise<readonly R[]> {
      const rows = ordered(db).where('workspaceId', 'in', workspaceIds);
      const matching = only === undefined ? rows : rows.where(only);
      return (await matching.limit(limit).offset(skip).execute()).map(decode);
    },

    /** Lists the rows of one workspace, without pages. */
    async listAll(db: Database, workspaceId: string): Promise<readonly R[]> {
      return (await ordered(db).where('workspaceId', '=', workspaceId).execute()).map(decode);
    },

    /** Creates a row in one transaction. @throws the driver's unique violation; ApiError forbidden if the workspace has too many */
    async create<Row extends R>(db: Database, row: Row): Promise<Row> {
      const { workspaceId } = row;
      await inWorkspace(db, workspaceId, (trx) => within(trx, workspaceId, () => insert(trx, row)));
      return row;
    },

    /**
     * Changes a row in one transaction. It reads the row again, because another change may have been made while the body
     * of this one arrived.
     *
     * @param type names the row in the error
     * @param change returns the new columns, or throws to refuse the change
     * @throws ApiError not_found if the row was deleted meanwhile
     */
    change(
      { db, clock }: { readonly db: Database; readonly clock: Clock },
      { id, workspaceId }: Pick<Owned, 'id' | 'workspaceId'>,
      type: string,
      change: (stored: R, trx: Database) => Partial<R> | Promise<Partial<R>>,
    ): Promise<R> {
      return inWorkspace(db, workspaceId, async (trx) => {
        const stored = existing(await find(trx, id), type, id);
        const fields = await change(stored, trx);
        const changed: R = { ...stored, ...fields, updatedAt: toTimestamp(clock()) };
        if (!(await within(trx, workspaceId, () => update(trx, changed)))) throw notFound(type, id);
        return changed;
      });
    },

    /** @returns false if there is no such row any more, for example because another request has just deleted it */
    async remove(db: Database, id: string): Promise<boolean> {
      const { numDeletedRows } = await on(db).deleteFrom(name).where('id', '=', id).executeTakeFirst();
      return numDeletedRows > 0n;
    },
  };
}

/** @returns a function that runs a write, and refuses it if the workspace has too much then, and not less than before */
function limiter<R>(name: Name, limit: Description<R>['limit']) {
  async function sizeOf(db: Database, workspaceId: string) {
    const column = limit?.size?.of;
    const bytes = column === undefined ? sql`0` : sql`coalesce(sum(octet_length(${sql.ref(column)})), 0)`;
    const found = await db
      .selectFrom(name)
      .select(({ fn }) => [fn.countAll().as('rows'), bytes.as('bytes')])
      .where('workspaceId', '=', workspaceId)
      .executeTakeFirstOrThrow();
    return { rows: Number(found.rows), bytes: Number(found.bytes) };
  }

  /** @throws ApiError forbidden */
  return async <T>(trx: Database, workspaceId: string, write: () => Promise<T>): Promise<T> => {
    if (limit === undefined) return write();
    const { max, noun, size } = limit;
    const before = await sizeOf(trx, workspaceId);
    const written = await write();
    const after = await sizeOf(trx, workspaceId);
    if (after.rows > Math.max(max, before.rows)) {
      throw forbidden(`A workspace can have ${max} ${noun}; delete one that is not used`);
    }
    if (size !== undefined && after.bytes > Math.max(size.bytes, before.bytes)) {
      const allowed = `The ${size.of} of all ${noun} of a workspace may take ${size.bytes} bytes`;
      throw forbidden(`${allowed}; delete one that is not used`);
    }
    return written;
  };
}

/** Converts rows to and from the types of the database. */
export function codecOf<R extends object, Stored = R>({ flags = [], json = [], hidden = [] }: Columns<R>) {
  function encode(row: R): Stored {
    const encoded: Record<keyof R, unknown> = { ...row };
    for (const column of flags) encoded[column] = row[column] ? 1 : 0;
    for (const column of json) encoded[column] = row[column] === null ? null : JSON.stringify(row[column]);
    return encoded as Stored;
  }

  /** Decodes a row that another query selected. */
  function decode(row: object): R {
    // The table has the columns of R, see db/schema.ts.
    const decoded = { ...row } as Record<keyof R, unknown>;
    for (const column of hidden) Reflect.deleteProperty(decoded, column);
    for (const column of flags) decoded[column] = decoded[column] === 1;
    for (const column of json) {
      const text = decoded[column];
      decoded[column] = typeof text === 'string' ? JSON.parse(text) : null;
    }
    return decoded as R;
  }

  return { encode, decode };
}

/** The columns of a new row that do not depend on its table. */
export function newRow(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  workspaceId: string,
): Owned {
  const now = toTimestamp(clock());
  return { id: newId(random), workspaceId, createdAt: now, updatedAt: now };
}

/** Runs a transaction in which nobody else adds to the workspace, or changes what is in it. */
export function inWorkspace<T>(
  db: Database,
  workspaceId: string,
  write: (trx: Database) => Promise<T>,
): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await lockRow(trx, 'workspaces', workspaceId);
    return write(trx);
  });
}
