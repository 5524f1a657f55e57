import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import { familyOf } from '../../database/former-ids.js';
import type { PersonKind } from '../model/person.js';
import type { PersonRow } from './person-row.js';
import { usersOf } from './person-users.js';

/** A deleted person, whose row no longer contains names or an email. */
export interface ErasedPerson {
  kind: PersonKind;
  /** All current and former ids of the person and of the clients merged into it. */
  externalIds: string[];
  /** All current and former platform users of these. None for a merged client, whose sessions are those of the survivor. */
  platformUserIds: string[];
  /** The internal ids of the clients merged into it. */
  mergedIds: string[];
}

/** The number of erased rows, and the ids under which their sessions are shown. */
export interface ErasedCopies {
  rows: number;
  sessions?: string[];
}

/** Erases copies in the transaction of the deletion. It may run more than once. */
type EraseCopies = (tx: PoolClient, person: ErasedPerson) => Promise<ErasedCopies>;

/** Marks the `EraseCopies` method of a feature that stores copies, with their name in the audit trail. */
export const ErasesCopies = Reflector.createDecorator<string>();

/** Erases the copies of a deleted person in every feature that declares `@ErasesCopies()`. */
@Injectable()
export class Erasure implements OnModuleInit {
  private copies: { name: string; erase: EraseCopies }[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly audit: Audit,
  ) {}

  onModuleInit(): void {
    this.copies = this.discovery.getProviders().flatMap(({ instance }) => this.copiesOf(instance));
  }

  /**
   * Erases the copies of a locked person, and audits what was erased.
   *
   * @param names true if the caller erases the names and the email in the person's row, so that the audit log says it
   */
  async erase(tx: PoolClient, row: PersonRow, { names }: { names: boolean }): Promise<void> {
    const { id, kind, externalId } = row;
    const { people, externalIds } = await familyOf(tx, kind, externalId);
    const isMerged = row.mergedInto !== null;
    const person = {
      kind,
      externalIds: isMerged ? [externalId] : externalIds,
      platformUserIds: isMerged ? [] : await usersOf(tx, { kind, externalId }),
      mergedIds: isMerged ? [] : people.filter((one) => one !== id),
    };
    const erased = names ? ['names and email'] : [];
    const session: string[] = [];
    for (const { name, erase } of this.copies) {
      const copies = await erase(tx, person);
      if (copies.rows > 0) erased.push(`${copies.rows} ${name}`);
      if (copies.rows > 0) session.push(...(copies.sessions ?? []));
    }
    if (erased.length === 0) return;
    await this.audit.system('erasure', { [kind]: [externalId], session }, erased.join(', '), tx);
  }

  private copiesOf(instance: unknown): typeof this.copies {
    const prototype: unknown = typeof instance === 'object' && instance !== null && Object.getPrototypeOf(instance);
    if (!prototype) return [];
    const methods = instance as Record<string, EraseCopies>;
    return this.scanner.getAllMethodNames(prototype).flatMap((method) => {
      const erase = methods[method] as EraseCopies;
      const name = this.reflector.get(ErasesCopies, erase) as string | undefined;
      return name ? [{ name, erase: erase.bind(instance) }] : [];
    });
  }
}
