import { Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { noneIfUnreadable } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import type { PersonKind } from '../model/person.js';
import type { PersonKey } from '../model/profile.js';

/** A person of the EHR and a user of the platform that it is, or was until it was deleted. */
export interface UserLink {
  /** Our id of the person. */
  id: string;
  kind: PersonKind;
  externalId: string;
  user: string;
  isFormer: boolean;
  /** What was sealed with it, in hex. */
  sealed: string | null;
}

/** The link that a row of `people` holds; none where it has no user. */
export function linkOf(
  person: PersonKey & { id: string; platformUserId: string | null; userLink: Uint8Array | null },
): UserLink[] {
  const { id, kind, externalId, platformUserId: user, userLink } = person;
  const sealed = userLink && Buffer.from(userLink).toString('hex');
  return user === null ? [] : [{ id, kind, externalId, user, isFormer: false, sealed }];
}

/** SQL of a {@link UserLink} out of a row `p` of `people`, or out of a row `f` of `platform_users` and its person `p`. */
const linkIn = (row: 'p' | 'f') => `json_build_object('id', p.id, 'kind', p.kind, 'externalId', p.external_id,
    'user', ${row}.platform_user_id, 'isFormer', ${row === 'f'},
    'sealed', encode(${row === 'f' ? 'f.person_link' : 'p.user_link'}, 'hex'))`;

const FORMER = 'platform_users f JOIN people p ON p.id = f.person_id';

/** SQL of the link of a user of the platform: to the person that it is, or was until the EHR had it deleted; else null. */
export const linkOfUser = (user: string): string => `coalesce(
    (SELECT ${linkIn('p')} FROM people p WHERE p.platform_user_id = ${user}),
    (SELECT ${linkIn('f')} FROM ${FORMER} WHERE f.platform_user_id = ${user}))`;

/** All users that a person is or was; one who was deleted and came back has several. */
const LINKS_OF = `
  WITH person AS MATERIALIZED (SELECT * FROM people WHERE kind = $1::person_kind AND external_id = $2)
  SELECT ${linkIn('p')} AS link FROM person p WHERE p.platform_user_id IS NOT NULL
  UNION ALL
  SELECT ${linkIn('f')} FROM platform_users f CROSS JOIN person p WHERE f.person_id = (SELECT id FROM person)`;

/**
 * Seals which user of the platform a person is, beside the plain columns by which the two are found. Whoever changes
 * those without the key (one UPDATE shows one client's sessions as another's) makes the link unreadable: nothing is
 * shown by it, and nothing is sent. So every statement that sets one of them sets its sealed column.
 */
@Injectable()
export class UserLinks {
  constructor(private readonly vault: Vault) {}

  /** The column `user_link` of `people`. */
  seal(person: PersonKey, user: string): Buffer {
    return this.vault.seal(personPlace(person), user);
  }

  /** The column `person_link` of `platform_users`. */
  sealFormer(person: PersonKey, user: string): Buffer {
    return this.vault.seal(userPlace(user), nameOf(person));
  }

  /** @throws {UnreadableValue} where one of them is not what this service stored; all that are not are counted */
  check(...links: readonly UserLink[]): void {
    const faults = links.flatMap((link) => this.faultOf(link) ?? []);
    if (faults.length > 0) throw faults[0];
  }

  /** Whether all are what this service stored; those that are not are counted. */
  hold(...links: readonly UserLink[]): boolean {
    return links.filter((link) => this.faultOf(link)).length === 0;
  }

  /** Found by the person's ids, unchecked. */
  async linksOf(sql: Pick<Pool, 'query'>, { kind, externalId }: PersonKey): Promise<UserLink[]> {
    const { rows } = await sql.query<{ link: UserLink }>(LINKS_OF, [kind, externalId]);
    return rows.map(({ link }) => link);
  }

  /** The users of a person, for what is found by them. @throws {UnreadableValue} where it can't be told whether these are all */
  async usersOf(sql: Pick<Pool, 'query'>, key: PersonKey): Promise<string[]> {
    const links = await this.linksOf(sql, key);
    this.check(...links);
    return [...new Set(links.map(({ user }) => user))];
  }

  private faultOf(link: UserLink): Error | undefined {
    const { sealed, user, isFormer } = link;
    const place = isFormer ? userPlace(user) : personPlace(link);
    if (sealed === null) return this.vault.readsFormerLayout ? undefined : this.vault.refused(place);
    const bound = isFormer ? nameOf(link) : user;
    try {
      this.vault.open(place, Buffer.from(sealed, 'hex'), (text) => text === bound);
      return undefined;
    } catch (error) {
      noneIfUnreadable(error);
      return error as Error;
    }
  }
}

function nameOf({ kind, externalId }: PersonKey): string {
  return `${kind}/${externalId}`;
}

function personPlace(person: PersonKey) {
  return { table: 'people', column: 'user_link', row: nameOf(person), logRow: person.id ?? `a ${person.kind}` };
}

function userPlace(user: string) {
  return { table: 'platform_users', column: 'person_link', row: user };
}
