import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import type { Tx } from '../../database/prisma.service.js';
import type { PersonKey } from '../rules/profile.js';
import { type Identity, identityOf } from './former-ids.repository.js';

/** The ids and fingerprints that lead to the data of a person. */
export type DataSubject = PersonKey & Identity;

/** The number of erased rows, and the ids under which their sessions are shown. */
export interface ErasedCopies {
  rows: number;
  sessions?: string[];
}

/** A kind of data about a client. */
export interface ClientDataKind {
  /** The section of the export. */
  section: string;
  /** True if the section is a list, false if it is one object. */
  isList: boolean;
  /**
   * Tables and their columns of bytes or JSON, the only ones that may contain personal and clinical data: `erased`, or
   * why an erasure keeps them.
   */
  tables: Record<string, Record<string, string>>;
  /** Describes an item that shows a caller only what its scopes permit. */
  model?: new () => object;
  /** The items of the section. The data that the audit entry of an export names is read before this resolves. */
  read(client: DataSubject): Promise<AsyncIterable<object>>;
  /** Erases the data of a deleted person, also of a provider, in the transaction of the deletion. May run more than once. */
  erase?(tx: Tx, person: DataSubject): Promise<ErasedCopies>;
  /** The name of the erased rows in the audit entry of an erasure. */
  erased?: string;
  /** True if it may name people whom the EHR has not named otherwise. */
  ofUnknown?: boolean;
}

/** The value in `tables` for a column that an erasure empties, or whose rows it deletes. */
export const ERASED = 'erased';

/** The list of all data about a client, to which each feature adds its own: what is exported, what is erased. */
@Injectable()
export class ClientData {
  readonly kinds: ClientDataKind[] = [];

  constructor(private readonly audit: Audit) {}

  register(...kinds: ClientDataKind[]): void {
    this.kinds.push(...kinds);
  }

  async subjectOf(tx: Tx, { kind, externalId }: PersonKey): Promise<DataSubject> {
    return { kind, externalId, ...(await identityOf(tx, { kind, externalId })) };
  }

  /**
   * Erases the copies of a locked person, and audits what was erased.
   *
   * @param person as it was read before its row was erased, because its emails lead to copies
   * @param names true if the caller erases the names and the email in the person's row, so that the audit log says it
   */
  async erase(tx: Tx, person: DataSubject, names: boolean): Promise<void> {
    const { kind, externalId } = person;
    const erased = names ? ['names and email'] : [];
    const session: string[] = [];
    for (const { erase, erased: name } of this.kinds) {
      const copies = await erase?.(tx, person);
      if (!copies || copies.rows === 0) continue;
      erased.push(`${copies.rows} ${name}`);
      session.push(...(copies.sessions ?? []));
    }
    if (erased.length === 0) return;
    await this.audit.system('erasure', { [kind]: [externalId], session }, erased.join(', '), tx);
  }

  /** Erases what names a person whom the EHR deletes although it has not named it. */
  async eraseUnknown(tx: Tx, { kind, externalId }: PersonKey): Promise<void> {
    const subject = { kind, externalId, externalIds: [externalId], id: null, platformUserIds: [], emails: [] };
    for (const { ofUnknown, erase } of this.kinds) if (ofUnknown) await erase?.(tx, subject);
  }
}
