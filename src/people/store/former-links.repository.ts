import type { Client } from 'pg';
import { passedOverBy } from '../../vault/rotation.js';
import type { Vault } from '../../vault/vault.js';
import type { PersonKey } from '../model/profile.js';
import { UserLinks } from './user-links.js';

/** Rows that are sealed at once. */
const BATCH = 100;

type FormerLink = PersonKey & { id: string; user: string };

/** Of one of the two tables: its key, what is read of a row beside that, and what must still stand in it. */
const TABLES = {
  people: {
    column: 'user_link',
    left: 't.user_link IS NULL AND t.platform_user_id IS NOT NULL',
    key: 't.id',
    first: '00000000-0000-0000-0000-000000000000',
    person: 'people p ON p.id = t.id',
    isSame: 't.id = g.person_id AND t.platform_user_id = g.user_id',
  },
  platform_users: {
    column: 'person_link',
    left: 't.person_link IS NULL AND t.person_id IS NOT NULL',
    key: 't.platform_user_id',
    first: '',
    person: 'people p ON p.id = t.person_id',
    isSame: 't.platform_user_id = g.user_id AND t.person_id = g.person_id',
  },
} as const;

type Table = keyof typeof TABLES;

/** Links that were stored before they were sealed: they are believed as they stand, and sealed so. */
export class FormerLinks {
  private readonly links: UserLinks;

  /** @param vault one that reads the former layout: else a link without its seal is one whose seal was taken away */
  constructor(
    private readonly sql: Pick<Client, 'query'>,
    vault: Vault,
  ) {
    this.links = new UserLinks(vault);
  }

  async count(): Promise<number> {
    const { rows } = await this.sql.query<{ count: number }>(
      `SELECT (SELECT count(*) FROM people t WHERE ${TABLES.people.left})::int
         + (SELECT count(*) FROM platform_users t WHERE ${TABLES.platform_users.left})::int AS count`,
    );
    return rows[0]?.count ?? 0;
  }

  /**
   * Seals what is left, in the order of the keys. Who changes a link seals it himself, so that a row that changes
   * meanwhile is left to him.
   *
   * @param onProgress called after each batch with the number of links
   * @returns how many are left, since others had their rows
   */
  async seal(onProgress: (sealed: number) => void): Promise<number> {
    const people = () => this.pass('people', onProgress, (link) => this.links.seal(link, link.user));
    const users = () => this.pass('platform_users', onProgress, (link) => this.links.sealFormer(link, link.user));
    return (await passedOverBy(people)) + (await passedOverBy(users));
  }

  private async pass(
    table: Table,
    onProgress: (sealed: number) => void,
    seal: (link: FormerLink) => Buffer,
  ): Promise<number> {
    let passedOver = 0;
    const { column, left, key, first, person, isSame } = TABLES[table];
    for (let after: string = first; ; ) {
      const { rows } = await this.sql.query<FormerLink & { key: string }>(
        `SELECT ${key} AS key, p.id, p.kind, p.external_id AS "externalId", t.platform_user_id AS "user"
         FROM ${table} t JOIN ${person} WHERE ${left} AND ${key} > $1 ORDER BY ${key} LIMIT ${BATCH}`,
        [after],
      );
      const { rowCount } = await this.sql.query(
        `WITH free AS MATERIALIZED (
           SELECT g.* FROM unnest($1::uuid[], $2::text[], $3::bytea[]) AS g(person_id, user_id, sealed)
           JOIN ${table} t ON ${isSame} WHERE ${left} FOR NO KEY UPDATE OF t SKIP LOCKED)
         UPDATE ${table} t SET ${column} = g.sealed FROM free g WHERE ${isSame}`,
        [rows.map(({ id }) => id), rows.map(({ user }) => user), rows.map(seal)],
      );
      onProgress(rowCount ?? 0);
      passedOver += rows.length - (rowCount ?? 0);
      after = rows.at(-1)?.key ?? '';
      if (rows.length < BATCH) return passedOver;
    }
  }
}
